package media

import (
	"fmt"
	"image"
	"sync"
	"time"

	"github.com/pion/mediadevices/pkg/driver"
	mediaframe "github.com/pion/mediadevices/pkg/frame"
	"github.com/pion/mediadevices/pkg/io/video"
	"github.com/pion/mediadevices/pkg/prop"

	"github.com/eyas-edge/eyas/camera"
)

// patience is how long a driver may take to end.
const patience = 900 * time.Millisecond

// picture is what a driver read, valid until it is taken.
type picture struct {
	image.Image
	jpeg bool // it was one
	fps  float64
	at   time.Time // when it came
}

// session is one run of a driver, whose calls are made in a goroutine of its own: they may hang, and panic.
type session struct {
	driver   driver.Driver
	pictures chan picture
	taken    chan struct{} // answers each of pictures
	quit     chan struct{}
	done     chan struct{} // closed when the goroutine ended, with err
	err      error

	mu     sync.Mutex
	ending bool
	reads  bool // only Read is called from now on: end may call Close beside it, which has to break it off
}

func start(d driver.Driver, want camera.Request) *session {
	s := &session{
		driver: d, pictures: make(chan picture), taken: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.err = contain(func() error { return s.run(want) })
		s.mu.Lock()
		reads := s.reads
		s.mu.Unlock()
		if !reads {
			_ = contain(d.Close) // the error before says more
		}
	}()
	return s
}

// contain turns a panic of a driver into an error.
func contain(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the camera's driver is broken: %v", p)
		}
	}()
	return call()
}

// run opens the driver and reads until it fails or end is called.
func (s *session) run(want camera.Request) error {
	if err := s.driver.Open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if s.over(false) {
		return nil
	}
	p, err := choose(s.driver.Properties(), want)
	if err != nil {
		return err
	}
	r, err := s.driver.(driver.VideoRecorder).VideoRecord(p) // the query asked for those
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if s.over(true) {
		return nil
	}
	for {
		if goOn, err := s.read(r, p); err != nil || !goOn {
			return err
		}
	}
}

// over says whether end was called; if not, reads says what it will find.
func (s *session) over(reads bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = reads && !s.ending
	return s.ending
}

// read reads one picture and waits until it was taken.
func (s *session) read(r video.Reader, p prop.Media) (goOn bool, err error) {
	m, release, err := r.Read()
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	if release != nil {
		defer release()
	}
	select {
	case s.pictures <- picture{m, p.FrameFormat == mediaframe.FormatMJPEG, float64(p.FrameRate), time.Now()}:
	case <-s.quit:
		return false, nil
	}
	select {
	case <-s.taken:
		return true, nil
	case <-s.quit:
		return false, nil
	}
}

// end stops the driver and waits for it, but not for ever. It returns nil once all calls have come back, else what is closed when they have.
func (s *session) end() <-chan struct{} {
	s.mu.Lock()
	s.ending = true
	reads := s.reads
	s.mu.Unlock()
	close(s.quit)
	back := make(chan struct{})
	go func() {
		defer close(back)
		if reads {
			_ = contain(s.driver.Close) // it is over
		}
		<-s.done
	}()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-back:
		return nil
	case <-wait.C:
		return back
	}
}
