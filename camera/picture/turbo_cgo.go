//go:build cgo && linux

package picture

// #cgo LDFLAGS: -ldl
// #include "turbo.h"
import "C"

import (
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// turboPath loads libturbojpeg on the first call and returns its path, "" without one. Anything
// in EYAS_JPEG keeps it out, not only "go": what is misspelt is meant to be safe.
var turboPath = sync.OnceValue(func() string {
	if os.Getenv("EYAS_JPEG") != "" {
		return ""
	}
	name := C.eyas_turbo_load()
	if name == nil {
		return ""
	}
	path := C.GoString(name)
	if real, err := filepath.EvalSymlinks(path); err == nil { // its name holds the version
		path = real
	}
	return path
})

// turbo is a decoder of libturbojpeg with its accurate integer DCT. The zero value is ready; the library's part
// is made by the first picture and lasts until close.
type turbo struct {
	handle unsafe.Pointer
}

// open says whether there is a decoder.
func (t *turbo) open() bool {
	if t.handle == nil && turboPath() != "" {
		t.handle = C.eyas_turbo_open()
	}
	return t.handle != nil
}

func (t *turbo) close() {
	if t.handle != nil {
		C.eyas_turbo_close(t.handle)
		t.handle = nil
	}
}

// planes decodes to component planes, whose sizes are padded to whole units of subsampling.
func (t *turbo) planes(jpg []byte, w, h int, s sampling, y, cb, cr []byte, yStride, cStride int) verdict {
	if !t.open() {
		return failed
	}
	return verdict(C.eyas_turbo_planes(t.handle, first(jpg), C.ulong(len(jpg)), C.int(w), C.int(h), C.int(s),
		first(y), first(cb), first(cr), C.int(yStride), C.int(cStride)))
}

// pixels decodes to rows of pixels.
func (t *turbo) pixels(jpg []byte, w, h int, f pixelFormat, dst []byte, stride int) verdict {
	if !t.open() {
		return failed
	}
	return verdict(C.eyas_turbo_pixels(t.handle, first(jpg), C.ulong(len(jpg)), C.int(w), C.int(h), C.int(f),
		first(dst), C.int(stride)))
}

// first returns where C finds a slice.
func first(pix []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(pix)) }
