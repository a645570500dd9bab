package camera

import (
	"context"
	"fmt"
	"strings"

	"github.com/eyas-edge/eyas/camera/frame"
)

// pattern draws frames that depend on nothing but their number and size, so that a test can
// tell them apart and check every byte. The format is rgb24.
//
//   - Eight vertical bars: white, yellow, cyan, green, magenta, red, blue, black; pixel
//     column x belongs to bar x*8/width.
//   - An orange square (255, 128, 0), its side an eighth of the shorter side and at least one
//     pixel, in the middle row, that starts at the left and moves 4 pixels a frame, then from the
//     left again: its left edge is at 4n mod (width-side+1).
//   - In the last height/16 rows, at least one, the frame number n in 32 cells from the highest bit to
//     the lowest, white for 1 and black for 0; column x belongs to cell x*32/width.
//
// With frames=N it is a file of N frames with times; without it runs at its rate for ever,
// live.
type pattern struct {
	base
	w, h   int
	fps    float64
	frames int // 0: no end
}

// openPattern opens pattern?size=1280x720&fps=30&frames=300.
func openPattern(b base, rest string) (Source, error) {
	what, query, _ := strings.Cut(rest, "?")
	if what != "pattern" {
		return nil, badSpec("test source %q is not known: use test:pattern", what)
	}
	p, err := parseParams(query, "size", "fps", "frames")
	if err != nil {
		return nil, err
	}
	s := &pattern{base: b}
	if s.w, s.h, err = p.size("1280x720", &b.opts); err != nil {
		return nil, err
	}
	if s.fps, err = p.fps(); err != nil {
		return nil, err
	}
	if s.frames, err = p.count("frames"); err != nil {
		return nil, err
	}
	s.live = b.opts.realtime || s.frames == 0
	s.monitor.s = Stats{Format: frame.RGB24, Width: s.w, Height: s.h, FPS: s.fps}
	return s, nil
}

// Total returns the number of frames, 0 if there is no end.
func (s *pattern) Total() int {
	if s.frames == 0 {
		return s.opts.maxFrames
	}
	return s.opts.total(s.frames)
}

func (s *pattern) Run(ctx context.Context, sink Sink) error {
	out := newOutput(&s.base, sink)
	defer out.close()
	if err := out.Format(frame.RGB24, frame.Colour{}, s.w, s.h, s.fps); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for s.frames == 0 || out.next < uint64(s.frames) {
		n := out.next
		at := timeOf(n, s.fps)
		if err := out.pace(ctx, at); err != nil {
			return err
		}
		if out.Skip() {
			continue
		}
		f, err := out.take(ctx)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		draw(out.Packed(f), s.w, s.h, n)
		f.PTS, f.HasPTS = at, s.frames > 0
		if err := out.put(ctx, f); err != nil {
			return ended(err)
		}
	}
	return nil
}

var (
	bars   = [8][3]byte{{255, 255, 255}, {255, 255, 0}, {0, 255, 255}, {0, 255, 0}, {255, 0, 255}, {255, 0, 0}, {0, 0, 255}, {0, 0, 0}}
	orange = [3]byte{255, 128, 0}
)

// draw paints frame n of the pattern into pix, rgb24 of w x h pixels.
func draw(pix []byte, w, h int, n uint64) {
	row := w * 3
	bar := pix[:row]
	for x := range w {
		copy(bar[x*3:], bars[x*8/w][:])
	}
	for y := 1; y < h; y++ {
		copy(pix[y*row:], bar)
	}

	side := max(min(w, h)/8, 1)
	left := int(n * 4 % uint64(w-side+1))
	for y := (h - side) / 2; y < (h-side)/2+side; y++ {
		for x := left; x < left+side; x++ {
			copy(pix[y*row+x*3:], orange[:])
		}
	}

	for y := h - max(h/16, 1); y < h; y++ {
		for x := range w {
			bit := byte(n >> (31 - x*32/w) & 1)
			v := 255 * bit
			copy(pix[y*row+x*3:], []byte{v, v, v})
		}
	}
}
