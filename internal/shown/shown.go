// Package shown makes text from outside fit for one line of a terminal and of a log: names of files, of cameras and
// classes, and what children and servers write may hold anything.
package shown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune says whether r stands for itself where it is shown. Others are obeyed instead, as escape sequences are, or change how what
// stands around them looks, as U+202E does, which turns the direction. The two joiners of letters, which some scripts
// need, do neither.
func Rune(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	return unicode.IsGraphic(r) || r == nonJoiner || r == joiner
}

// Plain says whether s can be shown as it is.
func Plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !Rune(r) })
}

// Text returns s with blanks for tabs and ends of lines, and with what else cannot be shown written as Go does: \x1b, \u202e. What
// it returned it leaves as it is.
func Text(s string) string {
	if Plain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Rune(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
