package memplan

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// rungOf is a batch size of two models that share an arena.
func rungOf(batch int) Rung {
	n := int64(batch)
	solution := func(height, bound int64, proven bool) Solution {
		return Solution{Height: height * n, LowerBound: bound * n, Proven: proven, Nodes: 17, Seconds: 0.002, Offsets: []int64{0, height * n / 2}}
	}
	problem := func(height int64) Problem {
		return Problem{Buffers: []Buffer{{ID: "0", Upper: 4, Size: height * n / 2, Align: 64}, {ID: "1", Lower: 2, Upper: 6, Size: height * n / 2, Align: 64}}}
	}
	const cars, people = 1404928, 307200
	return Rung{
		Batch: batch,
		Plan: Plan{Regions: []Region{
			{Kind: Weights, Owner: "cars", Bytes: 3662848}, {Kind: Headroom, Owner: "cars", Bytes: 732569},
			{Kind: Weights, Owner: "people", Bytes: 946176}, {Kind: Headroom, Owner: "people", Bytes: 189235},
			{Kind: Arena, Bytes: cars * n}, {Kind: Spill, Bytes: 16384},
			{Kind: Tensors, Owner: "cars", Bytes: 6676480 * n}, {Kind: Tensors, Owner: "people", Bytes: 900000 * n},
			{Kind: Frames, Owner: "door", Bytes: 12441600, Basis: Estimated},
			{Kind: Engine, Bytes: 31457280, Basis: EarlierRun}, {Kind: Children, Owner: "door", Bytes: 83886080, Basis: "allowance for ffmpeg"},
			{Kind: Go, Bytes: 8388608},
		}},
		Arenas: []SolvedArena{
			NewSolvedArena("people", problem(people), solution(people, people, true), 0),
			NewSolvedArena("cars", problem(cars), solution(cars, cars, true), 16384),
		},
	}
}

func documents(t *testing.T) map[string]*Document {
	t.Helper()
	models := []ModelPlan{{Name: "cars", Path: "cars.onnx"}, {Name: "people", Path: "people.onnx"}}
	rungs := []Rung{rungOf(1), rungOf(2), rungOf(4)}
	list := map[string]*Document{}
	add := func(name string, short bool, models []ModelPlan, rungs []Rung, c Capacity, force Placement) {
		d, err := NewDocument(models, rungs, c, force)
		var s *Shortage
		if d == nil || short != errors.As(err, &s) {
			t.Fatalf("%s: %v", name, err)
		}
		list[name] = d
	}
	add("fits", false, models, rungs, Capacity{Budget: 256 << 20, Machine: 2 << 30, Dedicated: 8 << 20}, "")
	add("short", true, models, rungs, Capacity{Budget: 160 << 20, Dedicated: Unlimited}, "")

	models = []ModelPlan{{Name: "cars", Quota: 12 << 20}}
	one := rungOf(1)
	one.Arenas[1].LowerBound -= 64
	one.Arenas[1].Proven = false
	one.Arenas = one.Arenas[1:]
	one.Plan.Regions = []Region{{Kind: Weights, Owner: "cars", Bytes: 3662848}, {Kind: Arena, Owner: "lane 0", Bytes: 1404928},
		{Kind: Arena, Owner: "lane 1", Bytes: 1404928}, {Kind: Tensors, Owner: "cars", Bytes: 6676480}}
	add("lanes", false, models, []Rung{one}, Capacity{Dedicated: Unlimited, Name: "device memory"}, "")
	models[0].Quota = 1 << 20
	add("quota", true, models, []Rung{one}, Capacity{Dedicated: 0}, "")
	add("empty", false, nil, nil, Capacity{Dedicated: Unlimited}, "")
	return list
}

func TestDocumentTable(t *testing.T) {
	for name, d := range documents(t) {
		var b bytes.Buffer
		if err := d.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, "plan_"+name+".txt", b.Bytes())
	}
	if documents(t)["fits"].WriteTable(fullDisk{}) == nil {
		t.Error("no error")
	}
}

func TestDocumentJSON(t *testing.T) {
	for _, name := range []string{"fits", "empty"} {
		text, err := json.MarshalIndent(documents(t)[name], "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "plan_"+name+".json", append(text, '\n'))
	}
}

func TestDocumentAddsUp(t *testing.T) {
	d := documents(t)["fits"]
	for _, b := range d.Batches {
		if sum := b.Weights + b.Headroom + b.ArenaBytes + b.Spill + b.Tensors + b.Frames + b.Engine + b.Children + b.Go; sum != b.Total {
			t.Errorf("batch %d: columns add up to %d, total %d", b.Batch, sum, b.Total)
		}
	}
	if last := d.Batches[len(d.Batches)-1]; d.Total != last.Total || d.LargestBatch != 4 {
		t.Errorf("total %d, of the largest batch %d; largest that fits %d", d.Total, last.Total, d.LargestBatch)
	}
	if want := int64(3662848 + 732569 + 4*6676480 + 4*1404928 + 16384); d.Models[0].Need != want {
		t.Errorf("cars needs %d, want %d", d.Models[0].Need, want)
	}
}

// A batch size that fits the budget but not a model's quota does not fit.
func TestDocumentHoldsQuotas(t *testing.T) {
	need := func(n int64) int64 { return 3662848 + 732569 + n*(6676480+1404928) + 16384 }
	for _, c := range []struct {
		quota int64
		want  int
	}{{need(4), 4}, {need(4) - 1, 2}, {need(1), 1}, {need(1) - 1, 0}} {
		d, err := NewDocument([]ModelPlan{{Name: "cars", Quota: c.quota}}, []Rung{rungOf(4), rungOf(2), rungOf(1)}, Capacity{Dedicated: Unlimited}, "")
		if d == nil || d.LargestBatch != c.want || d.Fits != (err == nil) || d.Fits != (c.want == 4) {
			t.Errorf("quota %d: %v, largest %d, want %d", c.quota, err, d.LargestBatch, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "model cars: 35.0 MiB (36737433 bytes) needed, its quota has ") {
			t.Error(err)
		}
	}
	if d, err := NewDocument(nil, nil, Capacity{}, "there"); d != nil || err == nil {
		t.Error("no error for a placement that is none")
	}
}

// The arena that decides can be checked by who reads the document; its tensors count for a model's quota.
func TestDecisiveArena(t *testing.T) {
	d := documents(t)["fits"]
	a, batch, ok := d.Decisive()
	if !ok || batch != 4 || a.Model != "cars" || a.Height != 4*1404928 || len(a.Problem().Buffers) != len(a.Offsets) {
		t.Errorf("%v, %+v", ok, a)
	}
	if _, _, ok := documents(t)["empty"].Decisive(); ok {
		t.Error("a plan of nothing has an arena")
	}
	rung := rungOf(1)
	rung.Arenas[1].Tensors = 1000
	with, err := NewDocument([]ModelPlan{{Name: "cars"}}, []Rung{rung}, Capacity{Dedicated: Unlimited}, "")
	if err != nil {
		t.Fatal(err)
	}
	without, err := NewDocument([]ModelPlan{{Name: "cars"}}, []Rung{rungOf(1)}, Capacity{Dedicated: Unlimited}, "")
	if err != nil || with.Models[0].Need != without.Models[0].Need+1000 {
		t.Errorf("%v, need %d and %d", err, with.Models[0].Need, without.Models[0].Need)
	}
}
