package camera

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// connectGst plays the camera by GStreamer. Its password stands in the arguments of gst-launch-1.0, which has no other way in.
func (s *rtsp) connectGst(ctx context.Context, out *Output) error {
	log := newGstLog()
	log.hide = strings.NewReplacer(s.secrets()...)
	err := runGst(ctx, out, s.gstWords(), log)
	switch {
	case errors.Is(err, errGstFailed) && s.url.Scheme == "rtsps" && strings.Contains(log.said(), "Failed to connect"):
		return s.tlsFault(ctx)
	case errors.Is(err, errGstFailed):
		if err := log.missing(); err != nil {
			return err
		}
		return s.explain(out, "GStreamer", log.said())
	case errors.Is(err, io.EOF):
		return errors.New("the camera ended the stream")
	}
	return err
}

// gstWords is the pipeline. drop-on-latency keeps the jitter buffer at its size when the decoder falls behind.
func (s *rtsp) gstWords() []string {
	words := []string{
		"rtspsrc", gstQuoted("location", s.url.String()), "protocols=tcp",
		fmt.Sprintf("latency=%d", s.latency.Milliseconds()), "drop-on-latency=true", "do-rtcp=true",
	}
	if !s.verify {
		words = append(words, "tls-validation-flags=0")
	}
	words = append(words, "!", "application/x-rtp,media=video", "!", "decodebin", "!")
	if s.machine.jetson {
		return append(words, "nvvidconv", "!", "video/x-raw,format=NV12")
	}
	return append(words, "videoconvert", "!", gstRaw)
}

// gstQuoted is a property in gst-launch's own quotes, in which blanks and ! mean nothing.
func gstQuoted(property, value string) string {
	return property + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// tlsFault says why no encrypted connection came about, which GStreamer does not.
func (s *rtsp) tlsFault(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: !s.verify}} //nolint:gosec // it only asks what is wrong
	conn, err := d.DialContext(ctx, "tcp", s.address())
	if err == nil {
		conn.Close()
		return errors.New("the camera gives no encrypted connection that GStreamer accepts: check its certificate")
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return fmt.Errorf("the camera's certificate is not trusted (%w): install it on this machine, or add #verify=off to do without the check", cert.Err)
	}
	return fmt.Errorf("the camera gives no encrypted connection: %w", err)
}
