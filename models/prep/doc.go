// Package prep turns a frame of any pixel format, or a region of it, into a model's input tensor, in one
// pass: crop, mirror, resize, pad, colour conversion, normalisation, layout and element type. It
// allocates nothing per frame and holds no state but tables made once per shape. Where cgo and the processor
// allow it (x86-64 with AVX2, arm64) the pass is C with vector code, else plain Go, with the same results to the bit.
package prep
