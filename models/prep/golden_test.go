package prep

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/camera/frame"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txt")

// Checksums of tensors that the twins make on every kind of processor: hack/arm64 runs this test on arm64.
func TestGoldenTensors(t *testing.T) {
	const path = "testdata/golden.txt"
	made := map[string]string{}
	for _, format := range formats {
		for ri, r := range recipes {
			for si, s := range []struct{ w, h, inW, inH int }{{192, 108, 64, 64}, {171, 95, 96, 80}, {128, 72, 64, 48}, {37, 29, 64, 80}} {
				fr := numbered(t, format, s.w, s.h)
				fr.Colour = colours[ri%4]
				for twin, f := range bothTwins(t, r, s.inW, s.inH) {
					dst, _ := fillView(t, f, fr, views(s.w, s.h)[(ri+si)%4])
					made[twin] += fmt.Sprintf("%08x %s %dx%d to %dx%d recipe %d\n", crc32.ChecksumIEEE(dst.Data), format, s.w, s.h, s.inW, s.inH, ri)
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(made["Go"]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for twin, lines := range made {
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(lines, "\n")); diff != "" {
			t.Errorf("the twin in %s differs from %s:\n%s", twin, path, diff)
		}
	}
}

// numbered returns a picture whose bytes follow from their places.
func numbered(tb testing.TB, format frame.Format, w, h int) *frame.Frame {
	tb.Helper()
	data := make([]byte, format.Bytes(w, h))
	for i := range data {
		data[i] = byte(i*i*31 + i*7 + i>>5)
	}
	planes, err := frame.Split(format, w, h, data)
	if err != nil {
		tb.Fatal(err)
	}
	fr, err := frame.New(format, w, h, planes, fixedTime, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return fr
}
