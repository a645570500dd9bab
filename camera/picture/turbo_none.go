//go:build !cgo || !linux

package picture

import "image"

// Without cgo there is no libturbojpeg.
func turboPath() string { return "" }

func (f *jpegFile) turbo() (m image.Image, clean bool) { return nil, false }
