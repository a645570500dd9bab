// Package catalog is the list of models and ONNX Runtime builds that Eyas can fetch, and
// their checked download. Only models with permissive licences are listed. Every file has
// a pinned SHA-256; the addresses are those of the authors' releases. Nothing is fetched
// unless Pull is called.
//
// Limits: Linux only; one file is at most a gigabyte, an unpacked archive four.
package catalog

import (
	"fmt"
	"io"
	"strings"
)

// Kind says what an entry is.
type Kind string

// The kinds of entries.
const (
	Model   Kind = "model"
	Runtime Kind = "onnxruntime" // a build of ONNX Runtime
)

// Entry is one thing that can be pulled.
type Entry struct {
	Name        string // what Pull takes, for example "yolox-nano" or "onnxruntime:cuda12"
	Kind        Kind
	Version     string // the authors' name of the release
	Description string
	License     string // SPDX identifier
	LicenseURL  string // where the authors state it
	Origin      string // the page that the files come from
	Files       []File

	// convert makes the model of files that are not ONNX, in their order; nil where the one file
	// is the model.
	convert func(w io.Writer, files [][]byte) error
}

// File is one file of an entry.
type File struct {
	URL      string
	Size     int64  // bytes; 0 where the authors do not state it: then the hash alone decides
	SHA256   string // lower-case hexadecimal
	Platform string // GOOS/GOARCH; empty for all
}

// List returns all entries, models first, in the order they are worth trying.
func List() []Entry { return append([]Entry(nil), entries...) }

// Lookup returns the entry of a name. It fails with the names there are.
func Lookup(name string) (Entry, error) {
	names := make([]string, len(entries))
	for i, e := range entries {
		if e.Name == name {
			return e, nil
		}
		names[i] = e.Name
	}
	return Entry{}, fmt.Errorf("%q is not in the catalog: use one of %s", name, strings.Join(names, ", "))
}

// On returns the files of a platform, GOOS/GOARCH. It fails where the authors publish none,
// with the way to get one.
func (e Entry) On(platform string) ([]File, error) {
	var files []File
	for _, f := range e.Files {
		if f.Platform == "" || f.Platform == platform {
			files = append(files, f)
		}
	}
	switch {
	case len(files) > 0:
		return files, nil
	case platform == "linux/arm64":
		return nil, fmt.Errorf("%s: no official build is published for %s: on a Jetson build it with "+
			"--build_shared_lib --use_cuda as %s says, or see NVIDIA's index %s, then use --ort PATH",
			e.Name, platform, jetsonBuild, jetsonIndex)
	}
	return nil, fmt.Errorf("%s: no official build is published for %s: build it as %s says, then use --ort PATH",
		e.Name, platform, anyBuild)
}

// Size returns the bytes to fetch for a platform, 0 where that is not known.
func (e Entry) Size(platform string) int64 {
	files, _ := e.On(platform)
	var n int64
	for _, f := range files {
		if f.Size == 0 {
			return 0
		}
		n += f.Size
	}
	return n
}
