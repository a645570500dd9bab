package camera

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/eyas-edge/eyas/camera/picture"
)

// mjpegScript is a stream that gives one chunk for each token, and says when it is asked for the next one.
type mjpegScript struct {
	chunks [][]byte
	asked  chan int // how many chunks were given before
	next   chan bool
	given  int
}

func (s *mjpegScript) Read(p []byte) (int, error) {
	s.asked <- s.given
	if !<-s.next {
		return 0, io.EOF
	}
	s.given++
	return copy(p, s.chunks[(s.given-1)%len(s.chunks)]), nil
}

// mjpegScripted is a Connector of a mjpegScript.
type mjpegScripted struct{ *mjpegScript }

func (p mjpegScripted) Connect(ctx context.Context, out *Output) error {
	err := playMJPEG(ctx, func() { close(p.next) }, newMJPEGScanner(p.mjpegScript, ""), out, 1<<20)
	return Permanent(err)
}

// oneByOne is a sink that takes frames one by one when it is told to.
type oneByOne struct {
	stated
	frames chan string
	more   chan bool
}

func (s *oneByOne) Frame(_ context.Context, f *Frame) error {
	s.frames <- fmt.Sprintf("%d level %d", f.Seq, f.Planes[0].Data[0])
	f.Release()
	<-s.more
	return nil
}

// TestMJPEGNewestWins checks that what comes while a picture is worked on is read, that the newest of it is taken,
// and that what it overtakes is counted as what it was.
func TestMJPEGNewestWins(t *testing.T) {
	s := &mjpegScript{asked: make(chan int), next: make(chan bool)}
	for i := range 6 {
		s.chunks = append(s.chunks, greyJPEG(t, 64, 48, 10*i))
	}
	s.chunks[2] = s.chunks[2][:len(s.chunks[2])-10] // which shows with the next one
	s.chunks[3] = []byte("\xff\xd8\xff\xd9")
	sink := &oneByOne{frames: make(chan string), more: make(chan bool)}
	src := Supervise("cam", mjpegScripted{s}, Every(1)).(*supervised)
	ended := make(chan error)
	go func() { ended <- src.Run(t.Context(), sink) }()
	want := func(frame string) {
		t.Helper()
		if got := <-sink.frames; got != frame {
			t.Errorf("%s, want %s", got, frame)
		}
	}
	<-s.asked
	s.next <- true
	want("0 level 0") // which is worked on
	for range 5 {
		<-s.asked
		s.next <- true
	}
	<-s.asked // all were read
	sink.more <- true
	want("5 level 50")
	sink.more <- true
	s.next <- false
	if err := <-ended; err == nil || err.Error() != "source cam: the camera ended the stream" {
		t.Error(err)
	}
	if st := src.Stats(); st.Dropped != (Drops{Superseded: 2, Corrupt: 2}) || st.Captured != 6 {
		t.Errorf("%+v", st)
	}
}

// TestMJPEGAllocations checks that nothing is allocated per frame once the first ones are through.
func TestMJPEGAllocations(t *testing.T) {
	if picture.JPEGDecoder() == "go" {
		t.Skip("image/jpeg allocates each picture")
	}
	const warm, frames = 20, 200
	s := &mjpegScript{chunks: [][]byte{greyJPEG(t, 320, 240, 1), greyJPEG(t, 320, 240, 2)}, asked: make(chan int), next: make(chan bool)}
	sink := &counting{frames: make(chan uint64)}
	src := Supervise("cam", mjpegScripted{s})
	ended := make(chan error)
	go func() { ended <- src.Run(t.Context(), sink) }()
	var before, after runtime.MemStats
	for i := range warm + frames {
		if i == warm {
			runtime.ReadMemStats(&before)
		}
		<-s.asked
		s.next <- true
		<-sink.frames
	}
	runtime.ReadMemStats(&after)
	<-s.asked
	s.next <- false
	<-ended
	// The runtime itself takes a few blocks at times.
	if n := after.Mallocs - before.Mallocs; n > frames/10 {
		t.Errorf("%d allocations for %d frames", n, frames)
	}
}

// counting is a sink that only tells that frames came.
type counting struct {
	stated
	frames chan uint64
}

func (c *counting) Frame(_ context.Context, f *Frame) error {
	n := f.Seq
	f.Release()
	c.frames <- n
	return nil
}
