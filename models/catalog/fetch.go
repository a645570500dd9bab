package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/regular"
)

const (
	maxFile     = 1 << 30 // bytes read of a file whose size is not stated
	maxAttempts = 6
	firstWait   = time.Second // before the second attempt; doubles
	stallAfter  = time.Minute
)

// errPermanent marks what another attempt would not change.
var errPermanent = errors.New("permanent")

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() []error { return []error{e.error, errPermanent} }

// errStalled is why a silent connection was cut.
var errStalled = errors.New("the server stopped sending")

// fetcher downloads files.
type fetcher struct {
	client   *http.Client
	base     *url.URL // mirror; nil for none
	baseErr  error
	progress func(done, total int64)
	wait     func(context.Context, time.Duration) error
	stall    time.Duration
}

func newFetcher(o Options) *fetcher {
	f := &fetcher{wait: o.wait, stall: o.stall, progress: func(int64, int64) {}}
	if f.wait == nil {
		f.wait = sleep
	}
	if f.stall == 0 {
		f.stall = stallAfter
	}
	if o.BaseURL != "" {
		f.base, f.baseErr = url.Parse(o.BaseURL)
	}
	client := http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableKeepAlives:     true, // a handful of requests: nothing is left open afterwards
	}}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return permanent(errors.New("more than 10 redirections"))
		}
		return f.allowed(r.URL)
	}
	f.client = &client
	return f
}

// allowed refuses plain http, but for a mirror that was asked for as such.
func (f *fetcher) allowed(u *url.URL) error {
	if u.Scheme == "https" || f.base != nil && u.Scheme == f.base.Scheme && u.Host == f.base.Host {
		return nil
	}
	return permanent(fmt.Errorf("refused to go to %s://%s: only https is allowed", u.Scheme, u.Host))
}

// address returns where a file is fetched, on the mirror if there is one.
func (f *fetcher) address(file File) (string, error) {
	u, err := url.Parse(file.URL)
	if err == nil {
		err = f.baseErr
	}
	if err != nil {
		return "", err
	}
	if f.base != nil {
		u = f.base.JoinPath(u.Path)
	}
	return u.String(), f.allowed(u)
}

// fetch makes part the whole file with the right hash, from what is there of it already.
func (f *fetcher) fetch(ctx context.Context, file File, part string) error {
	address, err := f.address(file)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	d := &transfer{fetcher: f, file: file, address: address, out: out}
	resumed, err := d.resume()
	if err != nil {
		return err
	}
	for {
		if err := d.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		sum, err := sumOf(out)
		if err != nil {
			return err
		}
		if sum == file.SHA256 {
			os.Remove(d.etagPath())
			return out.Sync()
		}
		if err := d.restart(); err != nil {
			return err
		}
		if !resumed {
			os.Remove(part)
			return fmt.Errorf("%s: its SHA-256 is %s, the catalog says %s: the file was changed or damaged, nothing is installed",
				address, sum, file.SHA256)
		}
		resumed = false // what an earlier run left may be the cause: once more from the start
	}
}

// transfer is one file on its way.
type transfer struct {
	*fetcher
	file    File
	address string
	out     *os.File
	done    int64  // bytes in out
	etag    string // of the content that those belong to, "" if unknown
}

func (d *transfer) etagPath() string { return d.out.Name() + ".etag" }

// resume takes up what an earlier run left and says whether that was anything.
func (d *transfer) resume() (bool, error) {
	info, err := d.out.Stat()
	if err != nil {
		return false, err
	}
	if d.done = info.Size(); d.done > d.limit() {
		return false, d.restart()
	}
	if tag, err := regular.Read(d.etagPath(), maxNote); err == nil {
		d.etag = string(tag)
	}
	return d.done > 0, nil
}

// restart drops what is there.
func (d *transfer) restart() error {
	d.done, d.etag = 0, ""
	os.Remove(d.etagPath())
	return d.out.Truncate(0)
}

// again drops what is there and says why.
func (d *transfer) again(why string) error {
	if err := d.restart(); err != nil {
		return permanent(err)
	}
	return errors.New(why)
}

