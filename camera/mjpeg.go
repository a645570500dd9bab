package camera

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	mjpegMost  = 32 << 20 // bytes of one picture
	mjpegLeast = 1 << 20  // bytes that a picture of any size may have, its header with a preview too
	mjpegPixel = 4        // bytes of a pixel: noise in the best quality without subsampling takes 3.5
	mjpegFirst = 64 << 10 // bytes of the first buffer
	mjpegWord  = 200      // bytes of a delimiter; RFC 2046 allows 70, and each read looks for one again in that many
	mjpegIdle  = 1 << 20  // bytes without a picture after which this is something else
	emptyReads = 100      // reads without bytes in a row
)

// errNoJPEG ends a stream that is not motion JPEG.
var errNoJPEG = fmt.Errorf("no JPEG in %d KiB of data: is this MJPEG?", mjpegIdle>>10)

// corrupt is the error of bytes that are no whole picture; the stream goes on behind them.
type corrupt struct {
	error
	pictures int // that it stands for
}

// mjpegScanner cuts a stream into JPEGs by walking over their markers, whatever lies between them: the delimiters and headers of
// multipart/x-mixed-replace, of which cheap cameras have many variants, or nothing. Their Content-Length is not needed and
// therefore need not be right. After damage it goes on at the next delimiter, or the next start of a picture.
type mjpegScanner struct {
	r io.Reader
	// delimiter is what lies between the parts of a multipart stream, without its dashes; empty for other streams, and where it is too long. It tells
	// where a damaged picture ends at the latest, and that a part holds none.
	delimiter []byte
	most      int // bytes of a picture of any size
	least     int // bytes that each may have
	pixels    int // of a picture

	buf     []byte // buf[from:end] was read and not yet handed out
	from    int    // where the picture begins, or the search for one
	at      int    // how far it was walked over
	end     int
	arrived time.Time // when the last bytes came

	inside  bool      // at a picture
	limit   int       // its bytes
	scan    bool      // whose entropy-coded data has begun
	ends    bool      // there was a picture with its end marker, ever
	torn    bool      // the picture handed out last has none, and others of the stream do
	began   time.Time // when its first bytes came
	parts   int       // delimiters since the last picture
	divided bool      // there was a delimiter, ever
	lost    bool      // after damage: only behind a delimiter is there a picture
	idle    int       // bytes since the last picture, without its rest
}

func newMJPEGScanner(r io.Reader, delimiter string) *mjpegScanner {
	if len(delimiter) > mjpegWord {
		delimiter = ""
	}
	return &mjpegScanner{r: r, delimiter: []byte(delimiter), most: mjpegMost, least: mjpegLeast, pixels: defaultMaxPixels}
}

// next returns the next JPEG, which is valid until the following call, and when its first bytes came. Its end marker may be
// missing. The error is a corrupt one where the stream can go on.
func (s *mjpegScanner) next() (jpg []byte, began time.Time, err error) {
	for {
		if !s.inside && s.find() {
			none := s.parts - 1
			s.parts = 0
			if none > 0 {
				return nil, s.began, corrupt{errors.New("a part without a JPEG"), none}
			}
		}
		if s.inside {
			jpg, err := s.walk()
			if jpg == nil && err == nil && s.end-s.from >= s.limit {
				err = s.oversized(s.from+s.limit, fmt.Sprintf("a JPEG of more than %d bytes", s.limit))
			}
			if jpg != nil || err != nil {
				return jpg, s.began, err
			}
		}
		if s.idle > mjpegIdle {
			return nil, s.began, errNoJPEG
		}
		switch err := s.more(); {
		case err == nil:
		case s.scan: // maybe only the end marker is missing
			return s.cut(s.end, false), s.began, nil
		case s.inside:
			return nil, s.began, s.damaged(s.end, "a JPEG ends inside its header")
		default:
			return nil, s.began, err
		}
	}
}

// find looks for the start of a picture and drops what lies before it.
func (s *mjpegScanner) find() bool {
	for {
		gap := s.buf[s.from:s.end]
		start := bytes.Index(gap, []byte{0xff, 0xd8, 0xff})
		if start >= 0 {
			gap = gap[:start]
		}
		for n := s.divider(gap); n >= 0; n = s.divider(gap) {
			gap = gap[n:]
			s.parts++
			s.divided, s.lost = true, false
		}
		switch {
		case start < 0: // what stays may be the beginning of a delimiter or a picture
			s.skip(s.end - min(len(gap), len(s.delimiter)+3))
			return false
		case s.lost:
			s.skip(s.from + start + 2)
		default:
			s.skip(s.from + start)
			s.begin()
			return true
		}
	}
}

// begin begins a picture at s.from.
func (s *mjpegScanner) begin() {
	s.inside, s.began, s.idle = true, s.arrived, 0
	s.limit = min(s.most, s.least)
	s.at = s.from + 2
}

