package camera

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/internal/shown"
)

// gif is the smallest picture: 1x1 pixel.
const gif = "GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// inDir makes files and folders (names that end in /) in a new working directory.
func inDir(t testing.TB, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(n, "/") {
			_ = os.MkdirAll(p, 0o700)
		} else if err := os.WriteFile(p, []byte(gif), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestOpenKinds(t *testing.T) {
	inDir(t, "a.gif", "a=b.gif", "x=1/y.png", "picture.dat", "photo.mp4", "[1].jpg", "clips/a.mp4", "clips/b.TXT",
		"empty/", "folder/2.JPG", "folder/.hidden.jpg", "folder/10.jpg", "folder/1.jpeg", "folder/sub/3.jpg", "f.raw")
	t.Setenv("EYAS_TEST_DIR", "folder")
	t.Setenv("EYAS_TEST_PW", "p@ss/wd")
	os.Unsetenv("EYAS_TEST_UNSET")
	const noMedia = ": this eyas was built without mediadevices: use v4l2: instead, or build it with -tags media"
	tests := []struct {
		name, spec string
		source     string // its name
		kind       string // pictures:..., raw, pattern, clip
		err        string
	}{
		{"picture", "a.gif", "a.gif", "pictures:a.gif", ""},
		{"named picture", "door=a.gif", "door", "pictures:a.gif", ""},
		{"path with =", "a=b.gif", "a=b.gif", "pictures:a=b.gif", ""},
		{"named path with =", "n=a=b.gif", "n", "pictures:a=b.gif", ""},
		{"folder with =", "x=1", "x=1", "pictures:x=1/y.png", ""},
		{"glob with =", "a=*.gif", "a=*.gif", "pictures:a=b.gif", ""},
		{"missing path with =", "q=b.gif", "", "", "source b.gif: no such file or directory"},
		{"other extension", "picture.dat", "picture.dat", "pictures:picture.dat", ""},
		{"wrong extension", "photo.mp4", "photo.mp4", "pictures:photo.mp4", ""},
		{"brackets in a name", "[1].jpg", "[1].jpg", "pictures:[1].jpg", ""},
		{"folder", "folder", "folder", "pictures:folder/1.jpeg,folder/2.JPG,folder/10.jpg", ""},
		{"folder from variable", "n=${EYAS_TEST_DIR}/", "n", "pictures:folder/1.jpeg,folder/2.JPG,folder/10.jpg", ""},
		{"glob", "folder/1*", "folder/1*", "pictures:folder/1.jpeg,folder/10.jpg", ""},
		{"glob over folders", "*/*", "*/*", "pictures:folder/1.jpeg,folder/2.JPG,folder/10.jpg,x=1/y.png", ""},
		{"empty folder", "empty", "", "", "source empty: no picture in this folder (jpg, png, webp, gif, bmp)"},
		{"folder of clips", "clips", "", "", "source clips: no picture in this folder, only clips: give each as a source of its own"},
		{"glob without match", "no*.jpg", "", "", "source no*.jpg: no picture matches (jpg, png, webp, gif, bmp)"},
		{"bad glob", "no[.jpg", "", "", "source no[.jpg: this pattern cannot be read: check its brackets"},
		{"missing", "no.jpg", "", "", "source no.jpg: no such file or directory"},
		{"empty", "", "", "", "source is empty: give a picture, folder, clip or camera"},
		{"empty with name", "n=", "", "", "source is empty: give a picture, folder, clip or camera"},
		{"device", "/dev/null", "", "", "source /dev/null: is neither a file nor a folder"},
		{"variable that is not set", "${EYAS_TEST_UNSET}/a", "", "", "source ${EYAS_TEST_UNSET}/a: environment variable EYAS_TEST_UNSET is not set"},

		{"raw", "raw:f.raw?format=gray&size=4x2", "raw:f.raw?format=gray&size=4x2", "raw", ""},
		{"raw without parameters", "raw:f.raw", "", "", "format and size are missing"},
		{"raw without size", "raw:f.raw?format=nv12", "", "", "size is missing: add size=WIDTHxHEIGHT"},
		{"raw without format", "raw:f.raw?size=2x2", "", "", `pixel format "" is not known`},
		{"raw size", "raw:f.raw?format=nv12&size=0x2", "", "", `size "0x2" is not WIDTHxHEIGHT`},
		{"raw huge", "raw:f.raw?format=nv12&size=65536x65536", "", "", "more than the limit of 100000000"},
		{"raw fps", "raw:f.raw?format=nv12&size=2x2&fps=nan", "", "", `fps "nan" is not a number`},
		{"raw unknown", "raw:f.raw?format=nv12&size=2x2&password=geheim1", "", "", `parameter "password" is not known: use format, size, fps`},
		{"raw twice", "raw:f.raw?format=nv12&size=2x2&size=3x3", "", "", "parameter size is given 2 times"},
		{"raw escape", "raw:f.raw?format=%zz", "", "", "cannot be read: write them as name=value&name=value"},
		{"raw missing", "raw:no.raw?format=nv12&size=2x2", "", "", "no such file or directory"},

		{"pattern", "test:pattern", "test:pattern", "pattern", ""},
		{"pattern named", "n=TEST:pattern?frames=3", "n", "pattern", ""},
		{"pattern unknown", "test:card", "", "", `test source "card" is not known: use test:pattern`},
		{"pattern too wide for a ring", "test:pattern?size=16385x1", "", "", "a side of live frames has at most 16384 pixels, not those of 16385x1"},
		{"pattern as wide as a ring", "test:pattern?size=1x16384", "test:pattern?size=1x16384", "pattern", ""},
		{"pattern too wide for a ring as a file", "test:pattern?size=65536x1&frames=1", "test:pattern?size=65536x1&frames=1", "pattern", ""},
		{"camera too wide for a ring", "/dev/video0?size=65536x1", "", "", "a side of live frames has at most 16384 pixels"},
		{"pattern frames", "test:pattern?frames=-1", "", "", `frames "-1" is not a number from 1 on`},

		{"camera", "/dev/video0", "/dev/video0", "live", ""},
		{"camera with parameters", "/dev/video0?size=640x480&fps=15&format=YUYV", "/dev/video0?size=640x480&fps=15&format=YUYV", "live", ""},
		{"camera format", "/dev/video0?format=h264", "", "", `format "h264" is not known: use nv12, yuyv, i420, mjpeg, gray`},
		{"camera size", "/dev/video0?size=no", "", "", `size "no" is not WIDTHxHEIGHT`},
		{"camera fps", "/dev/video0?fps=0", "", "", `fps "0" is not a number`},
		{"camera parameter", "/dev/video0?rate=5", "", "", `parameter "rate" is not known: use size, fps, format`},
		{"v4l2", "cam=v4l2:usb-1?size=1280x720", "cam", "live", ""},
		{"v4l2 without a name", "v4l2:?size=1280x720", "", "", "which camera is missing: eyas doctor lists them"},
		{"https token", "https://h/v?token=geheim1&x=1", "https://h/v?token=***&x=1", "live", ""},
		{"media", "media:front", "", "", "source media:front" + noMedia},
		{"other URL", "ftp://u:geheim1@h/s", "", "", "source ftp://h/s: this kind of URL is not known: use rtsp://, http:// or https://"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Open(tt.spec)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "geheim1") {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				if strings.Contains(tt.err, "no such file") && errors.Is(err, ErrSpec) {
					t.Error("a missing file is not a wrong text")
				}
				if strings.Contains(tt.err, "not known") && !errors.Is(err, ErrSpec) {
					t.Error("is not ErrSpec")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := kindOf(s); got != tt.kind || s.Name() != tt.source {
				t.Errorf("%q, %s, want %q, %s", s.Name(), got, tt.source, tt.kind)
			}
		})
	}
}

func kindOf(s Source) string {
	switch s := s.(type) {
	case *pictures:
		return "pictures:" + strings.Join(s.paths, ",")
	case *raw:
		return "raw"
	case *pattern:
		return "pattern"
	case *clip:
		return "clip"
	case *supervised:
		return "live"
	}
	return "?"
}

func TestExpand(t *testing.T) {
	t.Setenv("EYAS_A", "x y@/:%")
	t.Setenv("EYAS_EMPTY", "")
	tests := []struct{ name, in, want string }{
		{"none", "a$b${", "a$b${"},
		{"path", "${EYAS_A}/b", "x y@/:%/b"},
		{"empty", "a${EYAS_EMPTY}b", "ab"},
		{"password", "rtsp://u:${EYAS_A}@h/s", "rtsp://u:x%20y%40%2F%3A%25@h/s"},
		{"user and password", "rtsp://${EYAS_A}:${EYAS_A}@h", "rtsp://x%20y%40%2F%3A%25:x%20y%40%2F%3A%25@h"},
		{"host", "rtsp://u:p@${EYAS_A}/s", "rtsp://u:p@x y@/:%/s"},
		{"path of a URL", "rtsp://h/${EYAS_A}@", "rtsp://h/x y@/:%@"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := expand(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", "photos/a@b.jpg", "photos/a@b.jpg"},
		{"plain", "rtsp://h:554/s", "rtsp://h:554/s"},
		{"user", "rtsp://me@h/s", "rtsp://h/s"},
		{"password", "rtsp://me:geheim@h/s", "rtsp://h/s"},
		{"@ in the password", "rtsp://me:ge@heim@h/s", "rtsp://h/s"},
		{"/ in the password", "rtsp://me:ge/heim@h/s", "rtsp://h/s"},
		{"? in the password", "rtsp://me:ge?heim@h/s", "rtsp://h/s"},
		{"# in the password", "rtsp://me:ge#heim@h/s", "rtsp://h/s"},
		{"space in the password", "rtsp://me:ge heim@h/s", "rtsp://h/s"},
		{"@ in the path", "http://10.0.0.7:80/a@b", "http://10.0.0.7:80/a@b"},
		{"@ in the path without a port", "http://h/a@b", "http://h/a@b"},
		{"@ in the query", "http://h:80/a?mail=me@h", "http://h:80/a?mail=me@h"},
		{"@ behind the URL", "http://h:80/a: me@h", "http://h:80/a: me@h"},
		{"/ behind digits of the password", "rtsp://me:12/geheim@h/s", "rtsp://h/s"},
		{"/ and @ behind digits of the password", "rtsp://me:12/ge@heim@h:554/s?a=b@c", "rtsp://h:554/s?a=b@c"},
		{"/ and quotes behind digits of the password", `rtsp://me:12/ge"he'im@h/s`, "rtsp://h/s"},
		{"/ at the start of the password", "rtsp://me:/geheim@h/s", "rtsp://h/s"},
		{"? behind digits of the password", "rtsp://me:12?geheim@h/s", "rtsp://h/s"},
		{"# behind digits of the password", "rtsp://me:12#geheim@h/s", "rtsp://h/s"},
		{"/ in the user", "rtsp://m/e:geheim@h/s", "rtsp://m/h/s"},
		{"IPv6", "rtsp://me:geheim@[fe80::1]:554/s", "rtsp://[fe80::1]:554/s"},
		{"IPv6 without user", "rtsp://[fe80::1%25e]:554/s@x", "rtsp://[fe80::1%25e]:554/s@x"},
		{"in a sentence", `open "rtsp://a:geheim@h/s": 'http://b:geheim@i': timeout`, `open "rtsp://h/s": 'http://i': timeout`},
		{"parameters", "http://h/?user=a&password=geheim&x=1&PW=geheim#f", "http://h/?user=a&password=***&x=1&PW=***#f"},
		{"parameter names", "?access_token=geheim&api-key=geheim&monkey=1&sig=geheim&key=geheim", "?access_token=***&api-key=***&monkey=1&sig=***&key=***"},
		{"quotes in the password", `http://me:"geheim"@h 'http://me:12'34@h/'`, `http://h 'http://h/'`},
		{"parameters in the path", "rtsp://h/user=me_password=geheim_channel=1", "rtsp://h/user=me_password=***"},
		{"blanks at the =", "souphttpsrc user-pw = geheim ! x", "souphttpsrc user-pw = *** ! x"},
		{"header", `extra-headers="x,authorization=(string)geheim"`, `extra-headers="x,authorization=***"`},
		{"pipeline", `rtspsrc user-id=a user-pw="ge heim" ! x`, `rtspsrc user-id=a user-pw=*** ! x`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Redact(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNatural(t *testing.T) {
	want := []string{"", "1", "01", "2", "10", "a", "a0b", "a1b", "a1c", "B", "b2", "img2.jpg", "img10.jpg", "img10a.jpg",
		"x99999999999999999999999", "x100000000000000000000000"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	// "01" and "1" are the same number: the text decides.
	want[1], want[2] = "01", "1"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, a := range want {
		for _, b := range want {
			if natural(a, b) != -natural(b, a) || (natural(a, b) == 0) != (a == b) {
				t.Errorf("natural(%q, %q) = %d, reversed %d", a, b, natural(a, b), natural(b, a))
			}
		}
	}
}

func TestNamesCanBeSeen(t *testing.T) {
	for name, ok := range map[string]bool{"front door / Köpek 犬": true, "a\x1b[2J": false, "a\u202egpj": false, "a\u009b": false, "a\xff": false} {
		if _, err := Open("test:pattern", Name(name)); (err == nil) != ok || err != nil && (!errors.Is(err, ErrSpec) || !shown.Plain(err.Error())) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzOpen looks for texts that panic or that show a password.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"a.gif", "n=a.gif", "raw:x?format=nv12&size=2x2&fps=1", "test:pattern?size=8x8&fps=30&frames=3",
		"rtsp://u:p@h/s?token=x", "${HOME}", "gst:videotestsrc", "a=b=c*", "v4l2:x?size=1x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := Open(spec, Logger(nil), MaxPixels(1<<20))
		if (s == nil) == (err == nil) {
			t.Fatal(s, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "source ") {
			t.Errorf("error %q", err)
		}
	})
}

// FuzzRedact puts a password into a URL within any text, as long as the URL is one.
func FuzzRedact(f *testing.F) {
	f.Add("before ", "/path?x=1 after")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, password := range []string{"geheim", "12geheim", "ge/heim", "12/geheim", "/geheim", "1?geheim", "1#geheim", "ge@heim", "1/ge@heim"} {
			text := before + " rtsp://user:" + password + "@host/" + after
			if got := Redact(text); strings.Contains(got, "heim@host") {
				t.Errorf("%q shows %q", text, got)
			}
		}
	})
}

// A URL that is written a little wrong is none, and its password stays hidden all the same.
func TestNearlyURLsHideThePassword(t *testing.T) {
	for _, spec := range []string{
		"rtsp:///u:S3cret@h/s", "rtsp:/u:S3cret@h/s", "rtsp//u:S3cret@h/s", "rtsp:u:S3cret@h/s", "u:S3cret@h/x", "door=rtsp:/u:S3cret@h/s",
		"u:S3cret@h", "(u:S3cret@h)", "say u:S3cret@h now",
	} {
		if shown := Redact(spec); strings.Contains(shown, "S3cret") {
			t.Errorf("%s is shown as %s", spec, shown)
		}
		if _, err := Open(spec); err == nil || strings.Contains(err.Error(), "S3cret") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for _, text := range []string{"eyas: me@home", "photo@2x.jpg", "12:30 a@b", "dir/a@b/c:d"} {
		if shown := Redact(text); shown != text {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}
