package web

import (
	"bytes"
	"errors"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
)

// viewer reads the pictures of a view.
type viewer struct {
	body  io.Closer
	parts *multipart.Reader
}

func watch(t *testing.T, s *Server, name string) *viewer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	answer, err := client.Get("http://" + s.Addr() + viewPath(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		answer.Body.Close()
		client.CloseIdleConnections()
	})
	kind, params, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != 200 || kind != "multipart/x-mixed-replace" || err != nil {
		body, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s %q %v: %s", answer.Status, kind, err, body)
	}
	return &viewer{answer.Body, multipart.NewReader(answer.Body, params["boundary"])}
}

// next returns the next picture as JPEG, io.EOF after the last one.
func (v *viewer) next() ([]byte, error) {
	part, err := v.parts.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

// All of a hundred viewers of ten cameras get moving pictures.
func TestManyViewers(t *testing.T) {
	s := listenTest(t, Options{})
	rt := &fakeRuntime{}
	names := strings.Split("abcdefghij", "")
	for _, name := range names {
		rt.sources = append(rt.sources, openCamera(name))
	}
	s.Ready(rt)
	var all sync.WaitGroup
	for i := range 100 {
		v := watch(t, s, names[i%len(names)])
		all.Go(func() {
			different := map[string]bool{}
			for len(different) < 4 {
				picture, err := v.next()
				if err == nil {
					_, err = jpeg.DecodeConfig(bytes.NewReader(picture))
				}
				if err != nil {
					t.Errorf("after %d pictures: %v", len(different), err)
					return
				}
				different[string(picture)] = true
			}
		})
	}
	for _, name := range names {
		feed(t, "test:pattern?size=160x96&fps=20", name, &pattern{server: s})
	}
	all.Wait()
}

// A viewer that does not read keeps neither the others waiting nor the consumer of the results.
func TestViewerThatStalls(t *testing.T) {
	s := listenTest(t, Options{})
	rt := &fakeRuntime{}
	rt.set(openCamera("door"))
	s.Ready(rt)
	stalled, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	_ = stalled.(*net.TCPConn).SetReadBuffer(4 << 10) // only to fill it sooner
	if _, err := io.WriteString(stalled, get("/view/door")); err != nil {
		t.Fatal(err)
	}
	v := watch(t, s, "door")
	// Noise makes large pictures: there is soon more of them than any socket holds.
	feed(t, "test:pattern?size=1280x720&fps=20", "door", &pattern{server: s, noise: rand.NewChaCha8([32]byte{})})
	for seen := 0; seen < 6<<20; {
		picture, err := v.next()
		if err != nil {
			t.Fatalf("after %d bytes: %v", seen, err)
		}
		seen += len(picture)
	}
}

func TestTooManyViewers(t *testing.T) {
	s := listenTest(t, Options{Viewers: 1})
	rt := &fakeRuntime{}
	rt.set(openCamera("door"), openCamera("yard"))
	s.Ready(rt)
	first := watch(t, s, "door")
	if _, err := first.next(); err != nil {
		t.Fatal(err)
	}
	answer, body := ask(t, s, get("/view/yard"))
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "1 people look already") || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %s", answer.Status, body)
	}
	first.body.Close()
	for s.views.get("door") != nil { // until the server has seen it go, or the test's time is over
		goruntime.Gosched()
	}
	if _, err := watch(t, s, "yard").next(); err != nil {
		t.Errorf("the place of who has gone is not free: %v", err)
	}
}

// Who looks when everything ends sees a last, whole picture that says so, and then the end.
func TestCloseEndsViews(t *testing.T) {
	s := listenTest(t, Options{})
	rt := &fakeRuntime{}
	rt.set(openCamera("door"))
	s.Ready(rt)
	v := watch(t, s, "door")
	if _, err := v.next(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := v.next(); err != nil {
		t.Errorf("no last picture: %v", err)
	}
	if _, err := v.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last picture comes %v", err)
	}
	if s.Wanted("door") {
		t.Error("a picture is wanted after the end")
	}
}
