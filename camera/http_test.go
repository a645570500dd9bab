package camera

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/internal/testpic"
)

// httpWatch runs a source and tells of everything that it does, as words: "64x48 grey 10" for a frame, "open", "lost: why", "dropped: why".
type httpWatch struct {
	t      *testing.T
	source Source
	stop   context.CancelFunc
	words  chan string
	ended  chan error
	seqs   []uint64
}

// httpTimes are time-outs that no good server comes near to in these tests, but for silence.
var httpTimes = Timing{Connect: 20 * time.Second, FirstFrame: 20 * time.Second, Stall: 20 * time.Second,
	MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}

func watchHTTP(t *testing.T, spec string, opts ...Option) *httpWatch {
	t.Helper()
	return watchReserved(t, spec, nil, opts...)
}

// watchReserved is watchHTTP where reserve, if not nil, is asked for memory.
func watchReserved(t *testing.T, spec string, reserve func(int64) error, opts ...Option) *httpWatch {
	t.Helper()
	w := &httpWatch{t: t, words: make(chan string, 10_000), ended: make(chan error, 1)}
	s, err := Open(spec, append([]Option{Times(httpTimes), Logger(slog.New(w))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	s.(Monitored).Reserve(reserve)
	ctx, cancel := context.WithCancel(t.Context())
	w.source, w.stop = s, cancel
	go func() { w.ended <- s.Run(ctx, w) }()
	t.Cleanup(func() { cancel(); w.stop() })
	return w
}

func (w *httpWatch) Frame(_ context.Context, f *Frame) error {
	w.seqs = append(w.seqs, f.Seq)
	level := f.Planes[0].Data[0]
	if age := time.Since(f.Captured); f.CapturedBy != frame.ByArrival || age < 0 || age > time.Minute {
		w.t.Errorf("captured %v ago by %q", age, f.CapturedBy)
	}
	w.words <- fmt.Sprintf("%s %dx%d level %d", f.Format, f.Width, f.Height, level)
	f.Release()
	return nil
}
func (w *httpWatch) Fault(err error) { w.words <- "fault: " + err.Error() }
func (w *httpWatch) Reclaim() bool   { return false }
func (w *httpWatch) State(s State, err error) {
	if err != nil {
		w.words <- fmt.Sprintf("%s: %v", s, err)
	}
}

// The slog.Handler of what is dropped.
func (w *httpWatch) Enabled(context.Context, slog.Level) bool { return true }
func (w *httpWatch) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *httpWatch) WithGroup(string) slog.Handler            { return w }
func (w *httpWatch) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			w.words <- "dropped: " + a.Value.String()
		}
		return true
	})
	return nil
}

// next returns the next word; those before the end come before the end.
func (w *httpWatch) next() string {
	w.t.Helper()
	select {
	case got := <-w.words:
		return got
	case err := <-w.ended:
		w.ended <- err
		select {
		case got := <-w.words:
			return got
		default:
			w.t.Fatalf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		w.t.Fatal("nothing came")
	}
	return ""
}

// want waits for words that begin with the given ones, in order.
func (w *httpWatch) want(words ...string) {
	w.t.Helper()
	for _, word := range words {
		got := w.next()
		if !strings.HasPrefix(got, word) {
			w.t.Fatalf("%q, want %q", got, word)
		}
		if strings.Contains(got, "s3cret") || strings.ContainsAny(got, "\r\n") {
			w.t.Errorf("%q holds the password or several lines", got)
		}
	}
}

// end waits for the end, whose error begins with the given text; "" stands for none.
func (w *httpWatch) end(text string) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if got := fmt.Sprint(err); text == "" && err != nil || !strings.HasPrefix(got, text) || strings.Contains(got, "s3cret") || strings.Contains(got, "\n") {
			w.t.Errorf("ended with %q, want %q", got, text)
		}
	case <-time.After(30 * time.Second):
		w.t.Fatal("it does not end")
	}
}

// serveHTTP serves one handler.
func serveHTTP(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// mjpegServer is a camera that sends what it is given, on each connection.
type mjpegServer struct {
	url  string
	send chan []byte // a chunk; nil: end the connection
	gone chan bool   // a client has gone
}

func newMJPEGServer(t *testing.T, contentType string) *mjpegServer {
	l := &mjpegServer{send: make(chan []byte), gone: make(chan bool, 100)}
	l.url = serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		defer func() { l.gone <- true }()
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case chunk := <-l.send:
				if chunk == nil {
					return
				}
				_, _ = w.Write(chunk)
			case <-r.Context().Done():
				return
			}
		}
	})
	return l
}

