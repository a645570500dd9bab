package web

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	eyas "github.com/eyas-edge/eyas/runtime"
)

const (
	pictureEvery = 100 * time.Millisecond // at most
	captionEvery = time.Second
)

// view is a source that somebody looks at. One goroutine draws and encodes for all viewers; the consumer of the
// results only copies, and only when a picture is wanted.
type view struct {
	name      string
	status    func() ([]eyas.SourceStatus, bool)
	watchers  int // guarded by views.mu
	unwatched chan struct{}

	// want is nothing from the moment in which a picture was copied until a while after it was drawn: the goroutine
	// that draws reads the picture without a lock.
	want     atomic.Int32
	fresh    chan struct{} // holds a token once a picture is whole
	begun    time.Time
	askedFor atomic.Int64 // when the last picture was, since begun

	mu    sync.Mutex
	shot  shot
	looks []look
	open  bool // not all models have said yet what they found in the picture
	part  *part
}

// What is wanted of the consumer.
const (
	nothing  int32 = iota
	wanted         // a picture
	promised       // a frame is under way that will bring it
)

// part is what viewers see until it is outdated.
type part struct {
	jpeg     []byte // nil before the first picture
	last     bool
	outdated chan struct{}
}

// look is what one model has found last.
type look struct {
	model string
	frame uint64
	found []eyas.Detection
}

// shot is a copy of a frame.
type shot struct {
	pixels *frame.Frame // tightly packed; nil before the first
	number uint64
	taken  time.Time // when it was captured, else when its result came
}

func newView(name string, status func() ([]eyas.SourceStatus, bool)) *view {
	v := &view{
		name: name, status: status, begun: time.Now(),
		unwatched: make(chan struct{}), fresh: make(chan struct{}, 1),
		part: &part{outdated: make(chan struct{})},
	}
	v.want.Store(wanted)
	return v
}

// ask says whether the next frame is to bring its picture.
func (v *view) ask() bool {
	if !v.want.CompareAndSwap(wanted, promised) {
		return false
	}
	v.askedFor.Store(int64(time.Since(v.begun)))
	return true
}

// asked returns when a picture was last asked for.
func (v *view) asked() time.Time { return v.begun.Add(time.Duration(v.askedFor.Load())) }

// add takes what is wanted of a result.
func (v *view) add(res *eyas.Result) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shot.pixels == nil || res.Frame != v.shot.number {
		v.complete() // what is still missing will not come
		if res.Picture == nil {
			return
		}
		v.ask() // unless that was done: pictures also come where a run needs them for something else
		if v.want.Load() == nothing || !v.shot.copy(res.Picture) {
			return
		}
		v.want.Store(nothing)
		// A model that had nothing to say of the last picture does not keep its older boxes.
		last := v.shot.number
		v.looks = slices.DeleteFunc(v.looks, func(l look) bool { return l.frame != last })
		v.shot.number, v.shot.taken, v.open = res.Frame, res.Captured, true
		if res.Captured.IsZero() {
			v.shot.taken = time.Now()
		}
	}
	v.keep(res)
	if !slices.ContainsFunc(v.looks, func(l look) bool { return l.frame != v.shot.number }) {
		v.complete()
	}
}

// keep notes what a model found in the picture.
func (v *view) keep(res *eyas.Result) {
	i := slices.IndexFunc(v.looks, func(l look) bool { return l.model == res.Model })
	if i < 0 {
		i = len(v.looks)
		v.looks = append(v.looks, look{model: res.Model})
	}
	l := &v.looks[i]
	l.frame, l.found = res.Frame, append(l.found[:0], res.Detections...)
}

// complete hands the picture on to be drawn, if one is waiting for models.
func (v *view) complete() {
	if !v.open {
		return
	}
	v.open = false
	select {
	case v.fresh <- struct{}{}:
	default:
	}
}

// copy copies the pixels. It says whether it could: a format without planes is none that can be shown.
func (s *shot) copy(fr *frame.Frame) bool {
	if s.pixels == nil || s.pixels.Format != fr.Format || s.pixels.Width != fr.Width || s.pixels.Height != fr.Height {
		planes, err := frame.Split(fr.Format, fr.Width, fr.Height, make([]byte, fr.Format.Bytes(fr.Width, fr.Height)))
		if err != nil {
			return false
		}
		if s.pixels, err = frame.New(fr.Format, fr.Width, fr.Height, planes, time.Time{}, nil); err != nil {
			return false
		}
	}
	s.pixels.Colour = fr.Colour
	for i, to := range s.pixels.Planes {
		from := fr.Planes[i]
		if from.Stride == to.Stride {
			copy(to.Data, from.Data)
			continue
		}
		for at, y := 0, 0; at < len(to.Data); at, y = at+to.Stride, y+1 {
			copy(to.Data[at:at+to.Stride], from.Data[y*from.Stride:])
		}
	}
	return true
}

// run draws for the viewers until nobody looks or everything ends.
func (v *view) run(closing <-chan struct{}) {
	captions := time.NewTicker(captionEvery)
	defer captions.Stop()
	pace := time.NewTimer(pictureEvery)
	pace.Stop() // until a picture was drawn
	defer pace.Stop()
	d := drawer{view: v}
	d.show(v.caption(), false)
	for {
		select {
		case <-v.unwatched:
			return
		case <-closing:
			d.show(caption{text: v.name + ": Eyas has stopped", trouble: true}, true)
			return
		case <-v.fresh:
			begun := time.Now()
			d.draw()
			// Where drawing is slow it takes half of one CPU and no more.
			pace.Reset(max(pictureEvery-time.Since(v.asked()), time.Since(begun)))
		case <-pace.C:
			v.want.CompareAndSwap(nothing, wanted)
		case <-captions.C:
			v.want.CompareAndSwap(promised, wanted) // the frame that was to bring a picture got lost
			v.flush()
			if c := v.caption(); c != d.shown {
				d.show(c, false)
			}
		}
	}
}

// drawer is what the view's goroutine draws with.
type drawer struct {
	view   *view
	canvas canvas
	found  []eyas.Detection
	shown  caption
}

// draw draws the view's picture and what was found in it.
func (d *drawer) draw() {
	d.found = d.view.found(d.found[:0])
	d.canvas.draw(d.view.shot.pixels, d.found)
	d.show(d.view.caption(), false)
}

// show hands what is on the canvas, with a caption, to the viewers.
func (d *drawer) show(c caption, last bool) {
	d.shown = c
	d.view.publish(d.canvas.encode(c), last)
}

// found appends what all models have found.
func (v *view) found(to []eyas.Detection) []eyas.Detection {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.looks {
		to = append(to, l.found...)
	}
	return to
}

// flush has a picture drawn whose models do not all answer.
func (v *view) flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.complete()
}

// publish shows a picture to all viewers; those who are still busy with an earlier one will see only the newest.
func (v *view) publish(jpeg []byte, last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.part.outdated)
	v.part = &part{jpeg: jpeg, last: last, outdated: make(chan struct{})}
}

// latest returns what there is to see now.
func (v *view) latest() *part {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.part
}

// caption says what a viewer has to know beside the picture.
func (v *view) caption() caption {
	v.mu.Lock()
	taken := v.shot.taken
	v.mu.Unlock()
	sources, _ := v.status()
	st, _ := find(sources, v.name)
	return captionOf(st, taken, time.Now())
}
