package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// A child that misbehaves ends in time and in one line.
func TestBadChildren(t *testing.T) {
	for _, c := range []struct {
		name, as string
		limit    time.Duration
		want     string
		is       error
	}{
		{"hangs", "child-hangs", 50 * time.Millisecond, "took too long", nil},
		{"fails", "child-fails", time.Minute, "exit status 3: no memory left", nil},
		{"writes no JSON", "child-babbles", time.Minute, "damaged", nil},
		{"writes without end", "child-floods", time.Minute, "does not end", nil},
		{"does not answer", "child-empty", time.Minute, "did not measure", nil},
		{"says what is wrong", "child-refuses", time.Minute, "model x: it is broken", eyas.ErrModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), c.limit)
			defer cancel()
			_, err := exchange(ctx, self(c.as), nil, request{Job: jobTime})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q in one line", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := exchange(ctx, self("child-hangs"), nil, request{Job: jobTime}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// What a child is asked and cannot do is an answer with its kind; a request that is none is an error.
func TestBadRequests(t *testing.T) {
	for _, c := range []struct{ name, text, reply, kind string }{
		{"empty", "", "", ""},
		{"no JSON", "hello", "", ""},
		{"another version", `{"version":99}`, "", ""},
		{"unknown field", `{"version":1,"jobs":"x"}`, "", ""},
		{"no configuration", `{"version":1,"job":"time"}`, "the file is empty", "config"},
		{"damaged configuration", `{"version":1,"job":"time","config":"a: ["}`, "1:", "config"},
		{"model is missing", `{"version":1,"job":"time","config":"threads: 1\n","model":"x"}`, "model x is not in the request", "config"},
		{"no library", `{"version":1,"job":"time","config":"ort: /nowhere/libonnxruntime.so\n","cache":"` + t.TempDir() + `"}`, "onnx runtime", "library"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Child(t.Context(), strings.NewReader(c.text), &out)
			if c.reply == "" {
				if err == nil || out.Len() > 0 {
					t.Errorf("error %v, answer %s", err, out.String())
				}
				return
			}
			var r reply
			if err := errors.Join(err, json.Unmarshal(out.Bytes(), &r)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(r.Error, c.reply) || r.Kind != c.kind {
				t.Errorf("answer %+v, want %q of kind %q", r, c.reply, c.kind)
			}
		})
	}
}