// limit is the most bytes that the file may have.
func (d *transfer) limit() int64 {
	if d.file.Size > 0 {
		return d.file.Size
	}
	return maxFile
}

// run repeats attempts until the file is complete.
func (d *transfer) run(ctx context.Context) error {
	for attempt := range maxAttempts {
		err := d.attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errPermanent) || attempt == maxAttempts-1 {
			return short(err)
		}
		if err := d.wait(ctx, firstWait<<attempt); err != nil {
			return err
		}
	}
	return nil
}

// short drops net/http's repetition of the address, which after a redirection holds a
// signature that does not belong into a log.
func short(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// attempt makes one request for what is missing.
func (d *transfer) attempt(ctx context.Context) error {
	if d.file.Size > 0 && d.done == d.file.Size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer silence.Stop()
	r, err := d.request(ctx)
	if err != nil {
		return permanent(err)
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return stalled(ctx, err)
	}
	defer resp.Body.Close()
	complete, err := d.accept(resp)
	if err != nil || complete {
		return err
	}
	return stalled(ctx, d.copy(resp, silence))
}

func stalled(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

func (d *transfer) request(ctx context.Context) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "eyas")
	r.Header.Set("Accept-Encoding", "identity") // lengths and offsets are those of the file
	if d.done > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
		if d.etag != "" { // a changed file comes whole instead of as a wrong rest
			r.Header.Set("If-Range", d.etag)
		}
	}
	return r, nil
}

// accept looks at the status and makes out ready for the body. complete: nothing is missing.
func (d *transfer) accept(resp *http.Response) (complete bool, err error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		if d.done > 0 { // the server knows no ranges, or the file has changed
			if err := d.restart(); err != nil {
				return false, permanent(err)
			}
		}
	case code == http.StatusPartialContent:
		if start, ok := rangeStart(resp.Header.Get("Content-Range")); !ok || start != d.done {
			return false, d.again("the server sent another part than was asked for")
		}
	case code == http.StatusRequestedRangeNotSatisfiable && d.done > 0:
		if resp.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", d.done) {
			return true, nil
		}
		return false, d.again("the server cannot go on where the download ended")
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return false, fmt.Errorf("the server answered %s", resp.Status)
	default:
		return false, permanent(fmt.Errorf("the server answered %s", resp.Status))
	}
	if n := resp.ContentLength; n >= 0 && d.file.Size > 0 && d.done+n != d.file.Size {
		return false, permanent(fmt.Errorf("the server offers %d bytes, the catalog says %d: the file was changed, nothing is installed",
			d.done+n, d.file.Size))
	}
	return false, d.remember(resp.Header.Get("ETag"))
}

// remember keeps a strong tag for a later run: weak ones may not stand in If-Range.
func (d *transfer) remember(tag string) error {
	if !strings.HasPrefix(tag, `"`) || len(tag) > 1024 {
		tag = ""
	}
	if tag == d.etag {
		return nil
	}
	d.etag = tag
	return permanent(os.WriteFile(d.etagPath(), []byte(tag), 0o600))
}

// rangeStart reads the first number of "bytes 5-9/10".
func rangeStart(v string) (int64, bool) {
	v, ok := strings.CutPrefix(v, "bytes ")
	first, _, dash := strings.Cut(v, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, ok && dash && err == nil
}

// copy appends the body to out, and never more than the limit.
func (d *transfer) copy(resp *http.Response, silence *time.Timer) error {
	total := d.file.Size
	if total == 0 && resp.ContentLength >= 0 {
		total = d.done + resp.ContentLength
	}
	buf := make([]byte, 128<<10)
	for {
		n, err := resp.Body.Read(buf)
		silence.Reset(d.stall)
		if d.done+int64(n) > d.limit() {
			return permanent(d.again(fmt.Sprintf("more than %d bytes came: the file was changed, nothing is installed", d.limit())))
		}
		if _, writing := d.out.WriteAt(buf[:n], d.done); writing != nil {
			return permanent(writing)
		}
		d.done += int64(n)
		d.progress(d.done, total)
		if errors.Is(err, io.EOF) {
			if d.done < d.file.Size {
				return fmt.Errorf("the connection ended after %d of %d bytes", d.done, d.file.Size)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
