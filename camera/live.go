package camera

import (
	"fmt"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/rate"
)

// Cause says why a captured frame never became a result.
type Cause uint8

// The causes. A source counts those that are Corrupt, Stalled and NoSlot, its sink the others.
const (
	Late       Cause = iota // its deadline had passed
	Superseded              // a newer frame came while it waited
	Corrupt                 // its bytes are damaged or cut off
	Stalled                 // the camera went silent: one for each time
	NoSlot                  // every slot of the ring was held when it came
	Unfinished              // it waited when the run was told to end
	causes
)

var causeNames = [causes]string{"late", "superseded", "corrupt", "stalled", "no slot", "unfinished"}

// String returns the word that results and metrics use.
func (c Cause) String() string {
	if c < causes {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// Drops counts frames by cause.
type Drops [causes]uint64

// Total returns the frames of all causes.
func (d *Drops) Total() (n uint64) {
	for _, each := range d {
		n += each
	}
	return n
}

// Each calls see for every cause, in order, also for those without a frame.
func (d *Drops) Each(see func(cause string, n uint64)) {
	for c, n := range d {
		see(causeNames[c], n)
	}
}

// State is what a live source is doing.
type State uint8

// The states of a live source.
const (
	StateConnecting State = iota // for the first time
	StateOpen                    // frames come
	StateLost                    // it was open, or could not be opened, and is tried again
)

var stateNames = [...]string{"connecting", "open", "lost"}

// String returns the word that events and metrics use.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Stats is what a live source says of itself.
type Stats struct {
	State         State
	Err           error // the trouble while it is lost
	Format        frame.Format
	Width, Height int     // of the frames, or what is expected before the first; 0 if that is not known
	FPS           float64 // as the camera says; 0 if it does not
	Captured      uint64  // frames, whatever became of them
	Rate          float64 // of them in a second, over the last few
	Dropped       Drops
	Connects      uint64 // connections that gave a frame
	Memory        int64  // bytes of the ring that its frames lie in, or lay in until it ended; 0 before the first and for files
}

// Monitored is what every source of Open and Supervise is. Its methods may be called from any goroutine.
type Monitored interface {
	Source
	Stats() Stats
	// RingBytes returns the shared memory that the frames of a live source take, or are expected to take: before one has come
	// 1920x1080 in nv12 stands for what is not known. It is 0 for a file.
	RingBytes() int64
	// Reserve has fn asked before that memory is taken, so many bytes in all, and again when the shape of the frames
	// changes. An error ends the source. It is called before Run.
	Reserve(fn func(bytes int64) error)
	// Wait makes room for frames of a live source that may wait to be taken: for as long as d, but at most n. It is called
	// before Run, too.
	Wait(d time.Duration, n int)
}

// Stats is Monitored's.
func (b *base) Stats() Stats { return b.monitor.Stats() }

// Reserve is Monitored's.
func (b *base) Reserve(fn func(bytes int64) error) { b.reserve = fn }

// Wait is Monitored's.
func (b *base) Wait(d time.Duration, n int) { b.opts.wait, b.opts.mostWait = d, n }

// RingBytes is Monitored's.
func (b *base) RingBytes() int64 {
	st := b.Stats()
	switch {
	case !b.live:
		return 0
	case st.Memory > 0:
		return st.Memory
	}
	s := shape{format: st.Format, w: st.Width, h: st.Height}
	if s.format == frame.Unknown {
		s.format = frame.NV12
	}
	if s.w == 0 || s.h == 0 {
		s.w, s.h = 1920, 1080
	}
	return s.ring(b.opts.slots(st.FPS)).Bytes()
}

// monitor keeps the Stats of a source.
type monitor struct {
	mu   sync.Mutex
	s    Stats
	rate rate.Meter
}

// Stats returns a copy.
func (m *monitor) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.Rate = m.rate.PerSecond(time.Now())
	return m.s
}

func (m *monitor) set(change func(*Stats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.s)
}

func (m *monitor) captured(n uint64) {
	m.rate.Add(time.Now())
	m.mu.Lock()
	m.s.Captured = n
	m.mu.Unlock()
}

func (m *monitor) dropped(c Cause) {
	m.mu.Lock()
	m.s.Dropped[c]++
	m.mu.Unlock()
}

// Timing bounds the waits of a supervised source. Zero values stand for the defaults.
type Timing struct {
	Connect    time.Duration // until the camera has said what it gives; 10 seconds
	FirstFrame time.Duration // from then until the first whole frame; 10 seconds
	Stall      time.Duration // between two whole frames, at least five times their interval; 5 seconds
	MinBackoff time.Duration // after the first failure; 500 milliseconds, doubled for each further one
	MaxBackoff time.Duration // 10 seconds
}

func (t Timing) orDefaults() Timing {
	def := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	def(&t.Connect, 10*time.Second)
	def(&t.FirstFrame, 10*time.Second)
	def(&t.Stall, 5*time.Second)
	def(&t.MinBackoff, 500*time.Millisecond)
	def(&t.MaxBackoff, 10*time.Second)
	return t
}
