package memplan

import "testing"

func TestPlanAddsUpByKindAndOwner(t *testing.T) {
	var p Plan
	p.Add(Weights, "a", 100)
	p.Add(Tensors, "a", 10)
	p.Add(Tensors, "b", 20)
	p.Add(Tensors, "a", 5)
	if len(p.Regions) != 3 {
		t.Errorf("%d regions, want 3: the second block of an owner joins the first", len(p.Regions))
	}
	if got := p.Of(Tensors); got != 35 {
		t.Errorf("tensors take %d bytes, want 35", got)
	}
	if got := p.Total(); got != 135 {
		t.Errorf("total is %d bytes, want 135", got)
	}
}
