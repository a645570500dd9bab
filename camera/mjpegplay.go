package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/picture"
)

// mjpegBad is how many pictures a stream may begin with that cannot be decoded.
const mjpegBad = 10

// playMJPEG decodes the pictures of a stream into out until that ends. A goroutine takes them off the network as they come, so that
// none grows old there: the newest is decoded, those that it overtook are counted. cancel has to end
// the scanner's reading.
func playMJPEG(ctx context.Context, cancel func(), s *mjpegScanner, out *Output, maxPixels int) error {
	box := &mjpegBox{news: make(chan struct{}, 1)}
	var reader sync.WaitGroup
	reader.Go(func() { box.fill(s) })
	defer reader.Wait()
	defer cancel()
	p := &mjpegPlayer{out: out, limits: picture.Limits{MaxPixels: maxPixels}}
	defer p.decoder.Close()
	var mail mjpegMail
	for {
		select {
		case <-box.news:
		case <-ctx.Done():
			return ctx.Err()
		}
		box.take(&mail)
		for range mail.superseded {
			out.Drop(nil, Superseded, nil)
		}
		for range mail.corrupt {
			if err := p.drop(nil, mail.fault); err != nil {
				return err
			}
		}
		if len(mail.jpg) > 0 {
			if err := p.play(ctx, mail.jpg, mail.began, frame.ByArrival); err != nil {
				return err
			}
		}
		if errors.Is(mail.end, io.EOF) {
			return errors.New("the camera ended the stream")
		}
		if mail.end != nil {
			return mail.end
		}
	}
}

// mjpegPlayer puts one picture after the other into out.
type mjpegPlayer struct {
	out     *Output
	limits  picture.Limits
	fps     float64 // 0 if nobody knows
	decoder picture.MJPEGDecoder
	info    picture.JPEGInfo // of the last one
	bad     int              // corrupt ones, as long as there was no good one
	refused int              // pictures in a row that the memory is too small for
}

// play decodes a picture into a slot and hands it on, with its capture time and where that is from.
func (p *mjpegPlayer) play(ctx context.Context, jpg []byte, captured time.Time, by frame.CapturedBy) error {
	if p.out.Skip() {
		return nil
	}
	info, err := p.decoder.Probe(jpg, p.limits)
	if err == nil && info != p.info {
		if err := p.out.ask(info.Format, info.Width, info.Height); err != nil {
			return p.refuse(err)
		}
		// Damage can look like a change of size, for which memory would be taken.
		if err = p.decoder.Check(jpg); err != nil {
			p.out.unask()
		}
	}
	if err != nil {
		return p.drop(nil, err)
	}
	if info != p.info {
		if err := p.out.Format(info.Format, info.Colour, info.Width, info.Height, p.fps); err != nil {
			return err
		}
		p.info = info
	}
	p.refused = 0
	f := p.out.Begin()
	if f == nil {
		return nil
	}
	if err := p.decoder.Decode(f, jpg); err != nil {
		return p.drop(f, err)
	}
	return p.out.Publish(ctx, f, captured, by)
}

// drop counts a corrupt picture. Where there are only such ones the fault is not in the pictures, and the reason is better
// than a time-out.
func (p *mjpegPlayer) drop(f *Frame, err error) error {
	p.out.Drop(f, Corrupt, err)
	if p.bad++; p.info == (picture.JPEGInfo{}) && p.bad == mjpegBad {
		return fmt.Errorf("none of the first %d pictures is good: %w", mjpegBad, err)
	}
	return nil
}

// refuse drops a picture that the memory is too small for. If it is the camera's first one, or more of its kind follow, it is no
// damage that looks so, and ends the source.
func (p *mjpegPlayer) refuse(err error) error {
	if p.refused++; p.refused == mjpegBad || p.info == (picture.JPEGInfo{}) {
		return err
	}
	p.out.Drop(nil, Corrupt, err)
	return nil
}

// errTorn stands for a torn picture that another overtook before a decoder saw it.
var errTorn = corrupt{errors.New("a JPEG ends inside its data"), 1}

// mjpegMail is what came since the last time: the newest picture, if there was one, and what became of others.
type mjpegMail struct {
	jpg        []byte
	began      time.Time
	torn       bool // it breaks off, as it seems
	superseded int
	corrupt    int
	fault      error // the last of the corrupt ones
	end        error // why no more comes; nil as long as it does
}

// mjpegBox hands the newest picture from the goroutine that reads to the one that decodes.
type mjpegBox struct {
	news chan struct{} // one is waiting
	mu   sync.Mutex
	mail mjpegMail
}

// fill reads until the stream ends.
func (b *mjpegBox) fill(s *mjpegScanner) {
	for more := true; more; {
		jpg, began, err := s.next()
		more = b.put(jpg, began, s.torn, err)
		select {
		case b.news <- struct{}{}:
		default:
		}
	}
}

// put adds what the scanner found, and says whether more may come.
func (b *mjpegBox) put(jpg []byte, began time.Time, torn bool, err error) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.mail
	switch {
	case err != nil:
		return m.fails(err)
	case len(m.jpg) > 0 && m.torn: // that it is torn shows only with the next one, which may be here at once
		m.fails(errTorn)
	case len(m.jpg) > 0:
		m.superseded++
	}
	m.jpg, m.began, m.torn = append(m.jpg[:0], jpg...), began, torn
	return true
}

// fails notes the scanner's error, and says whether more may come.
func (m *mjpegMail) fails(err error) (more bool) {
	var bad corrupt
	if !errors.As(err, &bad) {
		m.end = err
		return false
	}
	m.corrupt += bad.pictures
	m.fault = bad
	return true
}

// take exchanges the mail for an empty one, whose memory is that of the last one.
func (b *mjpegBox) take(to *mjpegMail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*to, b.mail = b.mail, mjpegMail{jpg: to.jpg[:0]}
}
