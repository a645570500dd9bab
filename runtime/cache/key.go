package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/eyas-edge/eyas/internal/fserr"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Key names an entry by everything that its content depends on.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// NewKey returns the key of a list of facts and of this package's format. Their borders count: ("ab",
// "c") and ("a", "bc") are different keys. It has to be given everything that changes the content.
func NewKey(facts ...string) Key {
	h := sha256.New()
	fact(h, magic+strconv.Itoa(version))
	for _, f := range facts {
		fact(h, f)
	}
	return Key(h.Sum(nil))
}

// fact adds a text with its length in front.
func fact(h hash.Hash, text string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
	h.Write(n[:]) // a hash never fails
	io.WriteString(h, text)
}

// WeightsKey returns the key of a model as the library optimises it on this machine. sum is HashModel's; facts are
// what else changes the file: Dimensions of the ort.Options.Fixed that it is built with. No other ort.Options are: SaveORT
// always optimises for the CPU, in one way, and whoever changes that way raises this package's version.
func WeightsKey(l *ort.Library, sum Digest, facts ...string) Key {
	return NewKey(append([]string{"weights", string(sum[:]), Engine(l)}, facts...)...)
}

// Dimensions returns fixed dimensions as facts.
func Dimensions(fixed map[string]int) []string {
	facts := make([]string, 0, len(fixed))
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		facts = append(facts, fmt.Sprintf("%s=%d", name, fixed[name]))
	}
	return facts
}

// Engine returns what ONNX Runtime's optimisation depends on beside the model: the library's
// version and file, and the processor.
func Engine(l *ort.Library) string {
	// Builds of one version may differ in their kernels. Size and time tell them apart without a read of
	// 30 MB at every start.
	file := "unknown"
	if info, err := os.Stat(l.Path()); err == nil {
		file = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	}
	cpu := machine.ReadCPU("/")
	return strings.Join([]string{"onnxruntime", l.Version(), file, goruntime.GOARCH, cpu.Model, strings.Join(cpu.Features, ",")}, "\n")
}

// HashModel returns a hash over the bytes of the model's file and of the files with external data
// that it names, in the order of their names. Files are read as they are now.
func HashModel(m *onnx.Model) (Digest, error) {
	if m.Path == "" {
		return Digest{}, errors.New("cache: a model that comes from no file has no key")
	}
	h := sha256.New()
	f, err := regular.Open(m.Path)
	if err == nil {
		err = hashFile(h, f)
	}
	if err != nil {
		return Digest{}, fmt.Errorf("hash %s: %w", m.Path, fserr.Bare(err))
	}
	if err := hashExternal(h, filepath.Dir(m.Path), external(m)); err != nil {
		return Digest{}, fmt.Errorf("hash %s: %w", m.Path, err)
	}
	return Digest(h.Sum(nil)), nil
}

// hashExternal adds the names and digests of files in the folder dir.
func hashExternal(h hash.Hash, dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		fact(h, name)
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
		if err == nil {
			err = hashFile(h, f)
		}
		if err != nil {
			return fmt.Errorf("external data %.60q: %w", name, fserr.Bare(err))
		}
	}
	return nil
}

// hashFile adds the digest of a file and closes it.
func hashFile(h hash.Hash, f *os.File) error {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("is not a file")
	}
	d, err := digestFile(f, info.Size())
	h.Write(d[:])
	return err
}

// external returns the sorted names of the files with external data that a model names.
func external(m *onnx.Model) []string {
	found := make(map[string]struct{})
	add := func(t *onnx.Initializer) {
		if t != nil && t.External != nil {
			found[filepath.Clean(t.External.Location)] = struct{}{}
		}
	}
	graph := func(g *onnx.Graph) {
		for i := range g.Initializers {
			add(&g.Initializers[i])
		}
	}
	graph(m.Graph)
	for n := range m.Nodes() {
		for i := range n.Attrs {
			a := &n.Attrs[i]
			add(a.T)
			if a.G != nil {
				graph(a.G)
			}
			for _, g := range a.Graphs {
				graph(g)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
