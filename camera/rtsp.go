package camera

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/internal/child"
)

// rtspLatency is the jitter buffer's size where the text gives none: TCP keeps order, so it only has to bridge
// what the camera and the network do to the pace.
const rtspLatency = 100 * time.Millisecond

var errRTSPRefused = errors.New("the camera refuses the user or the password (401): check them")

// rtspMaxURL is the longest URL in bytes: it goes through a pipe that nobody reads yet.
const rtspMaxURL = 4096

// rtsp is a camera in the network, over TCP.
type rtsp struct {
	url     *url.URL
	shown   string // the URL as messages may show it
	latency time.Duration
	decoder string // "gst", "ffmpeg", or "" for what suits the machine
	verify  bool   // of rtsps: the certificate
	warn    func(text string, args ...any)

	machine *rtspMachine // nil before the first connection
}

// rtspMachine is what this machine has for RTSP.
type rtspMachine struct {
	gst      bool // GStreamer with all that a pipeline needs
	jetson   bool // it decodes by the board's own decoder
	ffmpeg   bool
	hardware bool // there is a device that ffmpeg may decode with
}

// openRTSP opens HOST/PATH#latency=100ms&decoder=gst&verify=off behind "rtsp://" or "rtsps://". The part behind # is ours, all before
// it the camera's.
func openRTSP(scheme string) func(b base, rest string) (Source, error) {
	return func(b base, rest string) (Source, error) {
		s, err := newRTSP(scheme, rest)
		if err != nil {
			return nil, err
		}
		s.warn = b.opts.log.Warn
		return supervise(b, s), nil
	}
}

func newRTSP(scheme, rest string) (*rtsp, error) {
	if err := splitPassword(rest); err != nil {
		return nil, err
	}
	where, fragment, _ := strings.Cut(rest, "#")
	if strings.Contains(fragment, "@") {
		return nil, badSpec("user or password has a # in it: write it as %%23, or put the password into ${VARIABLE}")
	}
	u, err := url.Parse(scheme + "://" + where)
	// url's error quotes what it parsed, password and all.
	if err != nil || u.Hostname() == "" || len(where) > rtspMaxURL {
		return nil, badSpec("this is no URL like %s://host:port/path: characters like / ? # %% and blanks in a user or password "+
			"are written as %%XX, or come from ${VARIABLE}", scheme)
	}
	s := &rtsp{url: u, shown: Redact(scheme + "://" + where), verify: true}
	p, err := parseParams(fragment, "latency", "decoder", "verify")
	if err != nil {
		return nil, err
	}
	return s, s.params(p)
}

func (s *rtsp) params(p params) (err error) {
	text := p.or("latency", rtspLatency.String())
	if s.latency, err = time.ParseDuration(text); err != nil || s.latency < 0 || s.latency > 10*time.Second {
		return badSpec("latency %q is not a time up to 10s, like 200ms", text)
	}
	switch v := p.or("verify", "on"); v {
	case "on", "off":
		s.verify = v == "on"
	default:
		return badSpec("verify %q is neither on nor off", v)
	}
	_, noGstHere := child.Look("gst-launch-1.0")
	_, noFFmpeg := child.Look("ffmpeg")
	s.decoder = p.Get("decoder")
	switch {
	case s.decoder != "" && s.decoder != "gst" && s.decoder != "ffmpeg":
		return badSpec("decoder %q is neither gst nor ffmpeg", s.decoder)
	case s.decoder == "gst" && noGstHere != nil:
		return errors.New("decoder=gst " + noGst)
	case s.decoder == "ffmpeg" && noFFmpeg != nil:
		return errors.New("decoder=ffmpeg needs ffmpeg, which is not installed: apt-get install ffmpeg")
	case noGstHere != nil && noFFmpeg != nil:
		return errors.New("RTSP needs GStreamer or ffmpeg, and neither is installed: apt-get install ffmpeg")
	}
	return nil
}

func (s *rtsp) Connect(ctx context.Context, out *Output) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	if s.machine == nil {
		m, err := lookRTSP(ctx)
		if err != nil {
			return err
		}
		s.machine = &m
	}
	switch {
	case s.usesGst():
		return s.connectGst(ctx, out)
	case s.url.Scheme == "rtsps" && s.verify:
		return Permanent(errors.New("ffmpeg does not check the certificates of cameras: install GStreamer (apt-get install gstreamer1.0-tools " +
			"gstreamer1.0-plugins-good gstreamer1.0-plugins-bad), or add #verify=off to do without the check"))
	}
	return s.connectFFmpeg(ctx, out)
}

