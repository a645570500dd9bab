package camera

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// ffLog follows what ffmpeg writes on stderr with "-loglevel repeat+level+info": what the input
// and the output are, which no container tells completely, and what went wrong. Its text is for
// people and changes between versions, so that nothing but colour, the estimated length
// and the wording of errors depends on it.
type ffLog struct {
	hide  *strings.Replacer // turns what ffmpeg was given into what the user may see
	ready chan struct{}     // closed once the output is described

	// Only the goroutine that reads stderr uses these.
	output    bool // the lines describe the output
	ignored   bool // the last line with a level told of no fault: lines without one go on with it
	described bool

	mu       sync.Mutex
	in, out  ffVideo
	duration time.Duration
	input    string // size and pixel format that the filters are fed with
	other    bool   // these changed
	faults   int
	last     string // the last fault, or the last line without a level
}

// ffVideo is what a line about a video stream says.
type ffVideo struct {
	pixFmt string
	tags   []string // range, matrix, ... in the order of ffmpeg
	fps    float64
}

// newFFLog takes pairs of what ffmpeg was given and what is shown instead.
func newFFLog(shown ...string) *ffLog {
	return &ffLog{hide: strings.NewReplacer(shown...), ready: make(chan struct{})}
}

var (
	// ffLevel takes "[h264 @ 0x5581] [error] text" apart; there can be several contexts or none.
	ffLevel    = regexp.MustCompile(`^(?:\[[^\]]* @ (?:0x)?[0-9a-fA-F]+\] ?)*\[(panic|fatal|error|warning|info|verbose|debug|trace)\] ?(.*)$`)
	ffStream   = regexp.MustCompile(`^  Stream #\d+:\d+.*?: Video: (.*)$`)
	ffDuration = regexp.MustCompile(`^  Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?),`)
	ffInput    = regexp.MustCompile(`^w:\d+ h:\d+ pixfmt:\S+`)
	ffPixFmt   = regexp.MustCompile(`^([a-z0-9]+)(?:\((.*)\))?$`)
)

