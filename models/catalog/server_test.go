package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// origin is a server of one file that misbehaves as told.
type origin struct {
	t        *testing.T
	data     []byte
	etag     string
	noRange  bool        // answers every request with the whole file
	noLength bool        // does not say how long the file is
	cut      map[int]int // request number -> bytes after which the connection breaks
	status   map[int]int // request number -> status instead of content
	redirect string      // sends everybody there
	badRange bool        // claims to send another part than was asked for
	hang     chan struct{}

	requests atomic.Int32
	sent     atomic.Int64 // bytes of content
	ranges   []string     // of all requests, in order
	ifRange  []string
}

// start serves o over TLS and returns the options that reach it.
func (o *origin) start(t *testing.T) Options {
	t.Helper()
	o.t = t
	srv := httptest.NewTLSServer(o)
	t.Cleanup(srv.Close)
	return Options{
		Home: t.TempDir(), Platform: "linux/amd64", Client: srv.Client(), BaseURL: srv.URL,
		wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(o.requests.Add(1))
	o.ranges = append(o.ranges, r.Header.Get("Range"))
	o.ifRange = append(o.ifRange, r.Header.Get("If-Range"))
	if o.redirect != "" {
		http.Redirect(w, r, o.redirect, http.StatusFound)
		return
	}
	if code := o.status[n]; code != 0 {
		w.WriteHeader(code)
		return
	}
	body, start := o.data, 0
	if o.etag != "" {
		w.Header().Set("ETag", o.etag)
	}
	ask := r.Header.Get("Range")
	if ask != "" && !o.noRange && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == o.etag) {
		start, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(ask, "bytes="), "-"))
		if start >= len(body) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(body)))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		body = body[start:]
		if o.badRange {
			start++
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(o.data)-1, len(o.data)))
	}
	if !o.noLength {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if w.Header().Get("Content-Range") != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	after, cut := o.cut[n]
	if cut && after < len(body) {
		body = body[:after]
	}
	k, _ := w.Write(body)
	o.sent.Add(int64(k))
	if cut {
		w.(http.Flusher).Flush() // or the rest of its buffer would be lost, too
	}
	if o.hang != nil {
		<-o.hang
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
}

func sumHex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// modelOf is an entry of one file with that content.
func modelOf(data []byte) Entry {
	return Entry{
		Name: "test", Kind: Model, Version: "1", Description: "a test", License: "MIT",
		LicenseURL: "https://example.com/LICENSE", Origin: "https://example.com",
		Files: []File{{URL: "https://example.com/test.onnx", Size: int64(len(data)), SHA256: sumHex(data)}},
	}
}

// content is n bytes that repeat late.
func content(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	return data
}