// reach knocks at the camera's door. While a camera is away this takes no process, and its error says more than those of the children.
func (s *rtsp) reach(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address())
	if err == nil {
		return conn.Close()
	}
	var dns *net.DNSError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &dns) {
		return fmt.Errorf("host %s is not known: check its name", s.url.Hostname())
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("cannot reach the camera at %s: %w", s.address(), err)
}

// address is the camera's host and port.
func (s *rtsp) address() string {
	port := s.url.Port()
	switch {
	case port == "" && s.url.Scheme == "rtsps":
		port = "322"
	case port == "":
		port = "554"
	}
	return net.JoinHostPort(s.url.Hostname(), port)
}

// lookRTSP finds out what the machine has.
func lookRTSP(ctx context.Context) (m rtspMachine, err error) {
	if _, err := child.Look("gst-launch-1.0"); err == nil {
		if m.gst, err = gstHasAll(ctx, "rtspsrc", "rtph264depay", "decodebin", "gdppay"); err != nil {
			return m, err
		}
		if m.jetson, err = gstHasAll(ctx, "nvv4l2decoder", "nvvidconv"); err != nil {
			return m, err
		}
	}
	_, err = child.Look("ffmpeg")
	m.ffmpeg = err == nil
	for _, device := range []string{"/dev/dri/renderD128", "/dev/nvidiactl"} {
		_, err := os.Stat(device)
		m.hardware = m.hardware || err == nil
	}
	return m, nil
}

// usesGst chooses between the decoders. ffmpeg can be told a password so that no list of processes shows it, GStreamer cannot;
// GStreamer checks certificates, ffmpeg before version 8 does not; the decoder of a Jetson needs GStreamer.
func (s *rtsp) usesGst() bool {
	switch {
	case s.decoder != "":
		return s.decoder == "gst"
	case !s.machine.gst || !s.machine.ffmpeg:
		return s.machine.gst
	case s.machine.jetson, s.url.Scheme == "rtsps":
		return true
	}
	_, secret := s.url.User.Password()
	return !secret
}

// secrets are pairs of what children are told and what may be shown of it.
func (s *rtsp) secrets() (pairs []string) {
	add := func(secret, shown string) {
		if secret != "" {
			pairs = append(pairs, secret, shown)
		}
	}
	add(s.url.String(), s.shown)
	if s.url.User != nil {
		add(s.url.User.String(), "***")
		password, _ := s.url.User.Password()
		add(password, "***")
		add(url.QueryEscape(password), "***")
		add(url.PathEscape(password), "***")
	}
	return pairs
}

// explain makes one line of what a decoder said when it failed. A password that is refused before the first picture ends the source, since
// cameras lock accounts that try again and again.
func (s *rtsp) explain(out *Output, decoder, said string) error {
	// ffmpeg writes "method DESCRIBE failed: 401 Unauthorized", GStreamer "Unauthorized (401)".
	answer := func(code string) bool {
		return strings.Contains(said, "failed: "+code+" ") || strings.Contains(said, "("+code+")")
	}
	switch {
	case answer("401") && s.url.User == nil:
		return Permanent(errors.New("the camera wants a user and a password (401): write USER:${VARIABLE} and an @ before the host"))
	case answer("401") && out.next == 0:
		return Permanent(errRTSPRefused)
	case answer("401"):
		return errRTSPRefused
	case answer("403"):
		return errors.New("the camera does not let this user see the stream (403): check the user's rights")
	case answer("404"):
		return fmt.Errorf("the camera has no stream %s (404): check the path", s.url.EscapedPath())
	case answer("461"), strings.Contains(said, "no protocols left"):
		return errors.New("the camera does not give its stream over TCP (461): allow RTSP over TCP in its settings")
	// ffmpeg asks only for video: where there is none it has no session to play.
	case strings.Contains(said, "matches no streams"), strings.Contains(said, "PLAY failed: 45"), strings.Contains(said, "reason not-linked"):
		return errors.New("the camera's stream has no video: check the path")
	}
	return fmt.Errorf("%s cannot play the camera's stream: %s", decoder, said)
}
