package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// ask sends a request as it stands and returns the answer.
func ask(t *testing.T, s *Server, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

func TestAnswers(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "eyas_up 1") })
	starting, ready := listenTest(t, Options{Metrics: metrics}), listenTest(t, Options{})
	rt := &fakeRuntime{}
	lost := eyas.SourceStatus{Name: "<b>x</b>/../y?z#é", Live: true, State: "lost", Error: "no <answer>", Age: 42 * time.Millisecond}
	lost.Dropped[camera.Corrupt], lost.Dropped[camera.NoSlot] = 3, 4
	rt.set(openCamera("door"), lost, openCamera(".."), eyas.SourceStatus{Name: "clip.mp4", State: "ended"})
	ready.Ready(rt)
	for _, c := range []struct {
		name    string
		server  *Server
		request string
		status  int
		body    []string
	}{
		{"alive before ready", starting, get("/healthz"), 200, []string{"ok"}},
		{"not ready", starting, get("/readyz"), 503, []string{"models are being loaded"}},
		{"ready", ready, get("/readyz"), 200, []string{"ready"}},
		{"page before ready", starting, get("/"), 200, []string{"models are being loaded"}},
		{"view before ready", starting, get("/view/door"), 503, []string{"models are being loaded"}},
		{"metrics", starting, get("/metrics"), 200, []string{"eyas_up 1"}},
		{"no metrics", ready, get("/metrics"), 404, nil},
		{"page", ready, get("/"), 200, []string{
			"2 of 4 open", `href="/view/door"`, "640×360 rgb24", "30.0 → 29.5", // one camera
			"&lt;b&gt;x&lt;/b&gt;", `href="/view/%3Cb%3Ex%3C%2Fb%3E%2F..%2Fy%3Fz%23%C3%A9"`, "no &lt;answer&gt;", "42.0 ms", "3 corrupt, 4 no slot", ">7<",
			`href="/view/?name=.."`, "<small>file</small>",
		}},
		{"style", ready, get("/page.css"), 200, []string{"prefers-color-scheme"}},
		{"script", ready, get("/page.js"), 200, []string{"fetch("}},
		{"unknown source", ready, get("/view/doo%22r"), 404, []string{`there is no source "doo\"r": known are "door", "<b>x</b>`}},
		{"view without name", ready, get("/view/"), 404, []string{`no source ""`}},
		{"unknown path", ready, get("/etc/passwd"), 404, nil},
		{"head of a view", ready, "HEAD /view/door HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, nil},
		{"head of an escaped view", ready, "HEAD " + viewPath(lost.Name) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, nil},
		{"head of dots", ready, "HEAD /view/?name=.. HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, nil},
		{"writing", ready, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405, nil},
		{"body", ready, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", 413, []string{"no body"}},
		{"body of unknown length", ready, "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 413, []string{"no body"}},
		{"another's name", ready, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, []string{"localhost"}},
		{"long header", ready, "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", 431, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, body := ask(t, c.server, c.request)
			if answer.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", answer.StatusCode, c.status, body)
			}
			for _, want := range c.body {
				if !strings.Contains(body, want) {
					t.Errorf("%q is not in %s", want, body)
				}
			}
			if c.status == 431 {
				return // net/http's own
			}
			for key, want := range map[string]string{
				"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff",
				"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			} {
				if got := answer.Header.Get(key); !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

// Nothing of the page runs or loads what its policy forbids.
func TestPageKeepsItsPolicy(t *testing.T) {
	page, err := files.ReadFile("page.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"style=", "<style", "onclick", "onload", "http:", "https:", "data:", "javascript:"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if strings.Count(string(page), "<script") != strings.Count(string(page), "<script src=") {
		t.Error("the page has a script of its own")
	}
}

// The view does not end with a page's time-out; connections that say nothing do not live for ever.
func TestTimeouts(t *testing.T) {
	s := listenTest(t, Options{})
	if s.server.ReadHeaderTimeout <= 0 || s.server.WriteTimeout <= 0 || s.server.IdleTimeout <= 0 || s.server.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", &s.server)
	}
	if s.server.ReadTimeout != 0 {
		t.Error("a time-out on reading would end views")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	count := limitConnections(1)
	first, _ := net.Pipe()
	count(first, http.StateNew)
	count(server, http.StateNew)
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection too many is open: %v", err)
	}
	count(server, http.StateClosed)
	count(first, http.StateClosed)
	third, other := net.Pipe()
	defer third.Close()
	count(third, http.StateNew)
	go other.Close()
	if _, err := third.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection within the limit is closed: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	s, err := Listen(":0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("a closed server still listens")
	}
}
