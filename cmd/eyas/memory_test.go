package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/memplan"
)

// timeless takes the times out of result lines.
func timeless(text string) string {
	return regexp.MustCompile(`,"(timing":\{[^}]*\}|age_ms":[0-9.]+)`).ReplaceAllString(text, "")
}

// Where memory lies, and whether the arena is checked, changes no digit of the results.
func TestMemoryFlagsChangeNoResult(t *testing.T) {
	for _, model := range []string{"yolox_nano_person_192", "yolox_nano_end2end", "nanodet_m_416", "yolo11n_int8_320_op12", "yolov8n_seg_int8_320"} {
		t.Run(model, func(t *testing.T) {
			args := []string{"run", "-q", "--threads", "2", "-m", modelFile(t, model), picture(t, "classic/zidane.jpg"), picture(t, "classic/bus.jpg")}
			var want string
			for _, flags := range [][]string{nil, {"--check-arena"}, {"--check-arena", "--no-cache"}, {"--placement", "shared"}, {"--placement", "shared", "--check-arena"}} {
				o := call(t, append(args, flags...)...)
				o.want(t, 0)
				got := timeless(o.stdout)
				if flags == nil {
					want = got
				}
				if len(results(t, o.stdout)) != 2 || got != want {
					t.Errorf("%v: %s, want %s", flags, got, want)
				}
			}
		})
	}
}

// A run of some length ends with what it took; a shorter one with --events says it there. A budget and a quota below
// the need are refused with both numbers.
func TestRunSaysWhatItTook(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	args := fast(t, "test:pattern?size=320x240&frames=40", "--events")
	var total int64
	for start := range 2 {
		o := call(t, args...)
		o.want(t, 0)
		lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
		for i, text := range []string{"memory over 40 frames: ", " weights ", "planned ", "measured ", "fragmentation ", "tensors served by the arena ", "per frame "} {
			if len(lines) != 7 || !strings.Contains(lines[i], text) {
				t.Fatalf("the report is\n%s\nwant %q in line %d of 7", o.stderr, text, i+1)
			}
		}
		last := o.stdout[strings.LastIndex(strings.TrimSpace(o.stdout), "\n")+1:]
		var summary struct{ Memory memplan.Usage }
		if err := json.Unmarshal([]byte(last), &summary); err != nil {
			t.Fatalf("%v in %s", err, last)
		}
		u := summary.Memory
		if u.Frames != 40 || u.Arena.Count == 0 || u.Heap.Count != 0 || (u.Recordings > 0) != (start == 0) {
			t.Errorf("start %d: %s", start, last)
		}
		total = 0
		for _, r := range u.Regions {
			total += r.Planned
		}
	}
	o := call(t, append(args, "--budget", fmt.Sprint(total/2))...)
	o.want(t, 4, fmt.Sprintf("the budget has %s (%d bytes)", memplan.FormatBytes(total/2), total/2))
	if !regexp.MustCompile(`\(\d+ bytes\) needed`).MatchString(o.stderr) {
		t.Errorf("the need is missing: %s", o.stderr)
	}
}