// line looks at one line and returns it if it tells of a fault, for the child's record.
func (l *ffLog) line(text string) (fault string) {
	level := "" // a line without a level comes from the reading of the command line, or goes on with the line before
	if m := ffLevel.FindStringSubmatch(text); m != nil {
		level, text = m[1], m[2]
		defer func() { l.ignored = fault == "" }()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch level {
	case "info":
		l.describe(text)
		return ""
	case "verbose": // what the filters are fed from here on
		if input := ffInput.FindString(text); input != "" {
			l.other = l.other || l.input != "" && l.input != input
			l.input = input
		}
		return ""
	case "warning":
		// The only sign of a cut file in some containers.
		if !strings.Contains(text, "corrupt input packet") {
			return ""
		}
	case "panic", "fatal", "error":
	case "": // no fault by itself: ffmpeg's exit status says whether it did harm
		if l.ignored {
			return ""
		}
		l.last = Redact(l.hide.Replace(text))
		return l.last
	default:
		return ""
	}
	l.faults++
	l.last = Redact(l.hide.Replace(text))
	return l.last
}

// wait waits until the output is described, which ffmpeg does before its first frame, or has ended. told is false where neither is so in time: its
// words are others then.
func (l *ffLog) wait(ctx context.Context, ended <-chan struct{}, most time.Duration) (told bool, err error) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-l.ready:
		return true, nil
	case <-ended:
		return true, nil
	case <-late.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// describe reads the lines that describe input and output, which stand before the first frame.
func (l *ffLog) describe(text string) {
	if l.described {
		return
	}
	if strings.HasPrefix(text, "Output #0") {
		l.output = true
		return
	}
	if m := ffDuration.FindStringSubmatch(text); m != nil && !l.output {
		l.duration = clock(m[1], m[2], m[3])
		return
	}
	m := ffStream.FindStringSubmatch(text)
	switch {
	case m == nil || strings.Contains(text, "(attached pic)"):
	case l.output:
		l.out = parseVideo(m[1])
		l.described = true
		close(l.ready)
	case l.in.pixFmt == "":
		l.in = parseVideo(m[1])
	}
}

// clock reads hours, minutes and seconds; 0 if they are out of range.
func clock(h, m, s string) time.Duration {
	hours, errH := strconv.Atoi(h)
	minutes, errM := strconv.Atoi(m)
	seconds, errS := strconv.ParseFloat(s, 64)
	if errH != nil || errM != nil || errS != nil || hours > 100_000 {
		return 0
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
}

// parseVideo reads "h264 (High) (avc1 / 0x31637661), yuv420p(tv, bt709), 768x432, 10 fps, ...".
func parseVideo(text string) (v ffVideo) {
	for i, field := range splitOutside(text) {
		if m := ffPixFmt.FindStringSubmatch(field); m != nil && i == 1 {
			v.pixFmt = m[1]
			for tag := range strings.SplitSeq(m[2], ", ") {
				v.tags = append(v.tags, tag)
			}
		}
		if n, ok := strings.CutSuffix(field, " fps"); ok {
			v.fps, _ = strconv.ParseFloat(strings.Replace(n, "k", "e3", 1), 64)
		}
	}
	return v
}

// splitOutside splits at commas that are not within brackets.
func splitOutside(text string) (fields []string) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				fields = append(fields, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(fields, strings.TrimSpace(text[from:]))
}

// full says whether a range is given, and whether it is the full one.
func (v ffVideo) full() (full, given bool) {
	if strings.HasPrefix(v.pixFmt, "yuvj") {
		return true, true
	}
	for _, t := range v.tags {
		if t == "pc" || t == "tv" {
			return t == "pc", true
		}
	}
	return false, false
}

// matrix returns the colour matrix if one is given. Of "matrix/primaries/transfer" it is the first.
func (v ffVideo) matrix() (m frame.Matrix, given bool) {
	for _, t := range v.tags {
		name, _, _ := strings.Cut(t, "/")
		switch name {
		case "bt709", "smpte240m", "bt2020nc", "bt2020c": // the nearest that there is
			return frame.BT709, true
		case "smpte170m", "bt470bg", "fcc":
			return frame.BT601, true
		}
	}
	return 0, false
}

// rgb says whether the pixels are not YUV: ffmpeg converts those with BT.601.
func (v ffVideo) rgb() bool {
	for _, p := range []string{"rgb", "bgr", "gbr", "argb", "abgr", "0rgb", "0bgr", "x2rgb", "x2bgr", "pal8"} {
		if strings.HasPrefix(v.pixFmt, p) {
			return true
		}
	}
	return false
}

// colour returns the colour of output frames of w x h pixels. Without a range it is the
// limited one; without a matrix BT.709 from 720 lines on and BT.601 below, as players do.
func (l *ffLog) colour(w, h int) frame.Colour {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c frame.Colour
	full, given := l.out.full()
	if !given && l.in.pixFmt == l.out.pixFmt { // ffmpeg 4 does not repeat it for the output
		full, _ = l.in.full()
	}
	c.Full = full
	if l.in.rgb() {
		return c
	}
	for _, v := range []ffVideo{l.out, l.in} {
		if m, ok := v.matrix(); ok {
			c.Matrix = m
			return c
		}
	}
	c.Matrix = guessMatrix(w, h)
	return c
}

// guessMatrix is the colour matrix of pictures that name none.
func guessMatrix(w, h int) frame.Matrix {
	if min(w, h) >= 720 {
		return frame.BT709
	}
	return frame.BT601
}

// frames estimates the number of frames, 0 if there is nothing to go by.
func (l *ffLog) frames() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := math.Round(l.duration.Seconds() * l.in.fps)
	if !(n > 0 && n < math.MaxInt32) {
		return 0
	}
	return int(n)
}

// fault returns the number of faults and the last one.
func (l *ffLog) fault() (n int, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults, l.last
}

// fps is the rate of the input, 0 if ffmpeg does not say.
func (l *ffLog) fps() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in.fps
}

// changed says whether the size or the pixel format of the input changed on the way, which only a log of level verbose tells.
func (l *ffLog) changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.other
}
