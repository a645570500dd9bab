package prep

import "sync"

// workers are the threads of a Filler beside its caller's.
type workers struct {
	wake []chan struct{} // one a worker; closed to end it
	done sync.WaitGroup  // bands that are being filled
	gone sync.WaitGroup  // workers that live
}

// SetThreads makes Fill share its rows among n threads, the caller's and n-1 goroutines that wait in between. The
// results do not depend on n; 1, the default, is the least. Close ends the goroutines.
func (f *Filler) SetThreads(n int) {
	n = max(n, 1)
	for _, c := range f.work.wake {
		close(c)
	}
	f.work.gone.Wait()
	f.work.wake = nil
	f.bands = make([]band, n)
	f.shape = shape{} // so that the next frame makes the bands' buffers
	for i := 1; i < n; i++ {
		wake := make(chan struct{})
		f.work.wake = append(f.work.wake, wake)
		f.work.gone.Go(func() {
			for range wake {
				f.fillBand(i)
				f.work.done.Done()
			}
		})
	}
}

// Close ends the goroutines of SetThreads and waits for them. The Filler stays usable, with one thread.
func (f *Filler) Close() { f.SetThreads(1) }

// run fills all bands.
func (f *Filler) run() {
	f.work.done.Add(len(f.work.wake))
	for _, c := range f.work.wake {
		c <- struct{}{}
	}
	f.fillBand(0)
	f.work.done.Wait()
}

// fillBand fills band i of len(f.bands).
func (f *Filler) fillBand(i int) {
	n := len(f.bands)
	f.band(i, f.boundary(i, n), f.boundary(i+1, n))
}

// boundary returns the first row of band i of n: bands take equal shares of the work, where a row of padding
// counts a quarter of one of the picture.
func (f *Filler) boundary(i, n int) int {
	const row = 4
	top, picture, below := f.fit.Top, f.fit.NewH*row, f.inH-f.fit.Top-f.fit.NewH
	at := (top + picture + below) * i / n
	switch {
	case at < top:
		return at
	case at < top+picture:
		return top + (at-top)/row
	}
	return f.fit.NewH + at - picture
}
