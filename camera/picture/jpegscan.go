package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// JPEG markers, ITU-T T.81 table B.1.
const (
	mSOF0  = 0xc0
	mSOF2  = 0xc2
	mDHT   = 0xc4
	mJPG   = 0xc8
	mDAC   = 0xcc
	mSOF15 = 0xcf
	mRST0  = 0xd0
	mRST7  = 0xd7
	mSOI   = 0xd8
	mEOI   = 0xd9
	mSOS   = 0xda
	mDQT   = 0xdb
	mDRI   = 0xdd
	mAPP0  = 0xe0
	mAPP1  = 0xe1
	mAPP14 = 0xee
)

// maxScans bounds the work that a small file can ask for: every scan visits every block, and
// one with a long end-of-band run takes no bytes for it. Encoders write about ten scans.
const maxScans = 100

// component is one colour of a JPEG: its identifier, sampling factors and quantisation table.
type component struct {
	id, h, v, table byte
}

// jpegFile is what the markers of a JPEG say.
type jpegFile struct {
	sof         byte // the frame's marker; 0: none seen
	w, h        int
	comps       []component
	orientation int
	jfif, adobe bool
	transform   byte // Adobe's colour transform: 0 none, 1 YCbCr, 2 YCCK

	several bool // of a header: its first scan leaves components to others

	// Only after a scan of the whole file:
	keep      [][]byte // the segments and scans that a decoder needs, in order
	tables    byte     // quantisation tables defined, one bit each
	huffman   bool     // a Huffman table is defined
	scans     int
	scanned   byte // components that occur in a scan, one bit each
	lastComps int  // components in the last scan
	restarts  bool // a restart interval was set
	single    bool // a scan holds one of several components
	end       bool // the end-of-image marker was there
}

// scanJPEG walks over the markers: to the first scan with headOnly, else to the end of the
// first picture; what follows it is ignored, as are comments, metadata and bytes between segments. It
// returns errShort when data ends inside a segment, or before the size is known.
func scanJPEG(data []byte, headOnly bool) (*jpegFile, error) {
	f := new(jpegFile)
	if err := f.walk(data, headOnly); err != nil {
		return nil, err
	}
	return f, nil
}

// walk is scanJPEG into a file whose memory is used again.
func (f *jpegFile) walk(data []byte, headOnly bool) error {
	*f = jpegFile{orientation: 1, comps: f.comps[:0], keep: f.keep[:0]}
	for at := 2; ; {
		n := bytes.IndexByte(data[at:], 0xff)
		if n < 0 || at+n+1 >= len(data) {
			break
		}
		at += n + 1
		m := data[at]
		if m == 0xff { // a fill byte: look at the next one
			continue
		}
		at++
		if m == mEOI {
			f.end = true
			break
		}
		if m < mSOF0 || m >= mRST0 && m <= mSOI { // extraneous bytes, or a marker without a segment
			continue
		}
		if m == mSOS && f.sof == 0 {
			return errors.New("a scan comes before the frame header")
		}
		if m == mSOS && headOnly {
			f.several = at+2 < len(data) && int(data[at+2]) < len(f.comps)
			break
		}
		end, err := f.segment(data, at, m)
		if err != nil {
			if errors.Is(err, errShort) && headOnly && f.sof != 0 {
				return nil
			}
			return err
		}
		at = end
	}
	switch {
	case f.sof != 0:
		return nil
	case f.end:
		return errors.New("there is no frame header")
	}
	return errShort
}

// segment takes in the segment of marker m whose length field stands at data[at], and
// returns where the next marker is to be looked for.
func (f *jpegFile) segment(data []byte, at int, m byte) (int, error) {
	if at+2 > len(data) {
		return 0, errShort
	}
	end := at + int(binary.BigEndian.Uint16(data[at:]))
	if end < at+2 {
		return 0, fmt.Errorf("segment %#02x has no length", m)
	}
	if end > len(data) {
		return 0, errShort
	}
	body := data[at+2 : end]
	start := at - 2
	switch {
	case m == mDHT:
		f.huffman = true
	case m == mDQT:
		f.quantisation(body)
	case m == mDRI:
		f.restarts = f.restarts || len(bytes.Trim(body, "\x00")) > 0
	case m == mSOS:
		if err := f.scan(body); err != nil {
			return 0, err
		}
		end = scanEnd(data, end)
	case m >= mSOF0 && m <= mSOF15 && m != mJPG && m != mDAC:
		if err := f.frame(m, body); err != nil {
			return 0, err
		}
	default:
		f.application(m, body)
		return end, nil
	}
	f.keep = append(f.keep, data[start:end])
	return end, nil
}