func mjpegPart(jpg []byte) []byte {
	return append(fmt.Appendf(nil, "\r\n--eyas\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n", len(jpg)), jpg...)
}

// TestHTTPTypes checks that a picture is delivered as soon as its last byte is there, for the ways in which cameras name and divide
// them.
func TestHTTPTypes(t *testing.T) {
	multipart := func(delimiter string) func(i int, jpg []byte) []byte {
		return func(_ int, jpg []byte) []byte {
			return append([]byte(delimiter+"\nContent-Type: image/jpeg\n\n"), append(jpg, "\r\n"...)...)
		}
	}
	bare := func(_ int, jpg []byte) []byte { return jpg }
	for _, c := range []struct {
		contentType string
		chunk       func(i int, jpg []byte) []byte
	}{
		{"multipart/x-mixed-replace; boundary=eyas", func(_ int, jpg []byte) []byte { return mjpegPart(jpg) }},
		{"multipart/x-mixed-replace;boundary=\"eyas\"", multipart("--eyas")},
		{"multipart/x-mixed-replace;boundary=--eyas", multipart("--eyas")},
		{"multipart/x-mixed-replace; Boundary = --eyas ;x", multipart("eyas")},
		{"Multipart/X-Mixed-Replace", multipart("--eyas")},
		{"multipart/mixed; boundary='a b'", multipart("--a b")},
		{"video/x-jpeg", bare},
		{"application/octet-stream", bare},
	} {
		t.Run(c.contentType, func(t *testing.T) {
			l := newMJPEGServer(t, c.contentType)
			w := watchHTTP(t, "door="+l.url+"/video?x=1")
			for i := range 4 {
				l.send <- c.chunk(i, greyJPEG(t, 64, 48, 20*i))
				w.want(fmt.Sprintf("i420 64x48 level %d", 20*i))
			}
			w.stop()
			w.end("context canceled")
			<-l.gone
			if st := w.source.(Monitored).Stats(); st.Captured != 4 || st.Dropped.Total() != 0 || w.source.Name() != "door" || !w.source.Live() {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestHTTPTooLarge checks that the memory is asked for before a picture of another size is looked into, that one which seems too
// large is taken for damage, and that the source ends where it is the first or they are all so.
func TestHTTPTooLarge(t *testing.T) {
	var granted atomic.Int64
	reserve := func(bytes int64) error {
		if bytes > 2<<20 {
			return errors.New("too little memory")
		}
		granted.Store(bytes)
		return nil
	}
	good, large := greyJPEG(t, 320, 240, 50), greyJPEG(t, 1280, 960, 60)
	damaged := bytes.Clone(good) // it fits, and is none of that size
	at := bytes.Index(damaged, []byte{0xff, 0xc0})
	damaged[at+5], damaged[at+7] = 2, 2
	l := newMJPEGServer(t, "multipart/x-mixed-replace; boundary=eyas")
	w := watchReserved(t, "door="+l.url, reserve)
	l.send <- mjpegPart(good)
	w.want("i420 320x240 level 50")
	small := granted.Load()
	for _, bad := range [][]byte{damaged, large} {
		l.send <- mjpegPart(bad)
		w.want("dropped: ")
		l.send <- mjpegPart(good)
		w.want("i420 320x240 level 50")
		if got := granted.Load(); got != small {
			t.Errorf("the plan holds %d bytes, want %d", got, small)
		}
	}
	for i := range mjpegBad {
		l.send <- mjpegPart(large)
		if i < mjpegBad-1 {
			w.want("dropped: too little memory")
		}
	}
	w.end("source door: too little memory")
	<-l.gone

	l = newMJPEGServer(t, "multipart/x-mixed-replace; boundary=eyas")
	w = watchReserved(t, "door="+l.url, reserve)
	l.send <- mjpegPart(large)
	w.end("source door: too little memory")
	<-l.gone
}

// TestHTTPCorrupt checks that damaged parts are counted and skipped, and that none makes memory be taken anew.
func TestHTTPCorrupt(t *testing.T) {
	l := newMJPEGServer(t, "multipart/x-mixed-replace; boundary=eyas")
	w := watchHTTP(t, l.url)
	good := greyJPEG(t, 320, 240, 50)
	noise := bytes.Clone(good)
	for i := len(noise) / 2; i < len(noise)-2; i += 3 {
		noise[i] ^= 0x5a
	}
	larger := bytes.Clone(good)
	at := bytes.Index(larger, []byte{0xff, 0xc0})
	larger[at+5], larger[at+7] = 2, 2 // 576x752, say
	bomb := bytes.Clone(good)
	copy(bomb[at+5:], "\xff\xff\xff\xff")
	l.send <- mjpegPart(good)
	w.want("i420 320x240 level 50")
	for i, c := range []struct {
		name string
		bad  []byte
		why  string
	}{
		{"cut in its data", good[:len(good)-200], "dropped: decode jpeg: the file is truncated"},
		{"cut in its header", cutHeader(good), "dropped: a JPEG ends inside its header"},
		{"text", []byte("server busy"), "dropped: a part without a JPEG"},
		{"empty", nil, "dropped: a part without a JPEG"},
		{"noise", noise, "dropped: decode jpeg: the data is broken"},
		{"a larger size", larger, "dropped: decode jpeg: the "},
		{"a bomb", bomb, "dropped: a JPEG of 65535x65535 pixels, over the limit of"},
		{"no picture data", []byte("\xff\xd8\xff\xd9"), "dropped: a JPEG without picture data"},
	} {
		if l.send <- mjpegPart(c.bad); bytes.HasSuffix(c.bad, []byte{0xff, 0xd9}) {
			w.want(c.why) // else the next part shows
		}
		l.send <- mjpegPart(greyJPEG(t, 320, 240, i))
		if !bytes.HasSuffix(c.bad, []byte{0xff, 0xd9}) && c.name != "cut in its data" {
			w.want(c.why)
		}
		if c.name == "cut in its data" {
			// The newest wins: it may be overtaken before it is decoded.
			if got := w.next(); !strings.HasPrefix(got, c.why) && got != "dropped: a JPEG ends inside its data" {
				t.Error(got)
			}
		}
		w.want(fmt.Sprintf("i420 320x240 level %d", i))
	}
	st := w.source.(Monitored).Stats()
	if st.Dropped != (Drops{Corrupt: 8}) || st.Captured != 17 || st.Connects != 1 {
		t.Errorf("%+v", st)
	}
}

// TestHTTPSizes checks that a new size or format makes new memory, in order.
func TestHTTPSizes(t *testing.T) {
	l := newMJPEGServer(t, "multipart/x-mixed-replace; boundary=eyas")
	w := watchHTTP(t, l.url)
	for i, s := range [][2]int{{64, 48}, {64, 48}, {33, 21}, {640, 480}, {64, 48}} {
		l.send <- mjpegPart(greyJPEG(t, s[0], s[1], i))
		w.want(fmt.Sprintf("i420 %dx%d level %d", s[0], s[1], i))
	}
	if fmt.Sprint(w.seqs) != "[0 1 2 3 4]" {
		t.Error(w.seqs)
	}
}

// TestHTTPSilence checks that a camera that hangs with its connection open is left and connected again, wherever it
// hangs.
func TestHTTPSilence(t *testing.T) {
	jpg := greyJPEG(t, 64, 48, 7)
	for _, c := range []struct {
		name   string
		header bool
		chunk  []byte
		words  []string
	}{
		{"before its answer", false, nil, []string{"lost: no answer within "}},
		{"before the first picture", true, nil, []string{"lost: no answer within "}},
		{"in the first picture", true, mjpegPart(jpg[:len(jpg)/2]), []string{"lost: no answer within "}},
		{"after a picture", true, mjpegPart(jpg), []string{"i420 64x48 level 7", "lost: no picture for "}},
		{"in a picture", true, append(mjpegPart(jpg), mjpegPart(jpg[:300])...), []string{"i420 64x48 level 7", "lost: no picture for "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone := make(chan bool, 1)
			var once sync.Once
			url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				first := false
				once.Do(func() { first = true })
				if !first {
					w.Header().Set("Content-Type", "video/x-jpeg")
					_, _ = w.Write(greyJPEG(t, 16, 16, 99))
					return
				}
				if c.header {
					w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=eyas")
					_, _ = w.Write(c.chunk)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				gone <- true
			})
			short := httpTimes
			short.Connect, short.Stall = 500*time.Millisecond, 500*time.Millisecond
			w := watchHTTP(t, url, Times(short), MaxFrames(map[bool]int{true: 2, false: 1}[len(c.words) > 1]))
			w.want(c.words...)
			<-gone
			w.want("i420 16x16 level 99")
			w.end("<nil>")
		})
	}
}

// TestHTTPStop checks that a source ends at once when it is told to, wherever the camera hangs.
func TestHTTPStop(t *testing.T) {
	for _, contentType := range []string{"", "multipart/x-mixed-replace", "image/jpeg"} {
		t.Run(contentType, func(t *testing.T) {
			asked, gone := make(chan bool), make(chan bool)
			url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				if contentType != "" {
					w.Header().Set("Content-Type", contentType)
					_ = http.NewResponseController(w).Flush()
				}
				asked <- true
				<-r.Context().Done()
				gone <- true
			})
			w := watchHTTP(t, url)
			<-asked
			start := time.Now()
			w.stop()
			w.end("context canceled")
			if d := time.Since(start); d > 5*time.Second { // at once, but machines are busy
				t.Errorf("after %v", d)
			}
			<-gone
		})
	}
}

// TestHTTPComesBack checks that a camera that drops the connection, and is away for some tries, is found again.
func TestHTTPComesBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=eyas")
		_, _ = w.Write(mjpegPart(greyJPEG(t, 64, 48, 5)))
	})
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	w := watchHTTP(t, "http://"+address)
	await := func(words string) {
		for got := ""; !strings.Contains(got, words); {
			got = w.next()
		}
	}
	await("i420 64x48 level 5")
	_ = server.Close()
	await("connection refused")
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skip(err) // somebody else took the port
	}
	server = &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	await("i420 64x48 level 5")
	w.stop()
	w.end("context canceled")
}

