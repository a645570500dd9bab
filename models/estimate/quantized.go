package estimate

// quantize fuses quantised operators.
func (g *graph) quantize() {}
