package catalog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestPull(t *testing.T) {
	data := content(300_000)
	other := append(content(300_000-1), 'x')
	tests := []struct {
		name     string
		origin   *origin
		entry    func(*Entry)
		part     []byte // left by an earlier run
		tag      string // likewise
		err      string // empty: it succeeds
		requests int32
		ranges   []string
	}{
		{name: "plain", requests: 1},
		{name: "size not stated", entry: func(e *Entry) { e.Files[0].Size = 0 }, requests: 1},
		{name: "neither size nor length", origin: &origin{noLength: true}, entry: func(e *Entry) { e.Files[0].Size = 0 }, requests: 1},
		{name: "cut twice and resumed", origin: &origin{etag: `"a"`, cut: map[int]int{1: 100_000, 2: 50_000}},
			requests: 3, ranges: []string{"", "bytes=100000-", "bytes=150000-"}},
		{name: "cut, server without ranges", origin: &origin{noRange: true, cut: map[int]int{1: 100_000}}, requests: 2},
		{name: "cut, another part comes", origin: &origin{badRange: true, cut: map[int]int{1: 100_000}}, requests: 3,
			ranges: []string{"", "bytes=100000-", ""}},
		{name: "always cut", origin: &origin{noRange: true, cut: map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}},
			err: "unexpected EOF", requests: maxAttempts},
		{name: "resumed from an earlier run", origin: &origin{etag: `"a"`}, part: data[:200_000], tag: `"a"`, requests: 1,
			ranges: []string{"bytes=200000-"}},
		{name: "earlier run of a file that changed", origin: &origin{etag: `"b"`}, part: other[:200_000], tag: `"a"`, requests: 1},
		{name: "earlier run left something else", part: bytes.Repeat([]byte{1}, 200_000), requests: 2,
			ranges: []string{"bytes=200000-", ""}},
		{name: "earlier run left too much", part: append(data[:300_000:300_000], 1), requests: 1, ranges: []string{""}},
		{name: "earlier run left all", part: data, requests: 0},
		{name: "earlier run left all, size not stated", part: data, entry: func(e *Entry) { e.Files[0].Size = 0 }, requests: 1},
		{name: "busy server", origin: &origin{status: map[int]int{1: 503, 2: 429}}, requests: 3},
		{name: "not there", origin: &origin{status: map[int]int{1: 404}}, err: "404 Not Found", requests: 1},
		{name: "broken server", origin: &origin{status: map[int]int{1: 500, 2: 500, 3: 500, 4: 500, 5: 500, 6: 500}},
			err: "500 Internal Server Error", requests: maxAttempts},
		{name: "wrong content", origin: &origin{data: other}, err: "its SHA-256 is", requests: 1},
		{name: "wrong length", origin: &origin{data: data[:1000]}, err: "offers 1000 bytes, the catalog says 300000", requests: 1},
		{name: "more than stated", origin: &origin{data: append(data[:300_000:300_000], 1), noLength: true},
			err: "more than 300000 bytes came", requests: 1},
		{name: "redirected to http", origin: &origin{redirect: "http://example.com/test.onnx"},
			err: "refused to go to http://example.com", requests: 1},
		{name: "redirected for ever", origin: &origin{redirect: "/again"}, err: "more than 10 redirections", requests: 10},
		{name: "no build for this platform", entry: func(e *Entry) { e.Files[0].Platform = "plan9/mips" },
			err: "no official build is published for linux/amd64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.origin
			if o == nil {
				o = new(origin)
			}
			if o.data == nil {
				o.data = data
			}
			e := modelOf(data)
			if tt.entry != nil {
				tt.entry(&e)
			}
			opts := o.start(t)
			dir := filepath.Join(opts.Home, "models")
			part := filepath.Join(dir, ".test-"+e.Files[0].SHA256[:16]+".part")
			if tt.part != nil {
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(part, tt.part, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.tag != "" {
				if err := os.WriteFile(part+".etag", []byte(tt.tag), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			paths, err := pull(t.Context(), e, opts)
			model := filepath.Join(dir, "test.onnx")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v, want one line with %q", err, tt.err)
				}
				if _, err := os.Stat(model); err == nil {
					t.Error("something was installed")
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(model); err != nil || !bytes.Equal(got, data) || len(paths) != 1 || paths[0] != model {
					t.Errorf("installed %v, %d bytes, %v", paths, len(got), err)
				}
				onlyVisible(t, dir, "test.onnx", "test.txt")
			}
			if got := o.requests.Load(); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
			for i, want := range tt.ranges {
				if i >= len(o.ranges) || o.ranges[i] != want {
					t.Errorf("ranges %q, want %q", o.ranges, tt.ranges)
					break
				}
			}
		})
	}
}

// onlyVisible fails unless dir holds these files, and besides them at most the lock.
func onlyVisible(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		if len(want) == 0 || e.Name() != want[0] {
			t.Errorf("%s holds %s, want %v", dir, e.Name(), want)
			return
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("%s lacks %v", dir, want)
	}
}

func TestPullAgain(t *testing.T) {
	data := content(5000)
	o := &origin{data: data}
	opts := o.start(t)
	e := modelOf(data)
	again := func(want int32) []string {
		t.Helper()
		paths, err := pull(t.Context(), e, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.requests.Load(); got != want {
			t.Errorf("%d requests, want %d", got, want)
		}
		return paths
	}
	again(1)
	model := again(1)[0] // intact: nothing is fetched
	if info, err := os.Stat(filepath.Dir(model)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", info.Mode(), err)
	}
	record, err := os.ReadFile(filepath.Join(filepath.Dir(model), "test.txt"))
	if err != nil || !strings.Contains(string(record), "licence: MIT, stated in https://example.com/LICENSE") {
		t.Errorf("record %s, %v", record, err)
	}
	if err := os.WriteFile(model, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	again(2)
	e.Version = "2" // another release under the same name
	again(3)
}

func TestPullProgress(t *testing.T) {
	data := content(500_000)
	o := &origin{data: data, cut: map[int]int{1: 200_000}}
	opts := o.start(t)
	var last int64
	opts.Progress = func(done, total int64) {
		if done < last || total != int64(len(data)) {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}
	if _, err := pull(t.Context(), modelOf(data), opts); err != nil || last != int64(len(data)) {
		t.Errorf("progress ended at %d, %v", last, err)
	}
}

func TestPullTwoAtOnce(t *testing.T) {
	data := content(100_000)
	o := &origin{data: data}
	opts := o.start(t)
	opts.wait = nil
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := pull(t.Context(), modelOf(data), opts); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := o.requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestPullInterrupted(t *testing.T) {
	data := content(400_000)
	o := &origin{data: data, etag: `"a"`, cut: map[int]int{1: 150_000}, hang: make(chan struct{})}
	opts := o.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	opts.Progress = func(done, _ int64) {
		if done == 150_000 {
			cancel()
		}
	}
	_, err := pull(ctx, modelOf(data), opts)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	close(o.hang)
	opts.Progress = nil
	if _, err := pull(t.Context(), modelOf(data), opts); err != nil {
		t.Fatal(err)
	}
	if o.ranges[1] != "bytes=150000-" || o.ifRange[1] != `"a"` || o.sent.Load() != int64(len(data)) {
		t.Errorf("ranges %q, if-range %q, %d bytes sent", o.ranges, o.ifRange, o.sent.Load())
	}
}

func TestPullStalls(t *testing.T) {
	data := content(1000)
	o := &origin{data: data, cut: map[int]int{1: 100}, hang: make(chan struct{})}
	opts := o.start(t)
	opts.stall = 10 * time.Millisecond
	opts.wait = func(context.Context, time.Duration) error { return errors.New("asked to wait") }
	_, err := pull(t.Context(), modelOf(data), opts)
	close(o.hang)
	if err == nil || !strings.Contains(err.Error(), "asked to wait") {
		t.Errorf("error %v: a silent server is one more attempt", err)
	}
}

func TestPullMirrorOverHTTP(t *testing.T) {
	data := content(1000)
	o := &origin{data: data}
	srv := httptest.NewServer(o)
	defer srv.Close()
	opts := Options{Home: t.TempDir(), BaseURL: srv.URL + "/mirror"}
	if _, err := pull(t.Context(), modelOf(data), opts); err != nil {
		t.Error(err)
	}
	e := modelOf(data)
	e.Files[0].URL, opts = srv.URL+"/test.onnx", Options{Home: t.TempDir()}
	if _, err := pull(t.Context(), e, opts); err == nil || !strings.Contains(err.Error(), "only https") {
		t.Errorf("plain http without a mirror: %v", err)
	}
}

func TestPullConverts(t *testing.T) {
	data := content(1000)
	opts := (&origin{data: data}).start(t)
	e := modelOf(data)
	e.Files = append(e.Files, e.Files[0])
	e.convert = func(w io.Writer, files [][]byte) error {
		_, err := w.Write(append(files[0], files[1]...))
		return err
	}
	paths, err := pull(t.Context(), e, opts)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(paths[0]); len(got) != 2000 {
		t.Errorf("%d bytes", len(got))
	}
	onlyVisible(t, filepath.Dir(paths[0]), "test.onnx", "test.txt")
	if err := os.WriteFile(paths[0], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	e.convert = func(io.Writer, [][]byte) error { return errors.New("no such layer") }
	if _, err := pull(t.Context(), e, opts); err == nil || !strings.Contains(err.Error(), "no such layer") {
		t.Errorf("error %v", err)
	}
}

// TestPullDiskFull limits the size of files in a process of its own, which is what a full disk
// looks like to a writer.
func TestPullDiskFull(t *testing.T) {
	data := content(300_000)
	if home := os.Getenv("CATALOG_TEST_HOME"); home != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(1 /* RLIMIT_FSIZE */, &syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
			t.Fatal(err)
		}
		opts := (&origin{data: data}).start(t)
		opts.Home = home
		_, err := pull(t.Context(), modelOf(data), opts)
		if err == nil || !strings.Contains(err.Error(), "file too large") || !strings.Contains(err.Error(), home) {
			t.Errorf("error %v", err)
		}
		return
	}
	home := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestPullDiskFull$")
	cmd.Env = append(os.Environ(), "CATALOG_TEST_HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(home, "models", "test.onnx")); err == nil {
		t.Error("something was installed")
	}
}

func TestPullFolders(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), modelOf(nil), Options{Home: home}); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a folder that everybody may write to: %v", err)
	}
	if _, err := Pull(t.Context(), "yolox", Options{Home: home}); err == nil || !strings.Contains(err.Error(), "yolox-nano") {
		t.Errorf("unknown name: %v", err)
	}
	opts := Options{Home: t.TempDir(), Platform: "linux/arm64", Client: &http.Client{}}
	_, err := Pull(t.Context(), "onnxruntime:cuda12", opts)
	if err == nil || !strings.Contains(err.Error(), jetsonIndex) || !strings.Contains(err.Error(), "--ort") {
		t.Errorf("CUDA on arm64: %v", err)
	}
}
