package web

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// Wanted says whether somebody looks at a source and its next frame shall come with its picture. It is true once;
// the next time is a tenth of a second after that picture was drawn. It fits Config.Wanted.
func (s *Server) Wanted(source string) bool {
	v := s.views.get(source)
	return v != nil && v.ask()
}

// Add takes the picture and the boxes of a result if somebody looks at its source and it is time for another
// picture. It copies and does nothing else, and allocates only for the first picture of its size. It is to be called for
// every result, in their order, by one goroutine per source.
func (s *Server) Add(res *eyas.Result) {
	if v := s.views.get(res.Source); v != nil {
		v.add(res)
	}
}

// views are the sources that somebody looks at.
type views struct {
	status  func() ([]eyas.SourceStatus, bool)
	most    int           // viewers
	closing chan struct{} // closed at the end
	done    sync.WaitGroup

	mu      sync.RWMutex
	ended   bool
	viewers int
	byName  map[string]*view
}

func (vs *views) start(status func() ([]eyas.SourceStatus, bool), most int) {
	vs.status, vs.most = status, most
	vs.closing, vs.byName = make(chan struct{}), map[string]*view{}
}

// close has every view show that it has ended, and lets nobody in any more; wait waits until all are gone.
func (vs *views) close() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.ended = true
	close(vs.closing)
}

func (vs *views) wait() { vs.done.Wait() }

// get returns the view of a source, nil while nobody looks.
func (vs *views) get(name string) *view {
	vs.mu.RLock()
	defer vs.mu.RUnlock()
	return vs.byName[name]
}

// join counts a viewer in. It returns nil when there are too many.
func (vs *views) join(name string) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.ended || vs.viewers >= vs.most {
		return nil
	}
	v := vs.byName[name]
	if v == nil {
		v = newView(name, vs.status)
		vs.byName[name] = v
		vs.done.Go(func() { v.run(vs.closing) })
	}
	v.watchers++
	vs.viewers++
	vs.done.Add(1)
	return v
}

// leave counts a viewer out. With the last one goes the view and all of its memory.
func (vs *views) leave(v *view) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.viewers--
	if v.watchers--; v.watchers == 0 {
		delete(vs.byName, v.name)
		close(v.unwatched)
	}
	vs.done.Done()
}

// boundary stands between the pictures of a stream. No JPEG is searched for it: each part says its length.
const boundary = "eyas-picture"

// serve streams the pictures of one source until the viewer goes, does not read, or everything ends.
func (vs *views) serve(w http.ResponseWriter, r *http.Request, name string) {
	header := w.Header()
	header.Set("Content-Type", "multipart/x-mixed-replace; boundary="+boundary)
	if r.Method == http.MethodHead {
		return
	}
	v := vs.join(name)
	if v == nil {
		header.Set("Retry-After", "10")
		say(w, http.StatusServiceUnavailable, fmt.Sprintf("%d people look already: close another view", vs.most))
		return
	}
	defer vs.leave(v)
	out := partWriter{w: w, control: http.NewResponseController(w)}
	for {
		p := v.latest()
		if p.jpeg != nil && out.write(p) != nil || p.last {
			return
		}
		select {
		case <-p.outdated:
		case <-r.Context().Done():
			return
		}
	}
}

// partWriter writes the parts of one stream.
type partWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// write writes a picture with the boundary behind it: browsers show a part once they have seen its end.
func (o *partWriter) write(p *part) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	var head, end []byte
	if !o.begun {
		head = append(head, "--"+boundary+"\r\n"...)
		o.begun = true
	}
	head = append(head, "Content-Type: image/jpeg\r\nContent-Length: "...)
	head = strconv.AppendInt(head, int64(len(p.jpeg)), 10)
	head = append(head, "\r\n\r\n"...)
	end = append(end, "\r\n--"+boundary...)
	if p.last {
		end = append(end, "--"...)
	}
	for _, b := range [][]byte{head, p.jpeg, append(end, "\r\n"...)} {
		if _, err := o.w.Write(b); err != nil {
			return err
		}
	}
	return o.control.Flush()
}
