package models

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/eyas-edge/eyas/internal/shown"
)

// maxLabels bounds class ids, so that a name for class 4,000,000,000 costs nothing.
const maxLabels = 10000

// ParseNames reads the class names that exporters write into a model's metadata: a Python
// literal, either a dictionary {0: 'person', 1: "dog's bed"} or a list ['person', 'dog']. JSON
// objects with numbers as keys are literals of that form too. Classes that a dictionary leaves out
// have the name "". It fails on anything else, on a class named twice and on more than 10,000.
func ParseNames(s string) ([]string, error) {
	p := literal{rest: strings.TrimSpace(s)}
	names, err := p.names()
	if err != nil {
		return nil, fmt.Errorf("names at byte %d: %w", len(strings.TrimSpace(s))-len(p.rest)+1, err)
	}
	return names, nil
}

// literal reads a Python literal from its front.
type literal struct{ rest string }

func (p *literal) names() ([]string, error) {
	var names []string
	var err error
	switch {
	case p.take('{'):
		names, err = p.items('}', true)
	case p.take('['):
		names, err = p.items(']', false)
	case p.take('('):
		names, err = p.items(')', false)
	default:
		return nil, errors.New("expected a dictionary {0: 'name', ...} or a list ['name', ...]")
	}
	if p.space(); err == nil && p.rest != "" {
		err = errors.New("text after the end")
	}
	return names, err
}

// items reads comma-separated names up to the closing byte, with a class id before each
// where keyed.
func (p *literal) items(end byte, keyed bool) ([]string, error) {
	set := labelSet{}
	for {
		if p.space(); p.take(end) {
			return set.names, nil
		}
		id := len(set.names)
		if keyed {
			var err error
			if id, err = p.key(); err != nil {
				return nil, err
			}
		}
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		if err := set.add(id, name); err != nil {
			return nil, err
		}
		if p.space(); !p.take(',') && !strings.HasPrefix(p.rest, string(end)) {
			return nil, fmt.Errorf("expected ',' or %q", end)
		}
	}
}

// key reads a class id, quoted or not, and the colon after it.
func (p *literal) key() (int, error) {
	digits := ""
	if strings.HasPrefix(p.rest, "'") || strings.HasPrefix(p.rest, `"`) {
		var err error
		if digits, err = p.quoted(); err != nil {
			return 0, err
		}
	} else {
		n := 0
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		digits, p.rest = p.rest[:n], p.rest[n:]
	}
	id, err := strconv.Atoi(digits)
	if err != nil {
		return 0, errors.New("expected a class number")
	}
	if p.space(); !p.take(':') {
		return 0, errors.New("expected ':' after the class number")
	}
	p.space()
	return id, nil
}

// escapes are Python's one-letter escapes that may occur in a name.
var escapes = map[byte]string{'\\': `\`, '\'': "'", '"': `"`, '/': "/", 'n': "\n", 't': "\t", 'r': "\r"}

// quoted reads one string in single or double quotes.
func (p *literal) quoted() (string, error) {
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", errors.New("expected a name in quotes")
	}
	quote := p.rest[0]
	p.rest = p.rest[1:]
	var b strings.Builder
	for p.rest != "" {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch c {
		case quote:
			return b.String(), nil
		case '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("a name has no closing quote")
}

// escape reads what follows a backslash.
func (p *literal) escape(b *strings.Builder) error {
	if p.rest == "" {
		return errors.New("a name ends in a backslash")
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if s, ok := escapes[c]; ok {
		b.WriteString(s)
		return nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 { // Python keeps the backslash of an escape that it does not know
		b.WriteByte('\\')
		b.WriteByte(c)
		return nil
	}
	if len(p.rest) < digits {
		return fmt.Errorf("\\%c wants %d hexadecimal digits", c, digits)
	}
	r, err := strconv.ParseUint(p.rest[:digits], 16, 32)
	if err != nil || r > unicode.MaxRune {
		return fmt.Errorf("\\%c wants %d hexadecimal digits of a character", c, digits)
	}
	p.rest = p.rest[digits:]
	b.WriteRune(rune(r))
	return nil
}

// take consumes c if it is next.
func (p *literal) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// labelSet collects names by class id.
type labelSet struct {
	names []string
	seen  map[int]bool
}

func (s *labelSet) add(id int, name string) error {
	if id < 0 || id >= maxLabels {
		return fmt.Errorf("class %d is out of range: ids go from 0 to %d", id, maxLabels-1)
	}
	if s.seen[id] {
		return fmt.Errorf("class %d is named twice", id)
	}
	if s.seen == nil {
		s.seen = map[int]bool{}
	}
	s.seen[id] = true
	for len(s.names) <= id {
		s.names = append(s.names, "")
	}
	s.names[id] = printable(name)
	return nil
}

// printable makes a name safe for a terminal and for JSON: what a terminal would obey, and invalid bytes, which no class name
// needs, become U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !shown.Rune(r) {
			return utf8.RuneError
		}
		return r
	}, strings.TrimSpace(s))
}
