package memplan

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden compares what was written with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s, see there after a run with -update:\n%s", path, got)
	}
}

func usage() *Usage {
	return &Usage{
		Regions: []RegionUsage{
			{Weights, 3879731, 3879731}, {Headroom, 775946, 0}, {Arena, 5619712, 5619712}, {Spill, 65536, 65536},
			{Tensors, 6676480, 6680576}, {Frames, 12441600, 12441600}, {Engine, 31457280, 30408704}, {Go, 8388608, 6291456},
		},
		Frames: 1000, Fragmentation: 0, BestFit: 0.1879,
		Arena: Served{116000, 9123456789}, Heap: Served{2, 4096}, Mismatches: 1, Recordings: 4,
		GoAllocs: 0, MinorFaults: 0.0125, MajorFaults: 3,
	}
}

func TestUsageText(t *testing.T) {
	unmeasured := usage()
	unmeasured.Regions[6].Measured = -1
	for name, u := range map[string]*Usage{"usage.txt": usage(), "usage_unmeasured.txt": unmeasured, "usage_empty.txt": {}} {
		var b bytes.Buffer
		if err := u.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n > 8 {
			t.Errorf("%s has %d lines", name, n)
		}
		golden(t, name, b.Bytes())
	}
}

func TestUsageJSON(t *testing.T) {
	text, err := json.MarshalIndent(usage(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "usage.json", append(text, '\n'))
}

func TestPerFrame(t *testing.T) {
	if PerFrame(3, 2) != 1.5 || PerFrame(0, 0) != 0 || PerFrame(1, -1) != 1 {
		t.Error("means are wrong")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestUsageTellsThatItCannotWrite(t *testing.T) {
	if usage().WriteText(fullDisk{}) == nil {
		t.Error("no error")
	}
}
