package v4l2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// Request is what a camera is asked for. Zero values stand for the defaults.
type Request struct {
	Width, Height int     // pixels; 1280x720
	FPS           float64 // 30
	Format        string  // one of FormatNames; the best for the size and the rate
}

// OrDefaults returns the request with the defaults filled in.
func (r Request) OrDefaults() Request {
	if r.Width == 0 || r.Height == 0 {
		r.Width, r.Height = 1280, 720
	}
	if r.FPS == 0 {
		r.FPS = 30
	}
	return r
}

// Mode is one pixel format of a camera with the sizes in which it comes.
type Mode struct {
	Format string // one of FormatNames, or what V4L2 calls one that cannot be used
	Sizes  []Size // empty if the driver does not say
	fourCC uint32
}

// Size is one size of a picture in pixels, or all from it to another in steps.
type Size struct {
	Width, Height       int
	MaxWidth, MaxHeight int // as Width and Height if it is one size
	stepX, stepY        int
	FPS                 []float64 // rates of the (largest) size, falling; empty if the driver does not say
}

// String returns 640x480, or 160x120..1920x1080.
func (s Size) String() string {
	if s.Width == s.MaxWidth && s.Height == s.MaxHeight {
		return fmt.Sprintf("%dx%d", s.Width, s.Height)
	}
	return fmt.Sprintf("%dx%d..%dx%d", s.Width, s.Height, s.MaxWidth, s.MaxHeight)
}

// How many answers of a driver are listened to.
const (
	maxFormats   = 64
	maxSizes     = 128
	maxIntervals = 64
)

// modes asks for the pixel formats and their sizes, without rates.
func (d handle) modes() []Mode {
	var list []Mode
	for i := range uint32(maxFormats) {
		desc := abi.FormatDesc{Index: i, Type: abi.TypeVideoCapture}
		if d.ioctl(abi.EnumFmt, unsafe.Pointer(&desc)) != nil {
			break
		}
		if slices.ContainsFunc(list, func(m Mode) bool { return m.fourCC == desc.PixelFormat }) {
			continue
		}
		list = append(list, Mode{formatName(desc.PixelFormat), d.sizes(desc.PixelFormat), desc.PixelFormat})
	}
	return list
}

func (d handle) sizes(fourCC uint32) []Size {
	var list []Size
	for i := range uint32(maxSizes) {
		e := abi.FrameSize{Index: i, PixelFormat: fourCC}
		if d.ioctl(abi.EnumFrameSizes, unsafe.Pointer(&e)) != nil {
			break
		}
		if e.Type == abi.TypeDiscrete {
			w, h := e.Discrete()
			e.MinWidth, e.MaxWidth, e.MinHeight, e.MaxHeight = w, w, h, h
		}
		if e.MinWidth < 1 || e.MinHeight < 1 || e.MaxWidth < e.MinWidth || e.MaxHeight < e.MinHeight || e.MaxWidth > maxSide || e.MaxHeight > maxSide {
			continue
		}
		list = append(list, Size{
			Width: int(e.MinWidth), Height: int(e.MinHeight), MaxWidth: int(e.MaxWidth), MaxHeight: int(e.MaxHeight),
			stepX: max(int(min(e.StepWidth, maxSide)), 1), stepY: max(int(min(e.StepHeight, maxSide)), 1),
		})
		if e.Type != abi.TypeDiscrete {
			break // such an answer is the only one
		}
	}
	return list
}

// rates asks for the rates of a size in frames per second, falling. Of a range it gives both ends.
func (d handle) rates(fourCC uint32, w, h int) []float64 {
	var list []float64
	add := func(f abi.Fract) {
		if f.Numerator > 0 && f.Denominator > 0 {
			list = append(list, float64(f.Denominator)/float64(f.Numerator))
		}
	}
	for i := range uint32(maxIntervals) {
		e := abi.FrameInterval{Index: i, PixelFormat: fourCC, Width: uint32(w), Height: uint32(h)}
		if d.ioctl(abi.EnumFrameIntervals, unsafe.Pointer(&e)) != nil {
			break
		}
		add(e.Min)
		if e.Type != abi.TypeDiscrete {
			add(e.Max)
			break
		}
	}
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
	return slices.Compact(list)
}

// candidate is a format at a size that a camera could be set to.
type candidate struct {
	fourCC uint32
	w, h   int
	rate   float64 // the highest; 0 if it is not known
}

// choose returns what to set a camera to. Colour goes before grey; then the nearest size: the one asked for, else the smallest
// that holds it, else the largest; then the rate, if it is reached or else the higher; then uncompressed before MJPEG.
func (d handle) choose(modes []Mode, want Request) (candidate, error) {
	var best candidate
	var names []string
	for _, m := range modes {
		names = append(names, m.Format)
		if rank(m.fourCC) < 0 || want.Format != "" && want.Format != m.Format {
			continue
		}
		c := candidate{fourCC: m.fourCC, w: want.Width, h: want.Height}
		if len(m.Sizes) > 0 {
			c.w, c.h = nearest(m.Sizes, want)
		}
		if rates := d.rates(m.fourCC, c.w, c.h); len(rates) > 0 {
			c.rate = rates[0]
		}
		if best.fourCC == 0 || better(c, best, want) < 0 {
			best = c
		}
	}
	if best.fourCC == 0 {
		if want.Format != "" {
			return best, fmt.Errorf("it does not give %s, only %s", want.Format, strings.Join(names, ", "))
		}
		return best, fmt.Errorf("it gives %s, and only %s can be used: try gst:v4l2src", cmp.Or(strings.Join(names, ", "), "no pictures"), strings.Join(FormatNames(), ", "))
	}
	return best, nil
}

// nearest returns the best size of a list for a request.
func nearest(sizes []Size, want Request) (w, h int) {
	for i, s := range sizes {
		sw := s.Width + (min(max(want.Width, s.Width), s.MaxWidth)-s.Width)/s.stepX*s.stepX
		sh := s.Height + (min(max(want.Height, s.Height), s.MaxHeight)-s.Height)/s.stepY*s.stepY
		if i == 0 || want.CompareSizes(sw, sh, w, h) < 0 {
			w, h = sw, sh
		}
	}
	return w, h
}

// CompareSizes is negative if w x h is the better size for a request: the one asked for, else the smallest that holds it, else
// the largest.
func (r Request) CompareSizes(w, h, w2, h2 int) int {
	class, area := r.place(w, h)
	class2, area2 := r.place(w2, h2)
	return cmp.Or(cmp.Compare(class, class2), cmp.Compare(area, area2))
}

func (r Request) place(w, h int) (class, area int) {
	switch {
	case w == r.Width && h == r.Height:
		return 0, 0
	case w >= r.Width && h >= r.Height:
		return 1, w * h
	}
	return 2, -w * h
}

// Reach is how much of the rate asked for a camera of the given rate gives, in frames per second. A rate that is not known, 0, is
// believed to be it, and 29.97 to be 30.
func (r Request) Reach(fps float64) float64 {
	if fps == 0 || fps >= 0.95*r.FPS {
		return r.FPS
	}
	return fps
}

// better is negative if a is to be chosen before b.
func better(a, b candidate, want Request) int {
	grey := func(c candidate) int {
		if c.fourCC == abi.FourCC("GREY") {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(grey(a), grey(b)),
		want.CompareSizes(a.w, a.h, b.w, b.h),
		cmp.Compare(want.Reach(b.rate), want.Reach(a.rate)),
		cmp.Compare(rank(a.fourCC), rank(b.fourCC)),
	)
}
