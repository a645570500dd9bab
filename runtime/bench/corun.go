package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/child"
)

// jobCorun is a child that wants memory beside the one that is measured, until its standard input ends. It answers twice: when it
// has begun, and with what it has done.
const jobCorun = "corun"

// The co-runners.
const (
	alone   = "alone"
	bursts  = "bursts"  // allocates, touches and frees, and reads a file that its control group does not hold
	streams = "streams" // copies from one end of its memory to the other
)

// Corun is what a co-runner has done.
type Corun struct {
	Rounds int   `json:"rounds"`
	Bytes  int64 `json:"bytes"` // touched, read or copied
}

const (
	streamBytes = 64 << 20
	fileStep    = 1 << 20
)

// corun is the child's part.
func (q request) corun(ctx context.Context, in io.Reader, out io.Writer) (reply, error) {
	var ended atomic.Bool
	defer context.AfterFunc(ctx, func() { ended.Store(true) })()
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is the sign, whatever it is
		ended.Store(true)
	}()
	if err := json.NewEncoder(out).Encode(reply{Corun: &Corun{}}); err != nil {
		return reply{}, err
	}
	var c Corun
	var err error
	switch q.Candidate {
	case bursts:
		err = c.bursts(q, &ended)
	case streams:
		c.streams(&ended)
	default:
		err = fmt.Errorf("co-runner %q is not known", q.Candidate)
	}
	return reply{Corun: &c}, err
}

// bursts allocates, touches and frees, and reads on in its file; then it rests for as long as that took.
func (c *Corun) bursts(q request, ended *atomic.Bool) error {
	f, err := os.Open(q.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if q.Bytes <= 0 || q.Bytes > 1<<40 {
		return fmt.Errorf("bursts of %d bytes", q.Bytes)
	}
	buf := make([]byte, fileStep)
	var at int64
	for !ended.Load() {
		start := time.Now()
		mem, err := unix.Mmap(-1, 0, int(q.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < len(mem); i += os.Getpagesize() {
			mem[i] = 1
		}
		if err := unix.Munmap(mem); err != nil {
			return err
		}
		for n := int64(0); n < q.Bytes; n += fileStep {
			switch _, err := f.ReadAt(buf, at); {
			case errors.Is(err, io.EOF):
				at = 0
			case err != nil:
				return err
			default:
				at += fileStep
			}
		}
		c.Rounds++
		c.Bytes += 2 * q.Bytes
		time.Sleep(time.Since(start))
	}
	return nil
}

// streams copies without a pause.
func (c *Corun) streams(ended *atomic.Bool) {
	from, to := make([]byte, streamBytes), make([]byte, streamBytes)
	for !ended.Load() {
		copy(to, from)
		c.Rounds++
		c.Bytes += streamBytes
	}
}

// corunner is the parent's side: a co-runner that goes on until stop.
type corunner struct {
	child   *child.Child
	answers *json.Decoder
}

// startCorunner returns once it has begun.
func (b *bench) startCorunner(ctx context.Context, q request) (*corunner, error) {
	env, err := b.complete(&q)
	if err != nil {
		return nil, err
	}
	c, err := child.Start(ctx, child.Spec{Program: b.Self[0], Args: b.Self[1:], Stdin: true, Stdout: true, Env: env})
	if err != nil {
		return nil, err
	}
	r := &corunner{c, json.NewDecoder(io.LimitReader(c.Stdout(), maxReply))}
	err = json.NewEncoder(c.Stdin()).Encode(q)
	if err == nil {
		_, err = r.answer()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("co-runner %s: %w", q.Candidate, err), c.Stop())
	}
	return r, nil
}

func (r *corunner) answer() (*Corun, error) {
	var rep reply
	if err := r.answers.Decode(&rep); errors.Is(err, io.EOF) {
		return nil, cmp.Or(r.child.Wait(), err) // a child that failed says more
	} else if err != nil {
		return nil, err
	}
	if rep.Error != "" {
		return nil, errors.New(rep.Error)
	}
	if rep.Corun == nil {
		return nil, errors.New("it did not answer")
	}
	return rep.Corun, nil
}

// stop ends it; what it has done is nil where it did not live so long.
func (r *corunner) stop() *Corun {
	defer r.child.Stop()
	if r.child.Stdin().Close() != nil {
		return nil
	}
	stuck := time.AfterFunc(corunGrace, func() { _ = r.child.Stop() })
	defer stuck.Stop()
	done, err := r.answer()
	if err != nil {
		return nil
	}
	return done
}

// corunGrace is how long a co-runner may take to end: one burst.
const corunGrace = 10 * time.Second