// TestHTTPAnswers checks what is said of answers that are no stream.
func TestHTTPAnswers(t *testing.T) {
	scene := testpic.Scene(40, 30)
	png, err := testpic.PNG(scene, 40, 30, 1)
	if err != nil {
		t.Fatal(err)
	}
	turned, err := testpic.JPEG(scene, 40, 30, 6, 90)
	if err != nil {
		t.Fatal(err)
	}
	is := func(contentType string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{contentType}
			_, _ = w.Write(body)
		}
	}
	to := func(where string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", where); w.WriteHeader(302) }
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"png", is("image/png", png), "rgb24 40x30"},
		{"jpeg, turned", is("image/jpeg", turned), "rgb24 40x30"},
		{"broken picture", is("image/jpeg", turned[:500]), "lost: decode jpeg: the file is truncated"},
		{"page", is("text/html; charset=utf-8", []byte("<html>")), `lost: the URL gives "text/html", neither MJPEG nor a picture: check its path`},
		{"not found", http.NotFound, "lost: the camera answers 404 Not Found: check the URL"},
		{"odd status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, "lost: the camera answers 299: check the URL"},
		{"ends at once", is("video/x-jpeg", nil), "lost: the camera ended the stream"},
		{"noise", is("application/octet-stream", bytes.Repeat([]byte("noise"), 1<<18)), "lost: no JPEG in 1024 KiB of data: is this MJPEG?"},
		{"redirects without end", to("/"), "lost: the camera redirects more than 5 times: check the URL"},
		{"redirects to a file", to("file:///etc/passwd"), "lost: the camera redirects to what is no http or https URL: check the URL"},
		{"redirects nowhere", to(""), "lost: the camera redirects to what is no http or https URL: check the URL"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = conn.Write([]byte("RTSP/1.0 200 OK\r\n\r\n"))
			_ = conn.Close()
		}, "lost: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := watchHTTP(t, strings.Replace(serveHTTP(t, c.answer), "http://", "http://user:s3cret@", 1))
			w.want(c.want)
			if strings.HasPrefix(c.want, "rgb24") {
				w.end("<nil>")
			}
		})
	}
}

