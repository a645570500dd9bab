//go:build !cgo || !linux

package picture

// Without cgo there is no libturbojpeg.
func turboPath() string { return "" }

type turbo struct{}

func (*turbo) close() {}

func (*turbo) planes(jpg []byte, w, h int, s sampling, y, cb, cr []byte, yStride, cStride int) verdict {
	return failed
}

func (*turbo) pixels(jpg []byte, w, h int, f pixelFormat, dst []byte, stride int) verdict {
	return failed
}
