package ort

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"math"
	"reflect"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// This file holds every call from Go into shim.c.

// MaxRank is the most dimensions that an input or output may have.
const MaxRank = C.EYAS_MAX_RANK

// statusError converts and releases an OrtStatus; nil for success.
func statusError(st C.eyas_status) error {
	if st == nil {
		return nil
	}
	text := C.GoString(C.eyas_message(st))
	C.eyas_release_status(st)
	return errors.New(short(text))
}

// openLibrary loads the shared library at path. The handle stays open: whoever
// decides that it is the wrong one closes it.
func openLibrary(path string) (unsafe.Pointer, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var why *C.char
	handle := C.eyas_dlopen(p, &why)
	if handle == nil {
		defer C.free(unsafe.Pointer(why))
		return nil, errors.New(C.GoString(why))
	}
	return handle, nil
}

func closeLibrary(handle unsafe.Pointer) { C.dlclose(handle) }

// libraryVersion is empty if the library is not ONNX Runtime.
func libraryVersion(handle unsafe.Pointer) string {
	v := C.eyas_version(handle)
	if v == nil {
		return ""
	}
	return C.GoString(v)
}

// attach makes handle the library of all later calls.
func attach(handle unsafe.Pointer) bool { return C.eyas_attach(handle) != 0 }

// providers returns the names of the providers compiled into the library.
func providers() ([]string, error) {
	var names **C.char
	var n C.int
	if err := statusError(C.eyas_providers(&names, &n)); err != nil {
		return nil, err
	}
	defer C.eyas_release_providers(names, n)
	list := make([]string, 0, int(n))
	for _, name := range unsafe.Slice(names, int(n)) {
		list = append(list, C.GoString(name))
	}
	return list, nil
}

// trim gives free pages of the C heap back to the system.
func trim() { C.eyas_trim() }

// pointerIn returns the C pointer in the unexported field path of v, which is a
// pointer to a struct of the binding. Its C types are incomplete and belong to that
// package, so that only reflection passes them on.
func pointerIn(v any, path ...string) unsafe.Pointer {
	r := reflect.ValueOf(v)
	for _, name := range path {
		r = r.Elem().FieldByName(name)
	}
	return r.UnsafePointer()
}

// fixDimension gives the open dimensions of that name a size, for sessions of options.
func fixDimension(options *ort.SessionOptions, name string, size int) error {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return statusError(C.eyas_fix_dimension(pointerIn(options, "o"), cname, C.int64_t(size)))
}

// appendPlugin adds a device of a plugin provider to options; false if the plugin
// has no device of that number.
func appendPlugin(options *ort.SessionOptions, name string, device int, set map[string]string) (bool, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	keys, values := make([]*C.char, 0, len(set)+1), make([]*C.char, 0, len(set)+1)
	for k, v := range set {
		keys, values = append(keys, C.CString(k)), append(values, C.CString(v))
	}
	n := len(keys)
	defer func() {
		for i := range n {
			C.free(unsafe.Pointer(keys[i]))
			C.free(unsafe.Pointer(values[i]))
		}
	}()
	keys, values = append(keys, nil), append(values, nil) // so that there is an address to pass
	var found C.int
	err := statusError(C.eyas_append_plugin(pointerIn(options, "o"), cname, C.int(device),
		&keys[0], &values[0], C.size_t(n), &found))
	return found != 0, err
}

// describe lists the inputs or outputs of a session.
func describe(session unsafe.Pointer, output bool) ([]Info, error) {
	kind, word := C.int(0), "input"
	if output {
		kind, word = 1, "output"
	}
	var n C.size_t
	if err := statusError(C.eyas_count(session, kind, &n)); err != nil {
		return nil, err
	}
	list := make([]Info, 0, int(n))
	for i := range n {
		var c C.eyas_info
		err := statusError(C.eyas_describe(session, kind, i, &c))
		name := C.GoString(c.name)
		C.free(unsafe.Pointer(c.name))
		if err != nil {
			return nil, err
		}
		if c.kind != C.EYAS_KIND_TENSOR || c.rank > MaxRank {
			return nil, errors.New(word + " " + name + " is not a tensor of at most 8 dimensions")
		}
		info := Info{Name: name, Type: tensor.Type(c._type), Shape: make([]int, int(c.rank))}
		for d := range info.Shape {
			info.Shape[d] = int(max(c.dims[d], -1))
		}
		list = append(list, info)
	}
	return list, nil
}

// call is a set of bound tensors in C memory.
type call struct{ c *C.eyas_binding }

func newCall(session unsafe.Pointer, inputs, outputs int, own bool) (call, error) {
	var b call
	err := statusError(C.eyas_bind(session, C.size_t(inputs), C.size_t(outputs), flag(own), &b.c))
	return b, err
}

// bind hands t's memory to the library. The memory stays where it is and outlives
// the call; Go memory has to be pinned.
func (b call) bind(output bool, index int, name string, t *tensor.Tensor) error {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	kind := C.int(0)
	if output {
		kind = 1
	}
	var dims [MaxRank]C.int64_t
	for i, d := range t.Shape {
		dims[i] = C.int64_t(d)
	}
	return statusError(C.eyas_bind_tensor(b.c, kind, C.size_t(index), cname, unsafe.Pointer(unsafe.SliceData(t.Data)),
		C.size_t(t.Type.Bytes(t.Len())), &dims[0], C.size_t(len(t.Shape)), C.int(t.Type)))
}

// bindLater leaves output index to the library.
func (b call) bindLater(index int, name string) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	C.eyas_bind_later(b.c, C.size_t(index), cname)
}

// run runs the session once. It allocates no Go memory unless it fails.
func (b call) run() error { return statusError(C.eyas_run(b.c)) }

// view points t at what the last run put into output index.
func (b call) view(index int, t *tensor.Tensor) error {
	v := &unsafe.Slice(b.c.views, int(b.c.nout))[index]
	t.Shape, t.Data = t.Shape[:0], nil
	if v.rank > MaxRank {
		return fail(ErrRun, "output %s has more than 8 dimensions", t.Name)
	}
	for _, d := range v.dims[:v.rank] {
		t.Shape = append(t.Shape, int(d))
	}
	n := tensor.Elements(t.Shape)
	if n < 0 || n > math.MaxInt/16 {
		return fail(ErrRun, "output %s has the impossible shape %v", t.Name, t.Shape)
	}
	if n > 0 {
		t.Data = unsafe.Slice((*byte)(v.data), t.Type.Bytes(n))
	}
	return nil
}

// releaseOutputs frees the outputs that the library allocated.
func (b call) releaseOutputs() { C.eyas_release_outputs(b.c) }

func (b call) terminate() error { return statusError(C.eyas_terminate(b.c)) }

func (b call) close() {
	if b.c != nil {
		C.eyas_unbind(b.c)
	}
}
