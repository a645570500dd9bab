package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// External says where in the model's folder the data lies.
type External struct {
	Location       string // relative to the model's folder
	Offset, Length int64  // bytes

	dir string
}

// external reads the external_data entries of a tensor and checks them against the file
// that they name. os.Root keeps the file inside the folder, symbolic links included.
func (r *reader) external(t *Initializer, msg []byte) error {
	e := &External{dir: r.dir}
	length := int64(-1)
	err := each(msg, func(f field) error {
		if !f.is(13) {
			return nil
		}
		key, value, err := entry(f.val)
		if err != nil {
			return err
		}
		switch key {
		case "location":
			e.Location = value
		case "offset":
			e.Offset, err = strconv.ParseInt(value, 10, 64)
		case "length":
			length, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("tensor %.60q has an external %.60s of %.60q, which is no number: export the model again", t.Name, key, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.Type.Bits() == 0 {
		return fmt.Errorf("tensor %.60q keeps %s in external data, which ONNX does not allow: export the model again", t.Name, t.Type)
	}
	size, err := r.externalSize(e.Location)
	if err != nil {
		return err
	}
	need := int64(t.Type.Bytes(t.Elements()))
	if length < 0 { // the key is optional
		length = need
	}
	e.Length = length
	if need != length {
		return fmt.Errorf("tensor %.60q is %s%v and takes %d bytes, its external data has %d: export the model again",
			t.Name, t.Type, t.Dims, need, length)
	}
	if e.Offset < 0 || length > size || e.Offset > size-length {
		return fmt.Errorf("tensor %.60q needs bytes %d to %d of external data %s, which has %d bytes: copy the whole file beside the model",
			t.Name, e.Offset, uint64(e.Offset)+uint64(length), e.Location, size)
	}
	t.External = e
	return nil
}

// externalSize returns the size of the external file at location.
func (r *reader) externalSize(location string) (int64, error) {
	if size, ok := r.ext[location]; ok {
		return size, nil
	}
	if r.dir == "" {
		return 0, fmt.Errorf("the weights lie in another file (%.60q): open the model from its folder", location)
	}
	// ONNX Runtime reads memory, not a file, for a location with this tag.
	if !filepath.IsLocal(location) || location == "." || strings.Contains(location, "_ORT_MEM_ADDR_") {
		return 0, fmt.Errorf("external data %.60q does not lie inside the model's folder: refused; export the model again with the data beside it", location)
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	info, err := root.Stat(location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("external data %.60q is missing: copy it from where the model came from, into the same folder", location)
	case err != nil:
		return 0, fmt.Errorf("external data %.60q cannot be used, it has to be a file inside the model's folder: %w", location, err)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("external data %.60q is no regular file: copy the data beside the model", location)
	}
	r.ext[location] = info.Size()
	return info.Size(), nil
}

func (e *External) read() ([]byte, error) {
	f, err := os.OpenInRoot(e.dir, e.Location)
	if err != nil {
		return nil, fmt.Errorf("external data %.60q: %w", e.Location, err)
	}
	defer f.Close()
	// The size was checked when the model was read; it may have changed, and nothing is
	// allocated for bytes that are not there.
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("external data %.60q: %w", e.Location, err)
	}
	if size := info.Size(); !info.Mode().IsRegular() || e.Length > size || e.Offset > size-e.Length || e.Length > math.MaxInt {
		return nil, fmt.Errorf("external data %.60q has changed since the model was opened: open it again", e.Location)
	}
	data := make([]byte, e.Length)
	if _, err := io.ReadFull(io.NewSectionReader(f, e.Offset, e.Length), data); err != nil {
		return nil, fmt.Errorf("external data %.60q: %w", e.Location, err)
	}
	return data, nil
}

// weightBytes returns the bytes of a tensor's data without reading it.
func (t *Initializer) weightBytes() int64 {
	if t.Type == tensor.String || t.Type.Bits() == 0 {
		return int64(len(t.msg))
	}
	return int64(t.Type.Bytes(t.Elements()))
}
