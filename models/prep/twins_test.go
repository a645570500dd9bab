package prep

import "testing"

// bothTwins returns a filler of each twin that this build and machine have.
func bothTwins(tb testing.TB, r Recipe, inW, inH int) map[string]*Filler {
	tb.Helper()
	twins := map[string]*Filler{}
	for _, name := range []string{"Go", "C"} {
		f, err := NewFiller(r, inW, inH)
		if err != nil {
			tb.Fatal(err)
		}
		if name == "C" && !f.vector {
			continue
		}
		f.vector = name == "C"
		twins[name] = f
	}
	return twins
}
