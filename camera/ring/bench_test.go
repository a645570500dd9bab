package ring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func init() { children["latency"] = latencyChild }

// BenchmarkPublish measures a 1080p NV12 frame into the ring - Begin, a copy into the slot, Publish, Release - and, in
// turn, a copy of the same bytes into as many buffers.
func BenchmarkPublish(b *testing.B) {
	r := newRing(b, big)
	src := make([]byte, r.head.frameBytes)
	for i := range src {
		src[i] = byte(i * 31)
	}
	plain := [2][]byte{make([]byte, len(src)), make([]byte, len(src))}
	var ring, copies []time.Duration
	now := time.Now()
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		f := r.Begin()
		f.Seq, f.Captured = uint64(i), now
		copy(r.Packed(f), src)
		r.Publish(f)
		f.Release()
		between := time.Now()
		copy(plain[i%2], src)
		copies = append(copies, time.Since(between))
		ring = append(ring, between.Sub(begun))
	}
	p, c := quantile(ring, 0.5), quantile(copies, 0.5)
	b.ReportMetric(float64(p.Nanoseconds())/1e3, "publish-µs")
	b.ReportMetric(float64(c.Nanoseconds())/1e3, "memcpy-µs")
	b.ReportMetric(float64(p)/float64(c), "ratio")
}

// BenchmarkOverhead is all of a frame but its bytes.
func BenchmarkOverhead(b *testing.B) {
	r := newRing(b, big)
	now := time.Now()
	for b.Loop() {
		f := r.Begin()
		f.Captured = now
		r.Publish(f)
		f.Release()
	}
}

// BenchmarkLatency measures from before Publish in this process to a reader in another having seen the frame, and to
// having its copy, of 1080p NV12 frames, one every 10 ms.
func BenchmarkLatency(b *testing.B) {
	const frames = 500
	dir := b.TempDir()
	r := newRing(b, big)
	serve(b, dir, "cam", r)
	cmd := exec.Command(os.Args[0], dir, strconv.Itoa(frames))
	cmd.Env = append(os.Environ(), childKey+"=latency")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for seq := uint64(0); ; seq++ {
		select {
		case err := <-done:
			var unit [4]float64
			if _, serr := fmt.Sscan(out.String(), &unit[0], &unit[1], &unit[2], &unit[3]); errors.Join(err, serr) != nil {
				b.Fatalf("%v: %s", errors.Join(err, serr), out.String())
			}
			for i, name := range []string{"seen-p50-µs", "seen-p99-µs", "copied-p50-µs", "copied-p99-µs"} {
				b.ReportMetric(unit[i], name)
			}
			return
		case <-every.C:
			f := r.Begin()
			f.Seq, f.Captured = seq, time.Now()
			r.Publish(f)
			f.Release()
		}
	}
}

// latencyChild reads args[1] frames of the ring in args[0] and says how long after their capture time it saw them
// and had them: p50 and p99 of both, in microseconds.
func latencyChild(args []string) int {
	frames, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	rd, err := Connect(args[0], "cam")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var s Snapshot
	var seen, copied []time.Duration
	for len(seen) < frames {
		err := rd.Wait(context.Background(), s.Count)
		woken := time.Now()
		if err == nil {
			err = rd.Newest(&s)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		seen, copied = append(seen, woken.Sub(s.Captured)), append(copied, time.Since(s.Captured))
	}
	for _, d := range [][]time.Duration{seen, copied} {
		for _, q := range []float64{0.5, 0.99} {
			fmt.Println(float64(quantile(d, q).Nanoseconds()) / 1e3)
		}
	}
	return 0
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