// scanEnd returns where the entropy-coded bytes that start at data[at] end: at the first
// marker that is no restart. Stuffed zeros and invalid markers stay inside, for the decoder to judge.
func scanEnd(data []byte, at int) int {
	for {
		n := bytes.IndexByte(data[at:], 0xff)
		if n < 0 || at+n+1 >= len(data) {
			return len(data)
		}
		at += n
		if m := data[at+1]; m >= mSOF0 && (m < mRST0 || m > mRST7) && m != 0xff {
			return at
		}
		at++
	}
}

// frame reads a frame header, T.81 B.2.2.
func (f *jpegFile) frame(m byte, b []byte) error {
	if f.sof != 0 {
		return errors.New("there are two frame headers")
	}
	if m > mSOF2 {
		kind := "lossless or hierarchical"
		if m > mJPG {
			kind = "arithmetic-coded"
		}
		return fmt.Errorf("%s JPEG is not supported: save it as baseline or progressive", kind)
	}
	if len(b) < 6 || len(b) < 6+3*int(b[5]) {
		return errors.New("the frame header is too short")
	}
	if b[0] != 8 {
		return fmt.Errorf("%d-bit JPEG is not supported: save it with 8 bits", b[0])
	}
	f.h, f.w = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	n := int(b[5])
	if n != 1 && n != 3 && n != 4 {
		return fmt.Errorf("a JPEG of %d components is not supported: save it as grey or colour", n)
	}
	for c := b[6:]; len(f.comps) < n; c = c[3:] {
		k := component{id: c[0], h: c[1] >> 4, v: c[1] & 15, table: c[2]}
		if k.h < 1 || k.h > 4 || k.v < 1 || k.v > 4 || k.table > 3 {
			return errors.New("the frame header is broken: bad sampling factors or table")
		}
		for _, other := range f.comps {
			if other.id == k.id {
				return errors.New("the frame header is broken: two components of one name")
			}
		}
		f.comps = append(f.comps, k)
	}
	f.sof = m
	return nil
}

// scan notes which components a scan header names.
func (f *jpegFile) scan(b []byte) error {
	if f.scans++; f.scans > maxScans {
		return fmt.Errorf("more than %d scans: no encoder writes so many", maxScans)
	}
	if len(b) < 1 || len(b) < 1+2*int(b[0]) {
		return errors.New("a scan header is too short")
	}
	f.lastComps = int(b[0])
	f.single = f.single || f.lastComps == 1 && len(f.comps) > 1
	for i := range f.lastComps {
		for j, c := range f.comps {
			if c.id == b[1+2*i] {
				f.scanned |= 1 << j
			}
		}
	}
	return nil
}

// quantisation notes which tables a DQT segment defines.
func (f *jpegFile) quantisation(b []byte) {
	for len(b) > 0 {
		f.tables |= 1 << (b[0] & 3)
		n := 65
		if b[0]>>4 != 0 {
			n = 129
		}
		b = b[min(n, len(b)):]
	}
}

// application reads the three application segments that matter.
func (f *jpegFile) application(m byte, b []byte) {
	switch {
	case m == mAPP0 && bytes.HasPrefix(b, []byte("JFIF\x00")):
		f.jfif = true
	case m == mAPP1 && bytes.HasPrefix(b, exifMark) && f.orientation == 1:
		f.orientation = orientation(b)
	case m == mAPP14 && len(b) >= 12 && bytes.HasPrefix(b, []byte("Adobe")):
		f.adobe, f.transform = true, b[11]
	}
}
