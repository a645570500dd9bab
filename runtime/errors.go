package runtime

import (
	"errors"
	"syscall"

	"github.com/eyas-edge/eyas/runtime/ort"
)

// The kinds of failure that a caller may want to tell apart; the error that is returned wraps
// one of them and says in one line what failed, on what, and what to do.
var (
	ErrConfig   = errors.New("configuration")      // bad usage or configuration: exit code 2
	ErrModel    = errors.New("model")              // the model cannot be used: exit code 3
	ErrLibrary  = errors.New("onnxruntime")        // no usable ONNX Runtime library: exit code 4
	ErrProvider = errors.New("execution provider") // a named execution provider cannot be had: exit code 4
	ErrBudget   = errors.New("memory")             // it does not fit the memory: exit code 4
	ErrSLO      = errors.New("slo")                // the machine cannot keep the latency asked for: exit code 4
	ErrNotYet   = errors.New("not yet")            // a part of the contract that this version lacks: exit code 2
	ErrClosed   = errors.New("runtime is closed")
)

// kind marks err as one of the kinds above without changing its text.
type kind struct {
	error
	is error
}

func (k kind) Is(target error) bool { return target == k.is }
func (k kind) Unwrap() error        { return k.error }

func as(is, err error) error {
	if err == nil || errors.Is(err, is) {
		return err
	}
	return kind{err, is}
}

// asRun says whose fault it is that a start could not run a model: the machine's if there was no memory for it, else
// the model's.
func asRun(err error) error {
	if errors.Is(err, syscall.ENOMEM) || errors.Is(err, ort.ErrQuota) {
		return as(ErrBudget, err)
	}
	return as(ErrModel, err)
}
