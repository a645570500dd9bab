// Package prep turns a frame of any pixel format into a model's input tensor, in one
// pass: resize, pad, colour conversion, normalisation, layout and element type. It
// allocates nothing per frame and holds no state but tables made once per shape.
package prep
