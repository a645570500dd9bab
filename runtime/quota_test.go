package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	eyas "github.com/eyas-edge/eyas/runtime"
)

func grey(t *testing.T, level byte) *camera.Frame {
	t.Helper()
	f, err := camera.NewFrame(frame.Gray, 64, 64, []frame.Plane{{Data: bytes.Repeat([]byte{level}, 64*64), Stride: 64}}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A model that wants more memory for some pictures than was planned gets it out of its headroom, counted, and
// plans for it at the next start. Beyond its headroom it fails alone: the model beside it gives the same results.
func TestHungryModel(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	hungry, steady := hungryYOLO(t), tinyYOLO(t, 1)
	start := func(headroom eyas.Size) *eyas.Runtime {
		return open(t, eyas.Config{Headroom: headroom, Models: map[string]eyas.ModelConfig{"hungry": {Path: hungry}, "steady": {Path: steady}}})
	}
	ctx := context.Background()
	look := func(rt *eyas.Runtime, model string, level byte) (string, error) {
		res, err := rt.Model(model).Detect(ctx, grey(t, level))
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.Detections), nil
	}
	const dark, bright = 90, 240

	rt := start(64 << 10)
	want := map[byte]string{}
	for _, level := range []byte{dark, bright} {
		s, err := look(rt, "steady", level)
		if err != nil || s == "[]" {
			t.Fatalf("%s, %v", s, err)
		}
		want[level] = s
	}
	for round := range 3 {
		for _, level := range []byte{bright, dark} {
			_, err := look(rt, "hungry", level)
			if level == bright && !errors.Is(err, eyas.ErrBudget) || level == dark && err != nil {
				t.Errorf("round %d, level %d: %v", round, level, err)
			}
			if s, err := look(rt, "steady", level); err != nil || s != want[level] {
				t.Errorf("round %d, level %d: the model beside gives %s, %v; want %s", round, level, s, err, want[level])
			}
		}
	}
	rt.Close()

	rt = start(4 << 20)
	for range 3 {
		for _, level := range []byte{bright, dark} {
			// Both models have the same weights, and the branch adds nothing.
			if s, err := look(rt, "hungry", level); err != nil || s != want[level] {
				t.Errorf("level %d: %s, %v; want %s", level, s, err, want[level])
			}
		}
	}
	u := rt.Memory()
	if u.Heap.Count == 0 || u.Recordings == 0 {
		t.Errorf("more memory than was planned came from nowhere: %+v", u)
	}
	rt.Close()

	rt = start(64 << 10)
	if s, err := look(rt, "hungry", bright); err != nil || s != want[bright] {
		t.Errorf("the next start has not planned for it: %s, %v", s, err)
	}
	if u := rt.Memory(); u.Heap.Count != 0 {
		t.Errorf("the next start has not planned for it: %+v", u)
	}
}
