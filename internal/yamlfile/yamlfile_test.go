package yamlfile

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

type sample struct {
	Name string         `yaml:"name"`
	N    int            `yaml:"n"`
	List []string       `yaml:"list"`
	Sub  map[string]int `yaml:"sub"`
	Wait time.Duration  `yaml:"wait"`
	Odd  odd            `yaml:"odd"`
	Ints []int          `yaml:"ints"`
	F    *float32       `yaml:"f"`
	In   struct {
		N *int `yaml:"n"`
	} `yaml:"in"`
}

type odd int

func (o *odd) UnmarshalText(text []byte) error {
	if len(text)%2 == 0 {
		return errors.New(`"` + string(text) + `" is not odd`)
	}
	return nil
}

var cases = []struct{ name, in, err string }{
	{name: "empty"},
	{name: "comments", in: "# a\n# b\n"},
	{name: "all", in: "name: 'a'\nn: 3\nlist: [a, b]\nsub: {a: 1}\nwait: 3ms\nodd: abc\n"},
	{name: "a list in the column of its key", in: "list:\n- a\n- b\nn: 1\n"},
	{name: "a ruler", in: "# " + strings.Repeat("- ", 100) + "\nn: 1\n"},
	{name: "brackets in quotes", in: "name: '" + strings.Repeat("[", 100) + "'\n"},
	{name: "wrong type", in: "n: many", err: `1:4: "many" is not a whole number`},
	{name: "whole numbers", in: "n: -3\nints: [0, +1, 10]\nsub: {a: 7}\nin: {n: 5}\nf: 1"},
	{name: "nothing for a number", in: "n:\nin: {n: null}"},
	{name: "fraction", in: "n: 1.5", err: `1:4: "1.5" is not a whole number`},
	{name: "fraction in quotes", in: "n: '1.5'", err: `1:4: "1.5" is not a whole number`},
	{name: "power", in: "n: 1e3", err: `1:4: "1e3" is not a whole number`},
	{name: "fraction in a list", in: "ints: [1, 2.7]", err: `1:11: "2.7" is not a whole number`},
	{name: "fraction in a map", in: "sub:\n  a: 1\n  b: 0.5", err: `3:6: "0.5" is not a whole number`},
	{name: "fraction in a group", in: "in: {n: 2.0}", err: `1:9: "2.0" is not a whole number`},
	{name: "leading zero", in: "n: 010", err: `1:4: "010" is read differently`},
	{name: "leading zero, no octal", in: "n: 09", err: `1:4: "09" is`},
	{name: "leading zero for a fraction", in: "f: 010", err: `1:4: "010" is read differently`},
	{name: "hexadecimal", in: "n: 0x10", err: `1:4: "0x10" is read differently`},
	{name: "underscores", in: "n: 1_000", err: `1:4: "1_000" is`},
	{name: "too large", in: "n: 99999999999999999999", err: `1:4: "99999999999999999999" is out of range`},
	{name: "unknown key", in: "n: 1\nm: 2", err: `2:1: unknown field "m"`},
	{name: "key twice", in: "n: 1\nn: 2", err: "2:1: "},
	{name: "refused by a type of ours", in: "n: 1\nodd: abcd", err: `2:6: "abcd" is not odd`},
	{name: "refused by an option", in: "wait: long", err: `1:7: "long" is no time`},
	{name: "not closed", in: "list: [a", err: "1:7: "},
	{name: "anchor", in: "n: &a 1", err: "1:4: anchors, aliases and tags"},
	{name: "alias", in: "n: *a", err: "1:4: anchors, aliases and tags"},
	{name: "tag", in: "!!map\nn: 1", err: "1:1: anchors, aliases and tags"},
	{name: "merge", in: "<<: {n: 1}", err: "anchors, aliases and tags"},
	{name: "two documents", in: "n: 1\n---\nn: 2", err: "a second document"},
	{name: "map as a key", in: "{[a]: 1}", err: "a key has to be plain text"},
	{name: "too long", in: "#" + strings.Repeat("x", MaxBytes), err: "1:1: "},
}

func decode(data []byte) (sample, error) {
	var s sample
	d, err := Parse(data)
	if err == nil {
		err = d.Decode(&s, yaml.CustomUnmarshaler(func(t *time.Duration, text []byte) (err error) {
			if *t, err = time.ParseDuration(strings.TrimSpace(string(text))); err != nil {
				err = errors.New(`"` + strings.TrimSpace(string(text)) + `" is no time`)
			}
			return err
		}))
	}
	return s, err
}

func TestDecode(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.in))
			switch {
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want an error with %q", err, c.err)
			}
		})
	}
	s, err := decode([]byte(cases[2].in))
	if err != nil || s.Name != "a" || s.N != 3 || len(s.List) != 2 || s.Sub["a"] != 1 || s.Wait != 3*time.Millisecond {
		t.Errorf("got %+v, %v", s, err)
	}
}

// harmful are documents that the parser takes seconds or gigabytes for, or would at a larger size.
func harmful() map[string]string {
	fill := func(head, s string) string { return head + strings.Repeat(s, (MaxBytes-len(head))/len(s)) }
	indented := func(s string) string {
		var b strings.Builder
		for i := 0; b.Len()+i+len(s) < MaxBytes; i++ {
			b.WriteString(strings.Repeat(" ", i) + s)
		}
		return b.String()
	}
	return map[string]string{
		"brackets":                fill("", "["),
		"brackets, some quoted":   fill("a: [", `["]",["]",`),
		"maps":                    fill("", "{a: "),
		"dashes":                  fill("", "- "),
		"question marks":          fill("", "? "),
		"colons":                  fill("", ": "),
		"keys in a row":           fill("", "a: "),
		"anchors":                 fill("", "&a "),
		"tags":                    fill("", "- ! "),
		"quotes":                  fill("", `"" `),
		"indented keys":           indented("a:\n"),
		"indented dashes":         indented("-\n"),
		"a list that never ends":  fill("a: [", "[],"),
		"a long key of a list":    fill(strings.Repeat("x", MaxBytes/2)+": [", "1,"),
		"long keys in each other": fill(strings.Repeat("{"+strings.Repeat("x", 1<<12)+": ", 31)+"[", "1,"),
	}
}

// What is made to do harm is refused at little cost: the parser's own is 5 GB and more.
func TestHarmfulDocuments(t *testing.T) {
	for name, text := range harmful() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode([]byte(text))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("taken")
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 300<<20 {
				t.Errorf("took %d MB", took>>20)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in[:min(len(c.in), 1000)]))
	}
	for _, text := range harmful() {
		f.Add([]byte(text[:1000]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := decode(data)
		var at *Error
		if err != nil && (!errors.As(err, &at) || strings.Contains(err.Error(), "\n") || at.Line < 1 || at.Column < 0) {
			t.Errorf("not one line with its place: %q", err)
		}
	})
}
