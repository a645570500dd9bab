package ort

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of error of this package, for errors.Is.
var (
	// ErrLibrary: ONNX Runtime's library was not found or cannot be used.
	ErrLibrary = errors.New("onnx runtime library")
	// ErrProvider: the execution provider asked for cannot be had.
	ErrProvider = errors.New("execution provider")
	// ErrModel: ONNX Runtime does not take the model.
	ErrModel = errors.New("model")
	// ErrRun: a run, or the tensors bound for it, failed.
	ErrRun = errors.New("run")
	// ErrTerminated: the run was ended by Binding.Terminate. It is an ErrRun.
	ErrTerminated = fmt.Errorf("%w: terminated", ErrRun)
	// ErrQuota: the run needs more memory than Binding.Limit allows. It is an ErrRun.
	ErrQuota = fmt.Errorf("%w: quota", ErrRun)
)

// failure is an error of one of the kinds above whose text is the message alone,
// because users read it as one line.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func fail(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// maxMessage bounds a message of ONNX Runtime, in bytes: enough for the operator
// and the reason, short enough for a line that names the model before it and what to do behind.
const maxMessage = 200

var (
	// "/onnxruntime_src/onnxruntime/core/x.cc:123 onnxruntime::Class::Method(args) [with T = y] "
	reSource = regexp.MustCompile(`[^\s:]+\.(?:cc|cpp|h|hpp|cuh?):\d+ (?:(?:[\w:<>,&*~]+ )*[\w:<>,&*~]+\([^()]*\)(?: const)?(?: \[with [^\]]*\])? ?|[A-Z]\w*[a-z][A-Z]\w* )?`)
	// The model is named by whoever reports the error.
	reLoad  = regexp.MustCompile(`^(?:Error creating C session(?: from file)?: )?(?:Load model from .+? failed: ?)?`)
	reNode  = regexp.MustCompile(`Non-zero status code returned while running (\w+) node\. Name: ?'([^']*)' Status Message: `)
	reCode  = regexp.MustCompile(`\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : `)
	reSpace = regexp.MustCompile(`\s+`)
)

// whatToDo ends the error of a model that the library does not take or cannot run. On an accelerator the model
// may well be right.
func whatToDo(ep string) string {
	if ep != EPCPU {
		return "; see whether --ep cpu takes it"
	}
	return "; export the model again, or check it with onnx.checker"
}

// short makes one line of an error text of ONNX Runtime: no source locations, no
// stack trace, no control characters, at most maxMessage bytes.
func short(text string) string {
	if len(text) > 1<<16 {
		text = text[:1<<16]
	}
	if i := strings.Index(text, "Stacktrace:"); i >= 0 {
		text = text[:i]
	}
	text = reSource.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.TrimSpace(reSpace.ReplaceAllString(text, " "))
	text = reCode.ReplaceAllString(text, "")
	text = reLoad.ReplaceAllString(text, "")
	text = reNode.ReplaceAllString(text, "node '$2' ($1): ")
	text = strings.TrimSuffix(text, ".")
	if len(text) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	if text == "" {
		return "no reason given"
	}
	return text
}
