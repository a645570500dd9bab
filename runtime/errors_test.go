package runtime

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/eyas-edge/eyas/runtime/ort"
)

// A start that finds no memory is not the model's fault.
func TestFailedRunsAtAStart(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"no error", nil, nil},
		{"no address space", fmt.Errorf("arena: map 8 bytes: %w", syscall.ENOMEM), ErrBudget},
		{"over the quota", fmt.Errorf("m: %w", ort.ErrQuota), ErrBudget},
		{"a failed run", ort.ErrRun, ErrModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := asRun(c.err); !errors.Is(err, c.want) || c.want == ErrBudget && errors.Is(err, ErrModel) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
