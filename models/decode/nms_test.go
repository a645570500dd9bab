package decode

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
)

// reference is suppression as it is defined, on every pair: no grid, no early end.
func reference(boxes [][4]float32, scores [][]float32, o Options) []Detection {
	type cand struct {
		i, class int
		score    float32
	}
	var list []cand
	for i, row := range scores {
		best := 0
		for c, s := range row {
			if o.MultiLabel && s >= o.Conf {
				list = append(list, cand{i, c, s})
			}
			if s > row[best] {
				best = c
			}
		}
		if !o.MultiLabel && row[best] >= o.Conf {
			list = append(list, cand{i, best, row[best]})
		}
	}
	list = slices.DeleteFunc(list, func(c cand) bool { return o.Classes != nil && !slices.Contains(o.Classes, c.class) })
	slices.SortStableFunc(list, func(a, b cand) int {
		return cmp.Or(-cmp.Compare(a.score, b.score), cmp.Compare(a.i, b.i), cmp.Compare(a.class, b.class))
	})
	gone := make([]bool, len(list))
	var out []Detection
	for i, a := range list {
		if gone[i] || len(out) == o.MaxDet {
			continue
		}
		out = append(out, Detection{ClassID: a.class, Score: a.score, Box: boxes[a.i]})
		for j := i + 1; j < len(list); j++ {
			b := list[j]
			if a.class != b.class && !o.Agnostic {
				continue
			}
			p, q := boxes[a.i], boxes[b.i]
			w, h := min(p[2], q[2])-max(p[0], q[0]), min(p[3], q[3])-max(p[1], q[1])
			if w <= 0 || h <= 0 {
				continue
			}
			union := (p[2]-p[0])*(p[3]-p[1]) + (q[2]-q[0])*(q[3]-q[1]) - w*h
			gone[j] = gone[j] || w*h > o.IoU*union
		}
	}
	return out
}

func TestSuppressionIsTheDefinition(t *testing.T) {
	const side = 640
	trans := prep.Fit(prep.Stretch, side, side, side, side)
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 120 {
		n, classes := 1+r.IntN(400), 1+r.IntN(6)
		o := Options{Conf: 0.25, IoU: []float32{0, 0.2, 0.45, 0.7, 0.95, 1}[r.IntN(6)], MaxDet: 1 + r.IntN(500),
			Agnostic: r.IntN(2) == 0, MultiLabel: r.IntN(2) == 0}
		if r.IntN(4) == 0 {
			o.Classes = []int{0, 2}
		}
		sizes := []int{2, 8, 64, 300}[r.IntN(4)] // in quarters of a pixel, so that all arithmetic is exact
		boxes, scores := make([][4]float32, n), make([][]float32, n)
		for i := range boxes {
			w, h := float32(2+r.IntN(sizes))/2, float32(2+r.IntN(sizes))/2
			x, y := float32(r.IntN(2*(side-152)))/2, float32(r.IntN(2*(side-152)))/2
			if r.IntN(3) == 0 {
				x, y = float32(100+r.IntN(9)), float32(200+r.IntN(9))
			}
			boxes[i] = [4]float32{x, y, x + w, y + h}
			for range classes {
				scores[i] = append(scores[i], float32(r.IntN(9))/8) // many ties
			}
		}
		for _, transposed := range []bool{false, true} {
			rows := floats([]int{1, n, 4 + classes})
			for i, b := range boxes {
				copy(rows.Float32s()[i*(4+classes):], append([]float32{(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]}, scores[i]...))
			}
			if !transposed {
				rows = transpose(rows)
			}
			d, _ := New(Head{Kind: ClassOnly, Classes: classes, Transposed: transposed})
			got, err := d.Decode(nil, []*tensor.Tensor{rows}, 0, trans, o)
			if err != nil {
				t.Fatal(err)
			}
			if want := reference(boxes, scores, o); !slices.Equal(got, want) {
				t.Fatalf("round %d, %d boxes of %d classes, %+v: got %d detections, want %d\n%v\n%v", round, n, classes, o, len(got), len(want), got, want)
			}
		}
	}
}

// More candidates than go into suppression: the best ones do, wherever they are.
func TestMaxCandidates(t *testing.T) {
	const n, classes = 1000, 100
	rows := floats([]int{1, n, 4 + classes})
	f := rows.Float32s()
	for i := range n {
		row := f[i*(4+classes):]
		copy(row, []float32{float32(i%40)*16 + 8, float32(i/40)*16 + 8, 8, 8})
		for c := range classes {
			row[4+c] = float32(i*classes+c+1) / (n * classes) // rising: the worst order
		}
	}
	d, _ := New(Head{Kind: ClassOnly, Classes: classes, Transposed: true})
	got, err := d.Decode(nil, []*tensor.Tensor{rows}, 0, prep.Fit(prep.Stretch, 640, 640, 640, 640), Options{IoU: 0.5, MultiLabel: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != MaxCandidates {
		t.Fatalf("got %d detections, want %d", len(got), MaxCandidates)
	}
	for k, g := range got {
		if want := float32(n*classes-k) / (n * classes); g.Score != want {
			t.Fatalf("detection %d has score %v, want %v", k, g.Score, want)
		}
	}
}

// A grid that hangs everything in its border cells still answers as the definition does.
func TestSuppressionOutsideThePicture(t *testing.T) {
	var s suppressor
	s.reset(10, 10, 0.5)
	for i := range 2000 {
		x := float32(i)*20 - 20000
		b := [4]float32{x, x, x + 12, x + 12}
		if !s.keep(b, 0) {
			t.Fatalf("box %v is apart from all others", b)
		}
	}
	for i := range 2000 {
		x := float32(i)*20 - 20000 + 1
		if b := [4]float32{x, x, x + 12, x + 12}; s.keep(b, 0) {
			t.Fatalf("box %v overlaps one that is kept", b)
		}
	}
}

func ExampleDecoder() {
	out := floats([]int{1, 5, 2}, 50, 52, 40, 40, 20, 20, 10, 10, 0.9, 0.8) // two boxes, one class
	d, err := New(Head{Kind: ClassOnly, Classes: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := d.Decode(nil, []*tensor.Tensor{out}, 0, prep.Fit(prep.Stretch, 100, 80, 100, 80), Options{Conf: 0.25, IoU: 0.7, MaxDet: 300})
	fmt.Println(found, err)
	// Output: [{0 0.9 [40 35 60 45]}] <nil>
}
