package catalog

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of an archive: the CUDA builds unpack to about a gigabyte in 300 entries.
const (
	maxUnpacked = 4 << 30
	maxEntries  = 10000
)

// extract unpacks the shared libraries and the licence texts of an ONNX Runtime release into dir,
// which is empty, and returns the names of the regular files. Everything lands in dir itself:
// an archive with an absolute path, with "..", or whose links leave their folder is refused whole.
func extract(r io.Reader, dir string) ([]string, error) {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: gz, N: maxUnpacked}
	archive := tar.NewReader(bounded)
	var names []string
	links := map[string]string{}
	for range maxEntries {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, link(dir, links)
		}
		if err != nil {
			if bounded.N == 0 {
				err = fmt.Errorf("it unpacks to more than %d bytes", int64(maxUnpacked))
			}
			return nil, err
		}
		if path.IsAbs(h.Name) || slices.Contains(strings.Split(h.Name, "/"), "..") {
			return nil, fmt.Errorf("the entry %q leaves the archive's folder", h.Name)
		}
		name, ok := wanted(h.Name)
		if !ok {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if err := unpack(filepath.Join(dir, name), archive); err != nil {
				return nil, err
			}
			names = append(names, name)
		case tar.TypeSymlink, tar.TypeLink:
			target := h.Linkname
			if h.Typeflag == tar.TypeLink { // named by its path in the archive
				target = strings.TrimPrefix(path.Clean(target), path.Dir(path.Clean(h.Name))+"/")
			}
			if !strings.HasPrefix(target, "lib") || target != path.Base(target) || target == name {
				return nil, fmt.Errorf("the link %q leads to %q, out of its folder", h.Name, h.Linkname)
			}
			links[name] = target
		}
	}
	return nil, fmt.Errorf("it has more than %d entries", maxEntries)
}

// wanted returns the file name of an entry that is needed: NAME/lib/libonnxruntime*.so* and the
// licence texts of NAME.
func wanted(entry string) (string, bool) {
	parts := strings.Split(path.Clean(entry), "/")
	base := parts[len(parts)-1]
	switch len(parts) {
	case 2:
		return base, base == "LICENSE" || base == "ThirdPartyNotices.txt"
	case 3:
		return base, parts[1] == "lib" && strings.HasPrefix(base, "libonnxruntime") && strings.Contains(base, ".so")
	}
	return "", false
}

// unpack writes one file; a second entry of the same name is refused.
func unpack(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// link makes the links once all files are there: no file was written through one. Each has to
// lead to an unpacked file in the end, and libonnxruntime.so has to be there.
func link(dir string, links map[string]string) error {
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	links[library] = "" // also when it is a file
	for name := range links {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("it holds no usable %s", name)
		}
	}
	return nil
}
