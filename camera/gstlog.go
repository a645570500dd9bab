package camera

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// gstLog keeps what gst-launch-1.0 says of its failure, without the lines that say nothing to a user.
type gstLog struct {
	hide *strings.Replacer

	mu    sync.Mutex
	lines []string // the first ones: what comes after are consequences
}

const gstMaxLines = 6

func newGstLog(secrets ...string) *gstLog {
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "***")
	}
	return &gstLog{hide: strings.NewReplacer(pairs...)}
}

var (
	// gstElement is the "from element /GstPipeline:pipeline0/GstRTSPSrc:rtspsrc0: " before a message.
	gstElement = regexp.MustCompile(`^(?:ERROR|WARNING): (?:from element \S+: )?`)
	// gstNoise are lines about GStreamer's own code and states.
	gstNoise = regexp.MustCompile(`^(?:Additional debug info:|\S+\.c(?:pp)?\(\d+\):|ERROR: pipeline doesn't want to preroll|` +
		`Setting pipeline|Freeing pipeline|Failed to set pipeline|\(\S+:\d+\): \S+-(?:WARNING|CRITICAL)|Trying to dispose|.*GStreamer error: state change failed)`)
	gstNoElement = regexp.MustCompile(`no element "([^"]*)"`)
	gstDecoder   = regexp.MustCompile(`Missing (?:decoder|plugin|demuxer): ([^(]*)`)
)

// line looks at one line and returns what is worth keeping of it.
func (l *gstLog) line(text string) string {
	if gstNoise.MatchString(text) {
		return ""
	}
	text = Redact(l.hide.Replace(gstElement.ReplaceAllString(text, "")))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < gstMaxLines && !slices.Contains(l.lines, text) {
		l.lines = append(l.lines, text)
	}
	return text
}

// exit notes how the child ended, if its lines do not tell.
func (l *gstLog) exit(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 || killed(err) {
		l.lines = []string{err.Error()} // it quotes the lines
	}
}

// said returns all that was kept.
func (l *gstLog) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "; ")
}

// gstPackages are the Debian packages of the elements that pipelines of ours are made of.
var gstPackages = map[string]string{
	"gdppay": "gstreamer1.0-plugins-bad", "rtspsrc": "gstreamer1.0-plugins-good", "videoconvert": "gstreamer1.0-plugins-base",
	"decodebin": "gstreamer1.0-plugins-base", "videoflip": "gstreamer1.0-plugins-good", "nvvidconv": "nvidia-l4t-gstreamer",
	"nvv4l2decoder": "nvidia-l4t-gstreamer", "nvarguscamerasrc": "nvidia-l4t-gstreamer", "libcamerasrc": "gstreamer1.0-libcamera",
}

// missing says what this machine lacks, if that was the reason of the failure. Trying again is of no use then.
func (l *gstLog) missing() error {
	said := l.said()
	if m := gstNoElement.FindStringSubmatch(said); m != nil {
		if p := gstPackages[m[1]]; p != "" {
			return Permanent(fmt.Errorf("GStreamer has no %s here: apt-get install %s", m[1], p))
		}
		return Permanent(fmt.Errorf("GStreamer has no element %q here: check its name, or install the plugin that has it", m[1]))
	}
	if m := gstDecoder.FindStringSubmatch(said); m != nil {
		return Permanent(fmt.Errorf("GStreamer has no decoder for %s here: apt-get install gstreamer1.0-libav", strings.TrimSpace(m[1])))
	}
	return nil
}

// explain makes one line of a failure of a pipeline.
func (l *gstLog) explain(what string) error {
	if err := l.missing(); err != nil {
		return err
	}
	err := fmt.Errorf("%s failed: %s", what, l.said())
	if strings.Contains(l.said(), "erroneous pipeline") {
		return Permanent(err)
	}
	return err
}