// TestHTTPOnlyCorrupt checks that a stream of which nothing can be decoded says why.
func TestHTTPOnlyCorrupt(t *testing.T) {
	bad := append(greyJPEG(t, 64, 48, 1)[:600:600], 0xff, 0xd9)
	url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/x-jpeg")
		for r.Context().Err() == nil {
			_, _ = w.Write(bad)
		}
	})
	w := watchHTTP(t, url)
	for got := ""; !strings.HasPrefix(got, "lost: none of the first 10 pictures is good: decode jpeg: "); {
		got = w.next()
	}
}

func TestHTTPS(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "https://")
	w := watchHTTP(t, "https://user:s3cret@"+host)
	w.want("lost: the certificate of " + host + " is not trusted (x509: certificate signed by unknown authority): name a file with it in SSL_CERT_FILE, or use http://")
	plain := serveHTTP(t, http.NotFound)
	w = watchHTTP(t, strings.Replace(plain, "http://", "https://user:s3cret@", 1))
	w.want("lost: ")
}

// TestHTTPSpecs checks the texts.
func TestHTTPSpecs(t *testing.T) {
	for spec, want := range map[string]string{
		"http://":                       "source http://: the host is missing: write http://HOST/PATH",
		"https:///video":                "source https:///video: the host is missing: write https://HOST/PATH",
		"http://user:s3c%ret@cam/video": "source http://cam/video: the URL cannot be read: write special characters",
		"http://cam:port/":              "source http://cam:port/: the URL cannot be read",
	} {
		_, err := Open(spec)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	s, err := Open("HTTP://user:s3cret@cam/video?pwd=s3cret")
	if err != nil || s.Name() != "HTTP://cam/video?pwd=***" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestHTTPPassword checks the kinds of authentication against a server that works them out itself.
func TestHTTPPassword(t *testing.T) {
	const realm, nonce = `c"am`, "abc="
	param := func(header, name string) string {
		for _, start := range []string{" " + name + `="`, " " + name + "="} {
			if _, rest, ok := strings.Cut(header, start); ok {
				return strings.TrimRight(upTo(rest, `",`), `"`)
			}
		}
		return ""
	}
	digest := func(sum func() hash.Hash, algorithm, qop, password string) func(r *http.Request) bool {
		h := func(s string) string {
			d := sum()
			d.Write([]byte(s))
			return fmt.Sprintf("%x", d.Sum(nil))
		}
		return func(r *http.Request) bool {
			a := r.Header.Get("Authorization")
			ha1 := h("us er:" + realm + ":" + password)
			if strings.HasSuffix(algorithm, "sess") {
				ha1 = h(ha1 + ":" + nonce + ":" + param(a, "cnonce"))
			}
			want := h(ha1 + ":" + nonce + ":" + h("GET:"+r.RequestURI))
			if qop != "" {
				want = h(ha1 + ":" + nonce + ":00000001:" + param(a, "cnonce") + ":auth:" + h("GET:"+r.RequestURI))
			}
			return param(a, "response") == want && param(a, "uri") == r.RequestURI
		}
	}
	basic := func(password string) func(r *http.Request) bool {
		return func(r *http.Request) bool { u, p, ok := r.BasicAuth(); return ok && u == "us er" && p == password }
	}
	const refused = "source cam: the camera refuses the user or the password (401): check both"
	quotedRealm := `realm="c\"am"`
	for _, c := range []struct {
		name, userinfo, challenge string
		good                      func(r *http.Request) bool
		want                      string // of the end; "": a frame
	}{
		{"basic", "us%20er:s3cret@", `Basic ` + quotedRealm, basic("s3cret"), ""},
		{"basic, refused", "us%20er:s3cret@", `Basic ` + quotedRealm, basic("other"), refused},
		{"basic, none given", "", `Basic ` + quotedRealm, basic("s3cret"),
			"source cam: the camera wants a user and password (401): write USER:${VARIABLE} and an @ before the host"},
		{"digest", "us%20er:s3cret@", `Digest ` + quotedRealm + `, nonce="` + nonce + `", qop="auth"`, digest(md5.New, "", "auth", "s3cret"), ""},
		{"digest, refused", "us%20er:s3cret@", `Digest ` + quotedRealm + `, nonce="` + nonce + `", qop="auth"`, digest(md5.New, "", "auth", "other"), refused},
		{"digest of SHA-256", "us%20er:s3cret@", `Digest ` + quotedRealm + `, nonce="` + nonce + `", qop="auth", algorithm=SHA-256`, digest(sha256.New, "SHA-256", "auth", "s3cret"), ""},
		{"digest with a session", "us%20er:s3cret@", `Digest ` + quotedRealm + `, nonce="` + nonce + `", qop="auth", algorithm=MD5-sess`, digest(md5.New, "MD5-sess", "auth", "s3cret"), ""},
		{"digest without qop", "us%20er:s3cret@", `Digest ` + quotedRealm + `, nonce="` + nonce + `"`, digest(md5.New, "", "", "s3cret"), ""},
		{"other ways", "us%20er:s3cret@", `Negotiate`, basic("s3cret"),
			"source cam: the camera wants the password in a way that is not supported (401): set it to Digest or Basic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				if !c.good(r) {
					w.Header().Set("WWW-Authenticate", c.challenge)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.Header().Set("Content-Type", "video/x-jpeg")
				_, _ = w.Write(greyJPEG(t, 16, 16, 3))
			})
			w := watchHTTP(t, "cam="+strings.Replace(url, "http://", "http://"+c.userinfo, 1)+"/a%20b?c=d", MaxFrames(1))
			if c.want == "" {
				w.want("i420 16x16 level 3")
				c.want = "<nil>"
			}
			w.end(c.want)
		})
	}
}

