package v4l2

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// Captured is what the camera gave since the last call of Next: at most one frame to use, and how many others.
type Captured struct {
	Data     []byte // the frame as the driver wrote it, until the next call; nil if none came whole
	At       time.Time
	ByDriver bool // At is the driver's, not that of the arrival

	Lost       int   // frames that the driver left out, by their numbers
	Corrupt    int   // frames that came damaged or cut off
	Why        error // what was wrong with the last of them
	Superseded int   // frames that a newer one took the place of
}

// Errors of single frames.
var (
	errMarked = errors.New("the driver marked the frame as damaged")
	errRead   = errors.New("the driver could not read the frame")
	errEmpty  = errors.New("the frame is empty")
)

// maxFailures is how many errors in a row a camera may report before it is opened anew.
const maxFailures = 10

// maxLost is the largest gap between two numbers that counts frames; beyond it the driver counts anew.
const maxLost = 1000

// Next waits for the next frame, and of several that are there takes the newest. An error ends the connection: Close is next.
func (s *Capture) Next() (c Captured, err error) {
	if s.held >= 0 {
		i := s.held
		s.held = -1
		if err := s.queue(i); err != nil {
			return c, err
		}
	}
	for {
		failing, err := s.wait()
		if err != nil {
			return c, err
		}
		none, err := s.drain(&c)
		switch {
		case err != nil:
			return c, err
		case none && failing:
			return c, fmt.Errorf("%s reports a failure", s.path)
		case none:
			if s.failures++; s.failures > maxFailures {
				return c, fmt.Errorf("%s announces frames that do not come", s.path)
			}
		case c.Data != nil || c.Corrupt > 0:
			return c, nil
		}
	}
}

// wait waits for the driver. failing says that it reports an error.
func (s *Capture) wait() (failing bool, err error) {
	for {
		_, err := unix.Poll(s.polls[:], -1)
		switch {
		case s.ctx.Err() != nil:
			return false, s.ctx.Err()
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, fmt.Errorf("poll: %w", err)
		default:
			return s.polls[0].Revents&unix.POLLIN == 0, nil
		}
	}
}

// drain takes what is there, up to as many frames as there are buffers: a driver that fills them faster would never let it
// end. none says that nothing was there.
func (s *Capture) drain(c *Captured) (none bool, err error) {
	for n := range s.memory {
		i, fault, err := s.dequeue(c)
		switch {
		case err == unix.EAGAIN:
			return n == 0, nil
		case err != nil:
			return false, err
		case i < 0:
			c.Corrupt, c.Why = c.Corrupt+1, fault
			return false, nil
		case fault != nil:
			c.Corrupt, c.Why = c.Corrupt+1, fault
			err = s.queue(i)
		default:
			err = s.take(i, c)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// take makes a whole frame the one to use, in place of an older one.
func (s *Capture) take(i int, c *Captured) error {
	s.failures = 0
	older := s.held
	s.held = i
	c.Data = s.memory[i][:s.buffer.BytesUsed]
	c.At, c.ByDriver = stamp(&s.buffer)
	if older < 0 {
		return nil
	}
	c.Superseded++
	return s.queue(older)
}

// dequeue takes buffer i back from the driver; i is -1 for a frame that was lost on the way. fault is what is wrong with the
// frame. err ends the connection, or is EAGAIN if there is no frame.
func (s *Capture) dequeue(c *Captured) (i int, fault, err error) {
	b := &s.buffer
	*b = abi.Buffer{Type: abi.TypeVideoCapture, Memory: abi.MemoryMap}
	switch err := s.dev.ioctl(abi.DQBuf, unsafe.Pointer(b)); {
	case err == unix.EIO: // often for a moment only
		if s.failures++; s.failures > maxFailures {
			return -1, nil, s.failed("read from", err)
		}
		return -1, errRead, nil
	case err == unix.EAGAIN:
		return -1, nil, err
	case err != nil:
		return -1, nil, s.failed("read from", err)
	}
	i = int(b.Index)
	if i >= len(s.memory) || !s.queued[i] {
		return -1, nil, fmt.Errorf("read from %s: the driver names buffer %d, which it does not have", s.path, b.Index)
	}
	s.queued[i] = false
	if lost := b.Sequence - s.sequence - 1; s.counting && lost <= maxLost {
		c.Lost += int(lost)
	}
	s.sequence, s.counting = b.Sequence, true
	return i, s.check(b), nil
}

// check says what is wrong with a frame.
func (s *Capture) check(b *abi.Buffer) error {
	switch {
	case b.Flags&abi.BufError != 0:
		return errMarked
	case b.BytesUsed == 0:
		return errEmpty
	case int(b.BytesUsed) < s.format.need:
		return fmt.Errorf("the frame has %d of %d bytes", b.BytesUsed, s.format.need)
	case int(b.BytesUsed) > len(s.memory[b.Index]):
		return fmt.Errorf("the driver says %d bytes of %d", b.BytesUsed, len(s.memory[b.Index]))
	}
	return nil
}
