// Package rtsptest gives tests a real RTSP server: GStreamer's, in a Python process of its own, which does what a
// test tells it. It listens on 127.0.0.1 only.
package rtsptest

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/testenv"
)

//go:embed rtspserver.py
var program string // its first lines describe arguments and commands

// Server is a server that runs.
type Server struct {
	Port string // on 127.0.0.1

	t   testing.TB
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts the server, which ends with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	cmd := exec.Command(python(t), append([]string{"-c", program}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server said: %s", said.String())
		}
	})
	if !s.out.Scan() {
		t.Fatal("the RTSP server did not start")
	}
	s.Port = strings.TrimPrefix(s.out.Text(), "port ")
	return s
}

// python returns a Python that has GStreamer's RTSP server.
func python(t testing.TB) string {
	t.Helper()
	const probe = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", probe).Run() == nil && exec.Command("gst-inspect-1.0", "--exists", "x264enc").Run() == nil {
			return python
		}
	}
	testenv.Require(t, false, "no RTSP server: install python3-gi, gir1.2-gst-rtsp-server-1.0 and gstreamer1.0-plugins-ugly")
	return ""
}

// Do has the server obey a command.
func (s *Server) Do(command string) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		s.t.Fatal(err)
	}
	if !s.out.Scan() || s.out.Text() != "ok "+command {
		s.t.Fatalf("the RTSP server answered %q to %s", s.out.Text(), command)
	}
}
