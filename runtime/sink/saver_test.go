package sink

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

func grey(t *testing.T) *camera.Frame {
	t.Helper()
	f, err := camera.NewFrame(frame.Gray, 64, 48, []frame.Plane{{Data: make([]byte, 64*48), Stride: 64}}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Every picture gets a file of its own, whatever the sources are called.
func TestSavedNamesAreUnique(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, err := NewSaver(dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"a/photo.jpg", "b/photo.jpg", "a/photo-2.jpg", "c/photo.png", "..", "what?size=1"} {
		if err := s.Result(ctx, &eyas.Result{Source: source, Model: "m", Picture: grey(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"photo-2-2.jpg", "photo-2.jpg", "photo.jpg", "photo.png", "picture.jpg", "what.jpg"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("saved %v, want %v", got, want)
	}
}

// Where one source lies in the folder no file of any source is overwritten.
func TestSourcesAreNotOverwritten(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	own := filepath.Join(dir, "photo.jpg")
	other := filepath.Join(dir, "sub", "photo.jpg")
	if err := os.Mkdir(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, other} {
		if err := os.WriteFile(path, []byte("original"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var sources []camera.Source
	for _, path := range []string{other, own} {
		source, err := camera.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
	}
	s, err := NewSaver(dir, sources, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, own} {
		if err := s.Result(ctx, &eyas.Result{Source: path, Model: "m", Picture: grey(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(own); err != nil || string(data) != "original" {
		t.Errorf("the source is now %.20q, %v", data, err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"photo-annotated-2.jpg", "photo-annotated.jpg", "photo.jpg", "sub"}) {
		t.Errorf("saved %v", got)
	}
}

// Clips of files come one after the other, and so do their encoders.
func TestOneEncoderForFiles(t *testing.T) {
	testenv.FFmpeg(t)
	ctx := context.Background()
	dir := t.TempDir()
	s, err := NewSaver(dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for clip := range 3 {
		for i := range 3 {
			err := s.Result(ctx, &eyas.Result{Source: fmt.Sprint(clip, ".mp4"), Model: "m", Frame: uint64(i),
				PTS: time.Duration(i) * 40 * time.Millisecond, HasPTS: true, Picture: grey(t)})
			if err != nil {
				t.Fatal(err)
			}
		}
		open := 0
		for _, c := range s.clips {
			if c.video != nil {
				open++
			}
		}
		if open > 1 {
			t.Errorf("%d encoders while clip %d is written", open, clip)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"0.mp4", "1.mp4", "2.mp4"}) {
		t.Errorf("saved %v", got)
	}
}

func TestSequence(t *testing.T) {
	var q Sequence
	for i, c := range []struct {
		source, model string
		frame         uint64
		want          bool
	}{
		{"a", "m", 0, true}, {"a", "n", 0, false}, {"a", "m", 1, true}, {"a", "n", 1, false},
		{"b", "n", 1, true}, {"b", "m", 1, true}, {"b", "m", 1, true},
	} {
		if got := q.Begins(&eyas.Result{Source: c.source, Model: c.model, Frame: c.frame}); got != c.want {
			t.Errorf("result %d (%+v): %v", i, c, got)
		}
	}
}