func (s *mjpegScanner) skip(to int) {
	s.idle += to - s.from
	s.from = to
}

// divider returns where the first delimiter in b ends, -1 if there is none: the word at the start of a line or behind two
// dashes, and at the end of a line.
func (s *mjpegScanner) divider(b []byte) int {
	if len(s.delimiter) == 0 {
		return -1
	}
	for from := 0; ; {
		n := bytes.Index(b[from:], s.delimiter)
		if n < 0 {
			return -1
		}
		at := from + n
		from = at + len(s.delimiter)
		if from == len(b) {
			return -1
		}
		before, after := b[:at], b[from]
		if (after == '\r' || after == '\n') && (bytes.HasSuffix(before, []byte("--")) || bytes.HasSuffix(before, []byte("\n"))) {
			return from
		}
	}
}

// walk goes on over the markers of a picture. It returns the picture once it is there, or nil where more bytes are needed.
func (s *mjpegScanner) walk() ([]byte, error) {
	for {
		b := s.ahead()
		n := bytes.IndexByte(b, 0xff)
		if n < 0 {
			s.at += len(b)
			return nil, nil
		}
		if s.at += n; n+1 == len(b) {
			return nil, nil
		}
		switch m := b[n+1]; {
		case m == 0xff: // a fill byte
			s.at++
		case m == 0xd8 && s.at == s.from+2: // some begin twice
			s.from = s.at
			s.begin()
		case m == 0xd8 && s.scan: // the end marker is missing, or the rest: the decoder sees which
			return s.cut(s.at, false), nil
		case m == 0xd8:
			err := s.damaged(s.at, "a JPEG ends inside its header")
			s.lost = false
			return nil, err
		case m == 0xd9 && !s.scan:
			return nil, s.damaged(s.at+2, "a JPEG without picture data")
		case m == 0xd9:
			return s.cut(s.at+2, true), nil
		case m < 0xc0 || m >= 0xd0 && m < 0xd8: // data, and markers without a segment
			s.at += 2
		default:
			if whole, err := s.segment(m); !whole || err != nil {
				return nil, err
			}
		}
	}
}

// ahead returns what is there of the picture and was not walked over, up to its limit, so that how bytes arrive does not matter.
func (s *mjpegScanner) ahead() []byte { return s.buf[s.at:min(s.end, s.from+s.limit)] }

// segment steps over the segment of marker m at s.at, or says that it is not whole yet.
func (s *mjpegScanner) segment(m byte) (whole bool, err error) {
	b := s.ahead()
	if len(b) < 4 {
		return false, nil
	}
	n := 2 + int(binary.BigEndian.Uint16(b[2:]))
	if n < 4 {
		return false, s.damaged(s.at+2, "a JPEG with a segment without length")
	}
	if len(b) < n {
		return false, nil
	}
	if s.divider(b[:n]) >= 0 {
		return false, s.damaged(s.at, "a JPEG ends inside its header")
	}
	if m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc && n >= 9 { // the frame header
		h, w := int(binary.BigEndian.Uint16(b[5:])), int(binary.BigEndian.Uint16(b[7:]))
		if w*h > s.pixels {
			return false, s.oversized(s.at+n, fmt.Sprintf("a JPEG of %dx%d pixels, over the limit of %d: raise it with --max-pixels", w, h, s.pixels))
		}
		s.limit = max(s.limit, min(s.most, mjpegPixel*w*h))
	}
	s.at += n
	s.scan = s.scan || m == 0xda
	return true, nil
}

// cut returns the picture up to an end, which its end marker is or not.
func (s *mjpegScanner) cut(end int, marked bool) []byte {
	jpg := s.buf[s.from:end]
	s.from, s.inside, s.scan = end, false, false
	s.ends = s.ends || marked
	s.torn = s.ends && !marked
	return jpg
}

// damaged gives the picture up; the search for another begins at from. Where there are delimiters it begins behind the
// next one, since a picture may hold a smaller one.
func (s *mjpegScanner) damaged(from int, what string) error {
	s.from, s.inside, s.scan = from, false, false
	s.lost = s.divided
	return corrupt{errors.New(what), 1}
}

// oversized is damaged for a picture that is not kept: its rest may be long.
func (s *mjpegScanner) oversized(from int, what string) error {
	s.idle = -s.most
	return s.damaged(from, what)
}

// more reads what there is.
func (s *mjpegScanner) more() error {
	if s.from > 0 { // nothing is handed out now
		s.end = copy(s.buf, s.buf[s.from:s.end])
		s.at -= s.from
		s.from = 0
	}
	if s.end == len(s.buf) { // which holds less than the limit of a picture
		grown := make([]byte, min(max(2*len(s.buf), mjpegFirst), s.most))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	for range emptyReads {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if n > 0 {
			s.arrived = time.Now()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
