//go:build !cgo || !(amd64 || arm64)

package prep

// vector is the C twin, which this build lacks.
type vector struct{}

func vectorSupported() bool { return false }

func newVector(*Recipe, int, output) vector { return vector{} }

func (*vector) prepare(*Filler) {}

func (*vector) bind(*source) {}

func (*vector) fill(*Filler, *band, int, int) {}
