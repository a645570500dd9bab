package sink

import eyas "github.com/eyas-edge/eyas/runtime"

// Sequence tells where the results of one picture end and those of the next begin. With several models
// a picture has several results, which follow each other in the order of the models' keys.
type Sequence struct {
	any           bool
	source, model string
	frame         uint64
}

// Begins says whether r is the first result of another picture. It is called once for each result,
// in order.
func (q *Sequence) Begins(r *eyas.Result) bool {
	// An earlier or equal model begins another picture, as when the same file is given twice.
	same := q.any && q.source == r.Source && q.frame == r.Frame && q.model < r.Model
	*q = Sequence{any: true, source: r.Source, model: r.Model, frame: r.Frame}
	return !same
}
