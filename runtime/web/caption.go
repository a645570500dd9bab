package web

import (
	"fmt"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// stale is the age from which a picture of an open camera is not passed off as live. Between pictures of a
// slow camera or model a second may pass.
const stale = 2 * time.Second

// caption is written over a picture, "" for nothing. One that is no trouble is for a file.
type caption struct {
	text    string
	trouble bool
}

// captionOf says what a viewer has to know: that this is no live picture, since when, and why. taken is the time of the
// last picture, zero before the first.
func captionOf(st eyas.SourceStatus, taken, now time.Time) caption {
	var age time.Duration
	if !taken.IsZero() {
		age = now.Sub(taken).Truncate(time.Second)
	}
	c := caption{trouble: true}
	switch {
	case st.State == "open" && taken.IsZero():
		c.text = "no picture yet"
	case st.State == "open" && age <= stale:
		c.trouble = false
		if !st.Live {
			c.text = "not live: a file"
		}
		return c.of(st.Name)
	case st.State == "open":
		c.text = fmt.Sprintf("no new picture for %v", age)
	case taken.IsZero():
		c.text = "no picture yet: " + st.State
	case st.State == "ended", st.State == "failed":
		c.text = st.State
	default:
		c.text = fmt.Sprintf("%s, last picture %v ago", st.State, age)
	}
	if st.Error != "" {
		c.text += ": " + st.Error
	}
	return c.of(st.Name)
}

// of has the caption begin with the source's name.
func (c caption) of(name string) caption {
	if c.text != "" {
		c.text = name + ": " + c.text
	}
	return c
}
