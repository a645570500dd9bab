package camera

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/camera/ring"
	"github.com/eyas-edge/eyas/internal/shown"
)

// scheme is one kind of source that is recognised by how its text begins.
type scheme struct {
	prefix string
	// open makes the source of the text behind the prefix.
	open func(b base, rest string) (Source, error)
}

// schemes is the table of all kinds that are not paths. Prefixes are compared without case.
func schemes() []scheme {
	return []scheme{
		{"test:", openPattern},
		{"raw:", openRaw},
		{"/dev/video", openDevice},
		{"v4l2:", openV4L2},
		{"csi:", openCSI},
		{"rtsp://", openRTSP("rtsp")},
		{"rtsps://", openRTSP("rtsps")},
		{"http://", openHTTP("http")},
		{"https://", openHTTP("https")},
		{"media:", openMedia},
		{"gst:", openGst},
	}
}

// openMedia stands where Scheme did not add package camera/media.
func openMedia(base, string) (Source, error) {
	return nil, badSpec("this eyas was built without mediadevices: use v4l2: instead, or build it with -tags media")
}

// Open returns the source that spec describes: [NAME=]WHAT, where WHAT is a picture, a
// folder or glob of pictures, a clip, raw:FILE?format=nv12&size=320x240&fps=30, or
// test:pattern?size=1280x720&fps=30&frames=300. ${VAR} is replaced by the environment
// variable. Files must exist; they are read by Run. Errors are one line and hold no password.
func Open(spec string, opts ...Option) (Source, error) {
	o := collect(opts)
	name, what := o.name, spec
	if name == "" {
		name, what = SplitName(spec)
	}
	if what == "" {
		return nil, badSpec("source is empty: give a picture, folder, clip or camera")
	}
	if !shown.Plain(o.name) { // a name in the text has letters only
		return nil, badSpec("source %q: its name has a character that cannot be seen: leave it out", o.name)
	}
	public := what
	if _, err := os.Lstat(what); err != nil { // a file is no URL, whatever it is called
		public = Redact(what) // before the variables: what they hold is not for showing
	}
	full, err := expand(what)
	if err == nil {
		var s Source
		b := newBase(cmp.Or(name, public), o)
		if s, err = open(b, name != "", full); err == nil {
			err = holdable(s)
		}
		if err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("source %s: %w", public, err)
}

// holdable fails for live frames of a size that no ring holds.
func holdable(s Source) error {
	m, ok := s.(Monitored)
	if !ok || !s.Live() {
		return nil
	}
	if st := m.Stats(); max(st.Width, st.Height) > ring.MaxSide {
		return badSpec("a side of live frames has at most %d pixels, not those of %dx%d: name a smaller size", ring.MaxSide, st.Width, st.Height)
	}
	return nil
}

func open(b base, named bool, what string) (Source, error) {
	for _, s := range slices.Concat(b.opts.schemes, schemes()) {
		if len(what) < len(s.prefix) || !strings.EqualFold(what[:len(s.prefix)], s.prefix) {
			continue
		}
		return s.open(b, what[len(s.prefix):])
	}
	return openPath(b, named, what)
}

// nameRE is what a NAME looks like: no path, no URL.
var nameRE = regexp.MustCompile(`^[\pL\pN_][\pL\pN_.-]*$`)

// SplitName takes [NAME=]WHAT apart as Open does; name is "" where there is none. A path that exists is never
// taken apart.
func SplitName(spec string) (name, what string) {
	name, what, ok := strings.Cut(spec, "=")
	if !ok || !nameRE.MatchString(name) {
		return "", spec
	}
	if _, err := os.Lstat(spec); err == nil {
		return "", spec
	}
	if found, err := filepath.Glob(spec); err == nil && len(found) > 0 {
		return "", spec
	}
	return name, what
}

var variable = regexp.MustCompile(`\$\{([^{}]*)\}`)

// expand replaces ${VAR} by the environment variable. Within the user and password of a
// URL the value is escaped, so that any password can stand there.
func expand(what string) (string, error) {
	var out strings.Builder
	from := 0
	for _, m := range variable.FindAllStringSubmatchIndex(what, -1) {
		name := what[m[2]:m[3]]
		value, ok := os.LookupEnv(name)
		if !ok {
			return "", badSpec("environment variable %s is not set", name)
		}
		if inUserinfo(what, m[0], m[1]) {
			value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		}
		out.WriteString(what[from:m[0]])
		out.WriteString(value)
		from = m[1]
	}
	out.WriteString(what[from:])
	return out.String(), nil
}

// inUserinfo says whether what[from:to] stands between "://" and the "@" of a URL.
func inUserinfo(what string, from, to int) bool {
	_, before, ok := strings.Cut(what[:from], "://")
	return ok && !strings.ContainsAny(before, "/?#@") && strings.ContainsRune(upTo(what[to:], "/?#"), '@')
}
