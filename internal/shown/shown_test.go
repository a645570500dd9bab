package shown

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var texts = []struct{ name, in, want string }{
	{"empty", "", ""},
	{"plain", `C:\door "1" =|&`, `C:\door "1" =|&`},
	{"other scripts", "Köpek 犬 کلب نمی\u200cخواهم 👨\u200d👩", "Köpek 犬 کلب نمی\u200cخواهم 👨\u200d👩"},
	{"lines and tabs", "a\r\nb\tc", "a  b c"},
	{"escape sequence", "a\x1b[31mb\x00\x7f", `a\x1b[31mb\x00\x7f`},
	{"C1", "a\u009b31mb\u0085", `a\u009b31mb\u0085`},
	{"direction", "a\u202egpj.b\u2066\u200f\u061c", `a\u202egpj.b\u2066\u200f\u061c`},
	{"not seen", "a\u200b\ufeff\u00ad\u2028\u2029", `a\u200b\ufeff\u00ad\u2028\u2029`},
	{"tags", "a\U000e0041", `a\U000e0041`},
	{"private", "\ue000", `\ue000`},
	{"no UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
	{"replacement", "a\ufffdb", "a\ufffdb"},
}

func TestText(t *testing.T) {
	for _, tt := range texts {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if Plain(tt.in) != (tt.in == tt.want) {
				t.Errorf("plain: %v", Plain(tt.in))
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\n\u202e\u009b") || !Plain(got) || Text(got) != got {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
