package runtime

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/models"
)

// Size is an amount of memory: bytes, or below zero a share of the machine's memory (a headroom: of the weights) in hundredths of
// a per cent (see Percent). Zero stands for the default.
type Size int64

// Percent returns the Size that stands for p per cent of the machine's memory.
func Percent(p float64) Size { return -Size(math.Round(p * 100)) }

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"", 1},
}

// ParseSize reads "512MiB", "1.5GiB", "300MB", "1048576" or "40%".
func ParseSize(s string) (Size, error) {
	bad := fmt.Errorf("size %q is not understood: use bytes (512MiB, 1.5GiB, 300MB) or a share (40%%)", s)
	number := func(t string) (float64, bool) {
		v, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		return v, err == nil && v >= 0 && v < 1<<50
	}
	if t, ok := strings.CutSuffix(s, "%"); ok {
		v, ok := number(t)
		if !ok || v == 0 || v > 100 {
			return 0, bad
		}
		if p := Percent(v); p != 0 {
			return p, nil
		}
		return 0, fmt.Errorf("size %q is too small: the least share is 0.01%%", s) // 0 stands for the default
	}
	for _, u := range sizeUnits {
		t, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, ok := number(t)
		if !ok || v*u.bytes >= 1<<62 {
			return 0, bad
		}
		if size := Size(v * u.bytes); size > 0 || v == 0 {
			return size, nil
		}
		return 0, fmt.Errorf("size %q is less than a byte", s)
	}
	return 0, bad
}

// share returns what a Size below zero stands for, 0 to 1.
func (s Size) share() float64 { return float64(-s) / 1e4 }

// String writes the size as ParseSize reads it, exactly.
func (s Size) String() string {
	if s < 0 {
		return strconv.FormatFloat(float64(-s)/100, 'f', -1, 64) + "%"
	}
	for _, u := range sizeUnits[:4] {
		if v := float64(s) / u.bytes; s != 0 && v >= 1 && v*8 == math.Trunc(v*8) {
			return strconv.FormatFloat(v, 'f', -1, 64) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}

// MarshalText writes what String writes.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ImgSize is a model's input size in pixels; zero stands for the model's own.
type ImgSize struct{ H, W int }

// String writes "640" or "HxW".
func (s ImgSize) String() string {
	if s.H == s.W {
		return strconv.Itoa(s.H)
	}
	return fmt.Sprintf("%dx%d", s.H, s.W)
}

// UnmarshalText reads "640" or "480x640" (height x width), 1 to models.MaxSide each.
func (s *ImgSize) UnmarshalText(text []byte) error {
	h, w, two := strings.Cut(string(text), "x")
	if !two {
		w = h
	}
	var err1, err2 error
	s.H, err1 = strconv.Atoi(h)
	s.W, err2 = strconv.Atoi(w)
	if err1 != nil || err2 != nil || min(s.H, s.W) < 1 || max(s.H, s.W) > models.MaxSide {
		return fmt.Errorf("imgsz %q is not understood: use a side (640) or height x width (480x640)", text)
	}
	return nil
}

// MarshalText writes what String writes.
func (s ImgSize) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
