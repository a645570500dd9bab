package memplan

import (
	"math"
	"testing"
)

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", -1: "-1 B", 1023: "1023 B", 1024: "1.0 KiB", -1536: "-1.5 KiB",
		1<<20 - 1: "1.0 MiB", 1<<20 - 51: "1.0 MiB", 1<<20 - 1024: "1023.0 KiB", 5620000: "5.4 MiB", 512 << 20: "512.0 MiB",
		3 << 29: "1.5 GiB", math.MaxInt64: "8.0 EiB", math.MinInt64: "-8.0 EiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := exactBytes(1536); got != "1.5 KiB (1536 bytes)" {
		t.Errorf("got %q", got)
	}
	if got := exactBytes(12); got != "12 B" {
		t.Errorf("got %q", got)
	}
}
