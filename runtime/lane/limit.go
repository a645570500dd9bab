package lane

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Limit gives the memory back to the system that only batches above n need, of the arena and of the input buffers, and
// takes what batches up to n need, where an earlier call gave it back. It waits for a run under way and for each input
// buffer to be free. Larger batches still run and give the same, but wait for their pages: who calls Limit does
// not start them. One goroutine calls it at a time.
func (l *Lane) Limit(ctx context.Context, n int) error {
	need := l.Need(n)
	var failed error
	for range Inputs {
		var i int
		select {
		case i = <-l.free:
		case <-ctx.Done():
			return errors.Join(failed, ctx.Err())
		}
		failed = errors.Join(failed, keep(l.inputs[i].Data, need.Inputs/Inputs, unix.MADV_REMOVE))
		defer func() { l.free <- i }() // not before the other was had
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.arena == nil {
		return failed
	}
	advice := unix.MADV_DONTNEED
	if l.shared {
		advice = unix.MADV_REMOVE
	}
	return errors.Join(failed, keep(l.arena.Bytes()[:l.arena.Slots()], need.Slots, advice))
}

// keep makes the first n bytes of a mapping present and gives the whole pages behind them back.
func keep(mem []byte, n int64, advice int) error {
	page := os.Getpagesize()
	n = min(n, int64(len(mem)))
	_ = ort.LockTensor(&tensor.Tensor{Data: mem[:n]}) // present at least, see lockTensors
	rest := mem[min(int(pages(int(n))), len(mem)):]
	rest = rest[:len(rest)/page*page]
	if len(rest) == 0 {
		return nil
	}
	if err := unix.Munlock(rest); err != nil {
		return err
	}
	return unix.Madvise(rest, advice)
}