// TestHTTPPasswordLater checks that a camera that knew the password is asked again when it refuses it, and that a nonce that
// is too old is no refusal.
func TestHTTPPasswordLater(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		_, _, known := r.BasicAuth()
		switch {
		case !known:
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		case asked == 2:
			w.Header().Add("WWW-Authenticate", `Digest nonce="x", stale=TRUE, algorithm=unknown`)
			w.Header().Add("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		case asked == 3, asked == 7:
			w.Header().Set("Content-Type", "video/x-jpeg")
			_, _ = w.Write(greyJPEG(t, 16, 16, asked))
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	w := watchHTTP(t, strings.Replace(url, "http://", "http://u:s3cret@", 1), MaxFrames(2))
	w.want("i420 16x16 level 3", "lost: the camera ended the stream", "lost: the camera refuses the user or the password (401)", "i420 16x16 level 7")
	w.end("<nil>")
}

// TestHTTPRedirects checks where user and password go along.
func TestHTTPRedirects(t *testing.T) {
	got := make(chan string, 10)
	asks := func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); ok {
			got <- u + ":" + p
		}
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "video/x-jpeg")
		_, _ = w.Write(greyJPEG(t, 16, 16, 3))
	}
	for _, c := range []struct {
		name, location string // with PORT
		want           string
	}{
		{"same host", "/video", "u:s3cret"},
		{"same host with others", "http://x:y@127.0.0.1:PORT/video", "u:s3cret"},
		{"another host", "http://localhost:PORT/video", ""},
		{"another host with others", "//x:y@localhost:PORT/video", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/video" {
					asks(w, r)
					return
				}
				_, port, _ := net.SplitHostPort(r.Host)
				w.Header().Set("Location", strings.Replace(c.location, "PORT", port, 1))
				w.WriteHeader(http.StatusFound)
			})
			w := watchHTTP(t, strings.Replace(url, "http://", "http://u:s3cret@", 1), MaxFrames(1))
			if c.want == "" {
				w.end("source " + url + ": the camera wants a user and password (401)")
				if len(got) > 0 {
					t.Errorf("%s was sent", <-got)
				}
				return
			}
			w.want("i420 16x16 level 3")
			if sent := <-got; sent != c.want {
				t.Errorf("%s was sent", sent)
			}
			w.end("<nil>")
		})
	}
}

