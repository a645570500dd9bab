package lane

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/models"
)

// present returns the bytes of a lane that are in memory.
func present(t *testing.T, l *Lane) (sum int64) {
	t.Helper()
	for _, mem := range append(l.Tensors(), l.Arena().Bytes()) {
		n, err := machine.Present(mem)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// A limit gives back what larger batches need, in either kind of memory, and takes it again; results stay the same all
// the time.
func TestLimit(t *testing.T) {
	for name, shared := range map[string]bool{"private": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			l, list := programs(t, Options{}, []int{1, 4}, models.Size{}, "yolox_nano_dynbatch")
			if err := l.Place(t.Context(), shared); err != nil {
				t.Fatal(err)
			}
			all := present(t, l)
			run := func(n int) []byte {
				s := take(t, list[0])
				defer s.Put()
				for range n {
					if err := s.Fill(picture(t, 416, 300)); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				return bytes.Clone(s.Outputs()[0].Data)
			}
			one, four := run(1), run(4)
			small, large := l.Need(1), l.Need(4)
			gain := large.Slots + large.Inputs - small.Slots - small.Inputs
			for range 2 {
				if err := l.Limit(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if got, least := all-present(t, l), gain-4*int64(os.Getpagesize()); got < least || got > gain {
					t.Errorf("%d bytes were given back, of %d", got, gain)
				}
				if !bytes.Equal(run(1), one) {
					t.Error("a batch of 1 gives another answer under the limit")
				}
				if err := l.Limit(t.Context(), math.MaxInt); err != nil {
					t.Fatal(err)
				}
				if got := present(t, l); got != all {
					t.Errorf("%d bytes without a limit, there were %d", got, all)
				}
				if !bytes.Equal(run(4), four) {
					t.Error("a batch of 4 gives another answer after the limit")
				}
			}
			if err := l.Limit(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(run(4), four) {
				t.Error("a batch of 4 gives another answer under a limit of 1")
			}
			s := take(t, list[0])
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Limit(ctx, math.MaxInt); !errors.Is(err, context.Canceled) {
				t.Errorf("with an input buffer in use: %v", err)
			}
			s.Put()
		})
	}
}
