package runtime

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

func sample() *Result {
	return &Result{
		Source: "door", Model: "ppe", Frame: 7,
		Captured:   time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC),
		CapturedBy: frame.ByDriver, Age: 38250 * time.Microsecond,
		Width: 1280, Height: 720,
		Detections: []Detection{{Class: "person", Score: 0.913, Box: [4]float32{12.5, 40, 220.25, 700}}},
		Timing: Timing{
			Queue: 1500 * time.Microsecond, Pre: 2 * time.Millisecond,
			Infer: 30125 * time.Microsecond, Post: 250 * time.Microsecond, Batch: 1,
		},
	}
}

// The documentation shows what the code writes.
func TestResultIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	if line := string(sample().AppendJSON(nil)); !strings.Contains(string(doc), "\n"+line+"\n") {
		t.Errorf("docs/results.md does not show this line:\n%s", line)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, e := range []Event{
		{Kind: "ready", Time: at, Took: 182500 * time.Microsecond},
		{Kind: "source", Time: at, Source: "clip.mp4", State: "open"},
		{Kind: "warning", Time: at, Model: "ppe", Text: "model ppe: every score was 0 on the first 8 pictures"},
		{Kind: "summary", Time: at, Frames: 38, Detections: 120, Took: 1500 * time.Millisecond},
	} {
		if line := string(e.AppendJSON(nil)); !strings.Contains(string(doc), "\n"+line+"\n") {
			t.Errorf("docs/results.md does not show this line:\n%s", line)
		}
	}
}

// Whatever a result holds, the line is JSON that reads back as what was written.
func TestResultIsAlwaysJSON(t *testing.T) {
	r := sample()
	r.Source = "a\"b\\c\n\x00\x7f\xff é 漢 \u2028"
	r.Captured, r.HasPTS, r.PTS = time.Time{}, true, 40*time.Millisecond
	r.Detections = append(r.Detections, Detection{Score: float32(math.NaN()), Box: [4]float32{float32(math.Inf(1)), -1}})
	var back struct {
		Source     string
		PTS        float64 `json:"pts_ms"`
		Captured   *string
		Detections []struct{ Score float64 }
	}
	line := r.AppendJSON(nil)
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	want := "a\"b\\c\n\x00\x7f\ufffd é 漢 \u2028"
	if back.Source != want || back.PTS != 40 || back.Captured != nil || len(back.Detections) != 2 {
		t.Errorf("read back as %+v", back)
	}
}

func TestResultsAreWrittenWithoutAllocation(t *testing.T) {
	r := sample()
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = r.AppendJSON(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}
