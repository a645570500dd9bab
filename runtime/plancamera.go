package runtime

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/ring"
)

// CameraPlan is cameras of one kind that a plan has room for.
type CameraPlan struct {
	Count         int // 1 to 1024
	Width, Height int // of a frame in pixels, 1 to 16384 each
	Format        frame.Format
	FPS           float64 // frames a second, above 0 and up to 1000
}

// Limits of a CameraPlan.
const (
	maxCameras    = 1024
	maxCameraSide = 16384
	maxCameraFPS  = 1000
	defaultFPS    = 30
)

// ringSlots of a camera: one is written while the other is read.
const ringSlots = 2

// UnmarshalText reads "4x1920x1080:nv12", COUNTxWIDTHxHEIGHT:FORMAT, with "@25" behind it for another rate
// than 30 frames a second.
func (c *CameraPlan) UnmarshalText(text []byte) error {
	var plan CameraPlan
	sides, rest, ok := strings.Cut(string(text), ":")
	format, rate, rated := strings.Cut(rest, "@")
	numbers := strings.Split(sides, "x")
	if ok = ok && len(numbers) == 3; ok {
		ok = parseWithin(numbers[0], maxCameras, &plan.Count) && parseWithin(numbers[1], maxCameraSide, &plan.Width) &&
			parseWithin(numbers[2], maxCameraSide, &plan.Height)
	}
	plan.FPS = defaultFPS
	if rated {
		var err error
		plan.FPS, err = strconv.ParseFloat(rate, 64)
		ok = ok && err == nil && plan.FPS > 0 && plan.FPS <= maxCameraFPS
	}
	if !ok {
		return fmt.Errorf("camera %q is not understood: use COUNTxWIDTHxHEIGHT:FORMAT, such as 4x1920x1080:nv12, with @ and the rate where it is not 30; at most %d cameras, %d pixels a side, %d frames a second",
			text, maxCameras, maxCameraSide, maxCameraFPS)
	}
	var err error
	if plan.Format, err = frame.ParseFormat(format); err != nil {
		return fmt.Errorf("camera %q: %w", text, err)
	}
	*c = plan
	return nil
}

// parseWithin reads a whole number of 1 to most, written in digits only.
func parseWithin(text string, most int, n *int) bool {
	v, err := strconv.ParseUint(text, 10, 16)
	*n = int(v)
	return err == nil && *n >= 1 && *n <= most
}

// String writes what UnmarshalText reads.
func (c CameraPlan) String() string {
	s := fmt.Sprintf("%dx%dx%d:%s", c.Count, c.Width, c.Height, c.Format)
	if c.FPS != defaultFPS {
		s += "@" + strconv.FormatFloat(c.FPS, 'f', -1, 64)
	}
	return s
}

// frameBytes returns what the frames of all the cameras take. With an SLO a frame may wait for as long as that, but
// no more wait than one run takes.
func (c CameraPlan) frameBytes(slo time.Duration, batch int) int64 {
	l := ring.Layout{Format: c.Format, Width: c.Width, Height: c.Height, Slots: ringSlots + waitingFrames(slo, c.FPS, batch)}
	return int64(c.Count) * l.Bytes()
}

// childBytes returns an allowance for the processes that decode for the cameras, see childBasis.
func (c CameraPlan) childBytes() int64 {
	pixels := int64(c.Width) * int64(c.Height)
	return int64(c.Count) * (childBase + childPerPixel*pixels)
}