// TestHTTPFFmpeg reads ffmpeg's own server.
func TestHTTPFFmpeg(t *testing.T) {
	ffmpeg := testenv.FFmpeg(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	url := "http://" + address + "/cam"
	for _, c := range []struct{ name, format, contentType, pixels, want string }{
		{"multipart of 4:2:0", "mpjpeg", "multipart/x-mixed-replace;boundary=ffmpeg", "yuvj420p", "i420 320x240"},
		{"multipart of 4:2:2", "mpjpeg", "multipart/x-mixed-replace;boundary=ffmpeg", "yuvj422p", "i422 320x240"},
		{"bare of 4:4:4", "mjpeg", "video/x-motion-jpeg", "yuvj444p", "rgb24 320x240"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cmd := exec.CommandContext(ctx, ffmpeg, "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25",
				"-pix_fmt", c.pixels, "-f", c.format, "-content_type", c.contentType, "-listen", "1", url)
			cmd.Stderr = io.Discard
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cancel(); _ = cmd.Wait() }()
			w := watchHTTP(t, url, MaxFrames(20)) // ffmpeg listens some time after its start
			for n := 0; n < 20; {
				if got := w.next(); strings.HasPrefix(got, c.want) {
					n++
				} else if !strings.Contains(got, "connection refused") {
					t.Fatal(got)
				}
			}
			w.end("<nil>")
		})
	}
}
