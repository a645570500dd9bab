package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/internal/regular"
)

// Options of Pull; the zero value is ready.
type Options struct {
	Home     string                  // where to put it; it defaults to Home()
	Platform string                  // GOOS/GOARCH; it defaults to this machine's
	Client   *http.Client            // it defaults to one with time limits for connecting and answering
	BaseURL  string                  // a mirror: scheme and host go before the paths of the entries' addresses
	Progress func(done, total int64) // bytes of all files; total is 0 while it is not known

	wait  func(context.Context, time.Duration) error // between attempts; tests do not wait
	stall time.Duration                              // longest silence of a server; 0 for a minute
}

// Pull fetches an entry of the catalog and returns the paths of its files, the main one first:
// Home/models/NAME.onnx, or Home/onnxruntime/VERSION-KIND/libonnxruntime.so with what belongs to
// it. What is there and intact is not fetched again. A file beside the result states the licence.
//
// Only files with the catalog's SHA-256 are installed, whole or not at all; an interrupted
// download goes on where it ended. Two Pulls of the same entry at once are safe: the second waits
// and finds it there. The error is one line and wraps ctx's when that ended.
func Pull(ctx context.Context, name string, o Options) ([]string, error) {
	e, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	paths, err := pull(ctx, e, o)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", name, err)
	}
	return paths, nil
}

// Download fetches one file with a pinned hash to path, as Pull does it: checked, resumed, whole or
// not at all. Of o it uses Client, BaseURL and Progress. A file that is there and right is kept.
func Download(ctx context.Context, file File, path string, o Options) error {
	if sum, err := sumFile(path); err == nil && sum == file.SHA256 {
		return nil
	}
	f := newFetcher(o)
	if o.Progress != nil {
		f.progress = o.Progress
	}
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := f.fetch(ctx, file, part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func pull(ctx context.Context, e Entry, o Options) ([]string, error) {
	if o.Platform == "" {
		o.Platform = runtime.GOOS + "/" + runtime.GOARCH
	}
	files, err := e.On(o.Platform)
	if err != nil {
		return nil, err
	}
	if o.Home == "" {
		if o.Home, err = Home(); err != nil {
			return nil, err
		}
	}
	in := e.place(o.Home)
	if err := private(o.Home, in.dir); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(in.dir, "."+in.name+".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := in.sweep(); err != nil {
		return nil, err
	}
	if paths := in.intact(e, files); paths != nil {
		return paths, nil
	}
	parts, err := download(ctx, in, files, o)
	if err != nil {
		return nil, err
	}
	if err := in.install(e, files, parts); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	paths := in.intact(e, files)
	if paths == nil {
		return nil, fmt.Errorf("what was written to %s reads back differently: check the disk", in.dir)
	}
	return paths, nil
}

// download fetches all files of an entry into in's folder and returns their paths.
func download(ctx context.Context, in place, files []File, o Options) ([]string, error) {
	var before, total int64
	for _, f := range files {
		total += f.Size
	}
	f := newFetcher(o)
	var parts []string
	for _, file := range files {
		if o.Progress != nil {
			f.progress = func(done, size int64) {
				if len(files) > 1 {
					size = total // all of them have a size
				}
				o.Progress(before+done, size)
			}
		}
		// The hash is in the name: the rest of another release is never continued.
		part := filepath.Join(in.dir, "."+in.name+"-"+file.SHA256[:16]+".part")
		if err := f.fetch(ctx, file, part); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		before += file.Size
	}
	return parts, nil
}

// place is where an entry goes.
type place struct {
	kind Kind
	dir  string // Home/models or Home/onnxruntime
	name string // of the model without .onnx, or of the build's folder
}

func (e Entry) place(home string) place {
	if e.Kind == Runtime {
		_, kind, _ := strings.Cut(e.Name, ":")
		return place{e.Kind, filepath.Join(home, "onnxruntime"), e.Version + "-" + kind}
	}
	return place{e.Kind, filepath.Join(home, "models"), e.Name}
}

// install puts the fetched files in their place, which they reach whole, with the record.
func (in place) install(e Entry, files []File, parts []string) error {
	if in.kind == Runtime {
		return in.installArchive(e, files, parts[0])
	}
	model := filepath.Join(in.dir, in.name+".onnx")
	if e.convert == nil {
		if err := os.Rename(parts[0], model); err != nil {
			return err
		}
	} else if err := convert(e, parts, model); err != nil {
		return err
	}
	return in.record(in.dir, e, files, []string{in.name + ".onnx"})
}

func convert(e Entry, parts []string, model string) error {
	var inputs [][]byte
	for _, p := range parts {
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		inputs = append(inputs, data)
	}
	var out bytes.Buffer
	if err := e.convert(&out, inputs); err != nil {
		return err
	}
	return write(model, &out)
}

// installArchive unpacks a build beside its place and moves it there.
func (in place) installArchive(e Entry, files []File, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	tmp, err := os.MkdirTemp(in.dir, in.unpacking())
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	names, err := extract(f, tmp)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", files[0].URL, err)
	}
	if err := in.record(tmp, e, files, names); err != nil {
		return err
	}
	dir := filepath.Join(in.dir, in.name)
	if err := os.RemoveAll(dir); err != nil { // a damaged or an other platform's build
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return syncDir(in.dir)
}

// unpacking begins the names of the folders that this entry alone is unpacked in, under its lock.
func (in place) unpacking() string { return ".unpack-" + in.name + "-" }

// sweep removes what a Pull that was killed while it unpacked left behind, up to a gigabyte.
func (in place) sweep() error {
	entries, err := os.ReadDir(in.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), in.unpacking()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(in.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// record writes the statement of licence and origin that ends with the installed files' sums.
func (in place) record(dir string, e Entry, files []File, names []string) error {
	text := e.statement(files)
	for _, name := range names {
		sum, err := sumFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		text += sum + "  " + name + "\n"
	}
	return write(filepath.Join(dir, in.name+".txt"), strings.NewReader(text))
}

// statement is the record up to the sums; it changes whenever the entry's files do.
func (e Entry) statement(files []File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\nversion: %s\nlicence: %s, stated in %s\norigin: %s\n",
		e.Name, e.Description, e.Version, e.License, e.LicenseURL, e.Origin)
	for _, f := range files {
		fmt.Fprintf(&b, "fetched: %s, SHA-256 %s\n", f.URL, f.SHA256)
	}
	b.WriteString("\nSHA-256 of the files here:\n")
	return b.String()
}

// intact returns the installed paths if the record is this entry's and every file is as recorded,
// else nil.
func (in place) intact(e Entry, files []File) []string {
	dir := in.dir
	if in.kind == Runtime {
		dir = filepath.Join(in.dir, in.name)
	}
	data, err := regular.Read(filepath.Join(dir, in.name+".txt"), maxNote)
	if err != nil {
		return nil
	}
	sums, ok := strings.CutPrefix(string(data), e.statement(files))
	if !ok {
		return nil
	}
	var paths []string
	for line := range strings.Lines(sums) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || name != filepath.Base(name) {
			return nil
		}
		if got, err := sumFile(filepath.Join(dir, name)); err != nil || got != sum {
			return nil
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	if in.kind != Runtime {
		return paths
	}
	lib := filepath.Join(dir, library)
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == lib })
	if _, err := os.Stat(lib); err != nil || len(paths) == 0 {
		return nil
	}
	return append([]string{lib}, paths...)
}
