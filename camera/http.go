package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/picture"
)

// openHTTP opens what stands behind "http://" or "https://".
func openHTTP(schema string) func(b base, rest string) (Source, error) {
	return func(b base, rest string) (Source, error) {
		if err := splitPassword(rest); err != nil {
			return nil, err
		}
		u, err := url.Parse(schema + "://" + rest)
		if err != nil { // which the error would show
			return nil, badSpec("the URL cannot be read: write special characters of user and password as %%XX, or take them from a ${VARIABLE}")
		}
		if u.Hostname() == "" {
			return nil, badSpec("the host is missing: write %s://HOST/PATH", schema)
		}
		u.Fragment, u.RawFragment = "", ""
		return supervise(b, &httpCamera{url: u, maxPixels: b.opts.maxPixels}), nil
	}
}

// httpCamera is a camera that sends motion JPEG over HTTP: as multipart/x-mixed-replace in all its variants, or as JPEGs
// one behind the other. What turns out to be a single picture is fetched once, and the source ends.
type httpCamera struct {
	url       *url.URL
	maxPixels int
	welcome   bool // user and password were right once
}

// Connect is Connector's.
func (h *httpCamera) Connect(ctx context.Context, out *Output) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport := newHTTPTransport()
	defer transport.CloseIdleConnections()
	res, err := httpGet(ctx, transport, h.url)
	if err != nil {
		// Asked again and again with a wrong password many cameras lock the account; one that was right may be so again.
		if errors.Is(err, errRefused) && !h.welcome {
			return Permanent(err)
		}
		return err
	}
	h.welcome = true
	defer res.Body.Close()
	media, delimiter := mediaType(res.Header.Get("Content-Type"))
	switch {
	case strings.HasPrefix(media, "image/"):
		err = h.picture(ctx, res.Body, out)
	case strings.HasPrefix(media, "multipart/"), media == "", media == "application/octet-stream",
		media == "video/x-jpeg", media == "video/x-motion-jpeg", media == "video/mjpeg", media == "video/x-mjpeg":
		scanner := newMJPEGScanner(res.Body, delimiter)
		scanner.pixels = h.maxPixels
		err = playMJPEG(ctx, cancel, scanner, out, h.maxPixels)
	default:
		err = fmt.Errorf("the URL gives %q, neither MJPEG nor a picture: check its path", media)
	}
	return err
}

// mediaType takes a Content-Type apart, more tolerant than the standard: cameras forget quotes and spaces. The
// delimiter comes without its dashes, since some declare them and some do not.
func mediaType(header string) (media, delimiter string) {
	media, rest, _ := strings.Cut(header, ";")
	for p := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			delimiter = strings.TrimLeft(strings.Trim(value, " \t\"'"), "-")
		}
	}
	return strings.ToLower(strings.TrimSpace(media)), delimiter
}

// picture delivers one picture, upright, as a file is.
func (h *httpCamera) picture(ctx context.Context, r io.Reader, out *Output) error {
	data, err := io.ReadAll(io.LimitReader(r, mjpegMost+1))
	if err == nil && len(data) > mjpegMost {
		err = fmt.Errorf("the picture has more than %d MiB", mjpegMost>>20)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	w, height, err := picture.Size(data)
	if err == nil {
		err = out.ask(frame.Gray, w, height) // no format takes less
	}
	if err != nil {
		return err
	}
	pic, err := picture.Decode(data, picture.Limits{MaxPixels: h.maxPixels})
	if err != nil {
		return err
	}
	if err := out.Format(pic.Format, pic.Colour, pic.Width, pic.Height, 0); err != nil {
		return err
	}
	f := out.Begin()
	if f == nil {
		return errors.New("no room for the picture: every frame is held")
	}
	copy(out.Packed(f), pic.Planes[0].Data) // tightly packed, too
	if err := out.Publish(ctx, f, now, frame.ByArrival); err != nil {
		return err
	}
	return io.EOF
}
