package testenv

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// OpenCV is a Python script at work that answers requests, lines on its stdin, with what OpenCV makes of them.
type OpenCV struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
}

// StartOpenCV starts a script in a Python that has OpenCV. It gets the end of its input when the test ends.
func StartOpenCV(t testing.TB, script string) *OpenCV {
	t.Helper()
	python := ""
	for _, p := range []string{"/usr/bin/python3", "python3"} { // Debian's package belongs to Debian's Python
		if exec.Command(p, "-c", "import cv2").Run() == nil {
			python = p
			break
		}
	}
	Require(t, python != "", "no Python with OpenCV: install python3-opencv")
	cmd := exec.Command(python, script)
	// Else most of OpenCV's time is the kernel's, for pages that the allocator gives back after every picture.
	cmd.Env = append(os.Environ(), "MALLOC_MMAP_THRESHOLD_=1000000000", "MALLOC_TRIM_THRESHOLD_=2000000000", "MALLOC_TOP_PAD_=268435456")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &OpenCV{t, in, bufio.NewReader(out)}
}

// Ask sends a request and the bytes that belong to it.
func (o *OpenCV) Ask(raw []byte, format string, args ...any) {
	o.t.Helper()
	_, err := fmt.Fprintf(o.in, format+"\n", args...)
	if err == nil {
		_, err = o.in.Write(raw)
	}
	if err != nil {
		o.t.Fatalf("OpenCV: %v", err)
	}
}

// Bytes reads an answer of n bytes.
func (o *OpenCV) Bytes(n int) []byte {
	o.t.Helper()
	answer := make([]byte, n)
	if _, err := io.ReadFull(o.out, answer); err != nil {
		o.t.Fatalf("OpenCV: %v", err)
	}
	return answer
}

// Time asks for what the script times, and returns the nanoseconds of processor time.
func (o *OpenCV) Time() float64 {
	o.t.Helper()
	o.Ask(nil, "time")
	line, err := o.out.ReadString('\n')
	ns := 0.0
	if err == nil {
		ns, err = strconv.ParseFloat(strings.TrimSpace(line), 64)
	}
	if err != nil {
		o.t.Fatalf("OpenCV: %v", err)
	}
	return ns
}
