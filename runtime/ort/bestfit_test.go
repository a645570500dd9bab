package ort

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/memplan"
)

// lifetimes returns the requests of a recording as buffers, in the order of the requests.
func lifetimes(r Recording) []memplan.Buffer {
	var list []memplan.Buffer
	for now, e := range r {
		if e.Free {
			list[e.Request].Upper = now
		} else {
			list = append(list, memplan.Buffer{ID: fmt.Sprint(e.Request), Lower: now, Upper: len(r), Size: e.Bytes})
		}
	}
	return list
}

// inPattern returns the requests of a run that traces which the library's pattern serves in later runs: all but
// those that such a run, whose requests beside the pattern's block are given, makes again. Those are kernels'
// scratch memory, freed within the kernel's few events, and outputs that are not bound.
func inPattern(t *testing.T, traced, beside []memplan.Buffer) []memplan.Buffer {
	t.Helper()
	const kernel = 4 // events of one kernel's outputs, which a later run has no more
	var served []memplan.Buffer
	for _, b := range traced {
		if len(beside) > 0 && b.Size == beside[0].Size && b.Upper-b.Lower <= beside[0].Upper-beside[0].Lower+kernel {
			beside = beside[1:]
		} else {
			served = append(served, b)
		}
	}
	if len(beside) > 0 {
		t.Fatalf("%d requests beside the pattern are not in the run that it was traced from, first %+v", len(beside), beside[0])
	}
	return served
}

func bestFit(t *testing.T, buffers []memplan.Buffer) int64 {
	t.Helper()
	p := memplan.Problem{Buffers: buffers}
	s, err := memplan.BestFit(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := memplan.Validate(p, s); err != nil {
		t.Fatal(err)
	}
	return s.Height
}

// memplan.BestFit reserves for the requests that the library's memory pattern serves, to the byte, what the
// library reserves: the pattern's block is a whole number of 256 bytes.
//
// The peak with a pattern is higher than its block where kernels take scratch memory, since that never comes from
// the block's gaps. A best fit of all requests, which is all that a plan knows, puts it there and so is lower: it
// flatters the library.
func TestBestFitIsTheLibrarysPattern(t *testing.T) {
	const granularity = 256
	t.Logf("%-30s %5s %9s %9s %9s %9s %9s", "model", "batch", "live", "block", "best fit", "peak", "of all")
	for _, c := range replayed {
		t.Run(fmt.Sprintf("%s/%d", c.model, c.batch), func(t *testing.T) {
			if testing.Short() && strings.HasSuffix(c.model, "_640") {
				t.Skip("large")
			}
			s := open(t, c.model, Options{Threads: 2, OwnAllocator: true, Pattern: true})
			b := bind(t, s, noisy(t, s, c.batch, c.side), outputsFor(t, s, c.batch)...)
			traced, later := record(t, b), record(t, b)
			block := lifetimes(later)[0].Size // a run begins with it
			all := lifetimes(traced)
			got, ofAll := bestFit(t, inPattern(t, all, lifetimes(later)[1:])), bestFit(t, all)
			if rounded := (got + granularity - 1) / granularity * granularity; rounded != block {
				t.Errorf("best fit reserves %d bytes, the library %d", rounded, block)
			}
			if ofAll > later.Peak() {
				t.Errorf("best fit of all requests reserves %d bytes, the library takes %d at its peak", ofAll, later.Peak())
			}
			t.Logf("%-30s %5d %9d %9d %9d %9d %9d", c.model, c.batch, traced.Peak(), block, got, later.Peak(), ofAll)
		})
	}
}
