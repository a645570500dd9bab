package main

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// On a terminal each camera has a line that fits, and what it says changes in place.
func TestTerminalShowsCameras(t *testing.T) {
	const columns = 100 // of pty
	master, screen := pty(t)
	c := command(unhurried(t, "-o", filepath.Join(t.TempDir(), "results.jsonl"), "check=test:pattern?size=320x240", "gone=/dev/video63?size=640x480")...)
	c.Stderr = screen
	f := followCommand(t, c)
	screen.Close()
	shows, done := newTail(), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(shows, master) // until the last one closes its end, which is an error
	}()
	const gone = `gone: lost (there is no /dev/video63: plug the camera in`
	check := regexp.MustCompile(`check: open 320x240 rgb24, in [1-9][0-9.]*/s, out [1-9][0-9.]*/s, age \d+ ms, \d+ dropped`)
	redrawn := regexp.MustCompile(`^\x1b\[2A\x1b\[J`) // from the upper of two lines on
	for range 2 {
		line := f.until(shows, "line of the pattern", func(line string) bool { return redrawn.MatchString(line) && check.MatchString(line) })
		below := f.until(shows, "line below", func(string) bool { return true })
		if !strings.HasPrefix(below, gone) {
			t.Errorf("below the pattern stands %q", below)
		}
		for _, s := range []string{redrawn.ReplaceAllString(line, ""), below} {
			if n := utf8.RuneCountInString(strings.TrimRight(s, "\r\n")); n > columns {
				t.Errorf("%d columns: %q", n, s)
			}
		}
	}
	if code := f.end(syscall.SIGINT); code != 0 {
		t.Errorf("exit code %d", code)
	}
	<-done
	if !strings.Contains(shows.String(), "\neyas: gone: 0 frames captured") {
		t.Errorf("no report in the end of %q", shows)
	}
}
