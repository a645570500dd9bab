package runtime

import (
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/shown"
)

// Result is what one model found in one picture. A Result that Stream yields, with all that it
// holds, is valid until the next iteration; Clone keeps it.
type Result struct {
	Source string // the source's name, or the picture's path
	Model  string // the model's key in the configuration
	Frame  uint64 // counts captured frames from 0: a gap is a drop

	Captured   time.Time        // when the frame was captured; zero for files
	CapturedBy frame.CapturedBy // where Captured comes from
	Age        time.Duration    // from capture to result; live sources only
	PTS        time.Duration    // place in the clip
	HasPTS     bool             // the source is a clip

	Width, Height int         // of the displayed picture, in pixels
	Detections    []Detection // the best score first
	Timing        Timing

	// Picture is the frame itself where Config.Pictures or Wanted asks for it, else nil. The Result owns it:
	// do not release it. A clone has none.
	Picture *camera.Frame
}

// Detection is one object.
type Detection struct {
	Class   string     // the class's name; its id as text where names are not known
	ClassID int        // the class's index in the model
	Score   float32    // 0..1
	Box     [4]float32 // x1, y1, x2, y2 in pixels of the displayed picture; x1 < x2, y1 < y2
}

// Timing says where the time went.
type Timing struct {
	Queue time.Duration // from the frame's arrival to the start of its pre-processing, and waits between the steps
	Pre   time.Duration // resize, colour, normalisation
	Infer time.Duration // the model
	Post  time.Duration // boxes and suppression
	Batch int           // frames that ran together
	Lane  int           // which lane ran it
}

// Clone returns a copy that stays valid, without the picture.
func (r *Result) Clone() *Result {
	c := *r
	c.Detections = slices.Clone(r.Detections)
	c.Picture = nil
	return &c
}

// AppendJSON appends the result as one line of JSON, without a line feed, as docs/results.md says.
// Score has 4 decimals, a box 2, times in milliseconds 3. It allocates only when dst is too small.
func (r *Result) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"source":`...)
	dst = appendString(dst, r.Source)
	dst = append(dst, `,"model":`...)
	dst = appendString(dst, r.Model)
	dst = append(dst, `,"frame":`...)
	dst = strconv.AppendUint(dst, r.Frame, 10)
	if !r.Captured.IsZero() {
		dst = append(dst, `,"captured":"`...)
		dst = r.Captured.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z07:00")
		dst = append(dst, `","captured_by":"`...)
		dst = append(dst, r.CapturedBy.String()...)
		dst = append(dst, '"')
	}
	if r.HasPTS {
		dst = appendMillis(append(dst, `,"pts_ms":`...), r.PTS)
	}
	dst = append(dst, `,"width":`...)
	dst = strconv.AppendInt(dst, int64(r.Width), 10)
	dst = append(dst, `,"height":`...)
	dst = strconv.AppendInt(dst, int64(r.Height), 10)
	if !r.Captured.IsZero() {
		dst = appendMillis(append(dst, `,"age_ms":`...), r.Age)
	}
	dst = append(dst, `,"detections":[`...)
	for i := range r.Detections {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Detections[i].appendJSON(dst)
	}
	dst = appendMillis(append(dst, `],"timing":{"queue_ms":`...), r.Timing.Queue)
	dst = appendMillis(append(dst, `,"pre_ms":`...), r.Timing.Pre)
	dst = appendMillis(append(dst, `,"infer_ms":`...), r.Timing.Infer)
	dst = appendMillis(append(dst, `,"post_ms":`...), r.Timing.Post)
	dst = strconv.AppendInt(append(dst, `,"batch":`...), int64(r.Timing.Batch), 10)
	dst = strconv.AppendInt(append(dst, `,"lane":`...), int64(r.Timing.Lane), 10)
	return append(dst, `}}`...)
}

func (d *Detection) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"class":`...)
	dst = appendString(dst, d.Class)
	dst = append(dst, `,"class_id":`...)
	dst = strconv.AppendInt(dst, int64(d.ClassID), 10)
	dst = append(dst, `,"score":`...)
	dst = appendDecimal(dst, float64(d.Score), 4)
	dst = append(dst, `,"box":[`...)
	for i, v := range d.Box {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendDecimal(dst, float64(v), 2)
	}
	return append(dst, `]}`...)
}

func appendMillis(dst []byte, d time.Duration) []byte {
	return appendDecimal(dst, float64(d)/float64(time.Millisecond), 3)
}

// appendDecimal writes n decimals and never what JSON does not know: not-a-number
// and infinities, which the decoders drop, would be written as 0.
func appendDecimal(dst []byte, v float64, n int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.AppendFloat(dst, v, 'f', n, 64)
}

const hex = "0123456789abcdef"

// appendUnit writes 16 bits as JSON does.
func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

// appendString writes a JSON string that a terminal can show: what it would obey is escaped. Bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c == 0x7f:
			dst = appendUnit(dst, rune(c))
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case shown.Rune(r):
				dst = utf8.AppendRune(dst, r)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				dst = appendUnit(appendUnit(dst, high), low)
			default:
				dst = appendUnit(dst, r)
			}
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
