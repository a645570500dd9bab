package ring

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// small is a layout with two planes and odd sizes.
var small = Layout{Format: frame.NV12, Colour: frame.Colour{Matrix: frame.BT709, Full: true}, Width: 33, Height: 17, Slots: 3}

func newRing(t testing.TB, l Layout) *Ring {
	t.Helper()
	r, err := New(t.Name(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func reader(t testing.TB, r *Ring) *Reader {
	t.Helper()
	rd, err := open(r.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rd.Close(); err != nil {
			t.Error(err)
		}
	})
	return rd
}

func fill8(p []byte, v byte) {
	for i := range p {
		p[i] = v
	}
}

func publish(t testing.TB, r *Ring, seq uint64) {
	t.Helper()
	f := r.Begin()
	if f == nil {
		t.Fatal("no free slot")
	}
	f.Seq = seq
	fill8(r.Packed(f), byte(seq))
	r.Publish(f)
	f.Release()
}

func TestAFrameOfABeginHasTheLayout(t *testing.T) {
	r := newRing(t, small)
	f := r.Begin()
	defer f.Release()
	if f.Format != small.Format || f.Colour != small.Colour || f.Width != 33 || f.Height != 17 || len(f.Planes) != 2 {
		t.Errorf("got %+v", f)
	}
	pix := r.Packed(f)
	if len(pix) != small.Format.Bytes(33, 17) || &pix[0] != &f.Planes[0].Data[0] || &pix[33*17] != &f.Planes[1].Data[0] {
		t.Error("the planes do not lie one behind the other")
	}
	other := newRing(t, small)
	if other.Packed(f) != nil {
		t.Error("a frame of another ring has a slot")
	}
	other.Publish(f)
	if err := reader(t, other).Newest(new(Snapshot)); !errors.Is(err, ErrNoFrame) {
		t.Errorf("a frame of another ring is published: %v", err)
	}
}

func TestBeginTakesTheFreeSlotPublishedLongestAgo(t *testing.T) {
	r := newRing(t, small)
	a, b, c := r.Begin(), r.Begin(), r.Begin()
	if a == nil || b == nil || c == nil || r.Begin() != nil {
		t.Fatal("three slots do not make three frames")
	}
	for _, f := range []*frame.Frame{c, a, b} { // published in this order
		r.Publish(f)
	}
	a.Retain()
	for _, f := range []*frame.Frame{b, a, c} {
		f.Release()
	}
	if got := r.Begin(); got != c {
		t.Error("not the one published longest ago")
	}
	if got := r.Begin(); got != b {
		t.Error("not the only one that is free")
	}
	if r.Begin() != nil {
		t.Error("a held slot is given away")
	}
	a.Release()
	if got := r.Begin(); got != a {
		t.Error("a released slot is not free")
	}
	b.Release() // never published: nothing is lost with it
	a.Release()
	c.Release()
}

func TestTheNewestFrameIsRead(t *testing.T) {
	r := newRing(t, small)
	rd := reader(t, r)
	var s Snapshot
	if err := rd.Newest(&s); !errors.Is(err, ErrNoFrame) {
		t.Errorf("an empty ring: %v", err)
	}
	captured := time.Now().Add(-time.Second)
	for seq := range uint64(10) {
		f := r.Begin()
		f.Seq, f.Captured, f.CapturedBy = seq*2, captured, frame.ByDriver
		fill8(r.Packed(f), byte(seq))
		r.Publish(f)
		r.Publish(f) // once is enough
		f.Release()
		if err := rd.Newest(&s); err != nil {
			t.Fatal(err)
		}
		if s.Seq != seq*2 || s.Count != seq+1 || s.CapturedBy != frame.ByDriver || s.Planes[1].Data[7] != byte(seq) || s.Colour != small.Colour {
			t.Errorf("frame %d is read as %d, %+v", seq, s.Count, s.Frame)
		}
		if d := s.Captured.Sub(captured); d.Abs() > time.Millisecond {
			t.Errorf("the capture time is off by %v", d)
		}
	}
	if st := rd.Status(); st.Frames != 10 || st.Rate <= 0 || st.Age < 0 || rd.Closed() {
		t.Errorf("status %+v", st)
	}
}

func TestABegunSlotIsInvalid(t *testing.T) {
	r := newRing(t, Layout{Format: frame.Gray, Width: 8, Height: 8, Slots: 1})
	rd := reader(t, r)
	publish(t, r, 1)
	var s Snapshot
	if err := rd.Newest(&s); err != nil {
		t.Fatal(err)
	}
	f := r.Begin()
	if err := rd.Newest(&s); !errors.Is(err, ErrBusy) {
		t.Errorf("a slot that is being written is read: %v", err)
	}
	f.Release()
	if err := rd.Newest(&s); !errors.Is(err, ErrBusy) {
		t.Errorf("a slot that was given back unwritten is read: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rd.Wait(over, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait for a whole frame ends with %v", err)
	}
	publish(t, r, 2)
	if err := rd.Newest(&s); err != nil || s.Seq != 2 || s.Count != 2 {
		t.Errorf("got %d, %v", s.Seq, err)
	}
}

func TestFramesOutliveTheirRing(t *testing.T) {
	r := newRing(t, small)
	rd := reader(t, r)
	f, g := r.Begin(), r.Begin()
	g.Release()
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r.Begin() != nil {
		t.Error("a closed ring gives a frame")
	}
	fill8(r.Packed(f), 9) // would be a fault if the memory were gone
	f.Release()
	if r.enter() {
		t.Error("the memory stays when the last frame is released")
	}
	if !rd.Closed() {
		t.Error("readers are not told")
	}
	if err := rd.Wait(t.Context(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("waiting on a ring that is over: %v", err)
	}
}

// A reader that waits is woken by a frame and by the end.
func TestWaiting(t *testing.T) {
	r := newRing(t, small)
	rd := reader(t, r)
	waited := make(chan error)
	go func() {
		for count := uint64(0); ; count++ {
			err := rd.Wait(t.Context(), count)
			waited <- err
			if err != nil {
				return
			}
		}
	}()
	for seq := range uint64(50) {
		publish(t, r, seq)
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, ErrClosed) {
		t.Errorf("the end is told as %v", err)
	}
}

func TestNothingIsAllocatedPerFrame(t *testing.T) {
	r := newRing(t, small)
	rd := reader(t, r)
	var s Snapshot
	publish(t, r, 0)
	if err := rd.Newest(&s); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		f := r.Begin()
		f.Captured = now
		r.Publish(f)
		f.Release()
		_ = rd.Newest(&s)
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
