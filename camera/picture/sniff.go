package picture

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

func prefixed(p string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(p)) }
}

// codecOf picks the codec by the data's first bytes. For anything else the error names what
// the data seems to be.
func codecOf(data []byte) (codec, error) {
	for _, c := range codecs() {
		if c.is(data) {
			return c, nil
		}
	}
	if len(data) == 0 {
		return codec{}, errors.New("the file is empty")
	}
	if name := foreign(data); name != "" {
		return codec{}, fmt.Errorf("%s is not supported: use JPEG, PNG, WebP, GIF or BMP", name)
	}
	return codec{}, errors.New("not a picture: use JPEG, PNG, WebP, GIF or BMP")
}

// signatures of formats that people hand in and Eyas does not decode.
var signatures = []struct{ magic, name string }{
	{"II*\x00", "TIFF"}, {"MM\x00*", "TIFF"}, {"II+\x00", "TIFF"}, {"MM\x00+", "TIFF"},
	{"\xff\x0a", "JPEG XL"}, {"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"},
	{"\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"}, {"\xff\x4f\xff\x51", "JPEG 2000"},
	{"%PDF", "PDF"}, {"8BPS", "PSD (Photoshop)"}, {"qoif", "QOI"}, {"\x00\x00\x01\x00", "ICO"},
	{"P4", "PNM"}, {"P5", "PNM"}, {"P6", "PNM"}, {"#?RADIANCE", "Radiance HDR"}, {"v/1\x01", "OpenEXR"},
	{"\x1aE\xdf\xa3", "Matroska video"}, {"PK\x03\x04", "ZIP"}, {"\x1f\x8b", "gzip"},
	{"version https://git-lfs", "a Git LFS pointer"},
}

// brands are the ISO media brands behind "ftyp" that name a kind of file.
var brands = map[string]string{
	"avif": "AVIF", "avis": "AVIF", "heic": "HEIC", "heix": "HEIC", "hevc": "HEIC", "hevx": "HEIC",
	"heim": "HEIC", "heis": "HEIC", "mif1": "HEIF", "msf1": "HEIF", "crx ": "CR3 (Canon raw)",
}

// foreign names the format of data that is no picture of ours, "" if it is not known.
func foreign(data []byte) string {
	if len(data) >= 12 && string(data[4:8]) == "ftyp" {
		return isoMedia(data)
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" {
		return fmt.Sprintf("RIFF %q", strings.TrimSpace(string(data[8:12])))
	}
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.magic)) {
			return s.name
		}
	}
	text := bytes.TrimPrefix(data[:min(len(data), 512)], []byte("\xef\xbb\xbf"))
	text = bytes.ToLower(bytes.TrimSpace(text))
	switch {
	case bytes.Contains(text, []byte("<svg")):
		return "SVG"
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return "HTML"
	case bytes.HasPrefix(text, []byte("<?xml")):
		return "XML"
	}
	return ""
}

// isoMedia names the kind of an ISO media file: the major brand first, then the
// compatible ones, because "mif1" alone does not tell HEIC from AVIF.
func isoMedia(data []byte) string {
	name := brands[string(data[8:12])]
	for i := 16; i+4 <= min(len(data), 64) && (name == "" || name == "HEIF"); i += 4 {
		if n := brands[string(data[i:i+4])]; n != "" {
			name = n
		}
	}
	if name == "" {
		return "MP4 or QuickTime video"
	}
	return name
}
