package ort

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// minMinor is the oldest usable version, 1.minMinor: the first that speaks the
// binding's API.
const minMinor = 24

// Library is the loaded library. There is one in a process.
type Library struct {
	path, version string
	providers     []string

	mu        sync.Mutex
	plugins   map[string]error // registered plugin libraries by path, with what came of it
	allocator *error           // what came of registering ours; nil before that
}

var (
	loadMu sync.Mutex
	loaded *Library
)

// Load loads ONNX Runtime from the shared library at path and switches its
// telemetry off. The library stays loaded for the life of the process: loading the
// same path again returns it, another path is an error. Errors are ErrLibrary.
//
// Load sets ORT_DISABLE_TELEMETRY, which stays set, and TMPDIR, which it puts back,
// so nothing else should read the environment in C meanwhile.
func Load(path string) (*Library, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: %v; name the library with --ort or run `eyas pull onnxruntime:cpu`", err)
	}
	loadMu.Lock()
	defer loadMu.Unlock()
	if loaded != nil {
		if loaded.path == real {
			return loaded, nil
		}
		return nil, fail(ErrLibrary, "onnx runtime: cannot load %s: the process already uses %s", real, loaded.path)
	}
	l, err := load(real)
	if err != nil {
		return nil, err
	}
	loaded = l
	return l, nil
}

// Path returns the library's file, with symbolic links resolved.
func (l *Library) Path() string { return l.path }

// Version returns the library's version, for example "1.30.0".
func (l *Library) Version() string { return l.version }

// Providers returns the execution providers compiled into the library, in its own
// names and order, for example "CPUExecutionProvider". Whether one really loads is
// known only once a session uses it.
func (l *Library) Providers() []string { return slices.Clone(l.providers) }

func load(path string) (l *Library, err error) {
	if err := checkELF(path); err != nil {
		return nil, err
	}
	restore, err := muteTelemetry()
	if err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: %v", err)
	}
	defer func() {
		if rerr := restore(); err == nil && rerr != nil {
			err = fail(ErrLibrary, "onnx runtime: %v", rerr)
		}
	}()
	handle, err := openLibrary(path)
	if err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: cannot load %s: %s", path, short(err.Error()))
	}
	version := libraryVersion(handle)
	if err := checkVersion(path, version); err != nil {
		closeLibrary(handle)
		return nil, err
	}
	if !attach(handle) {
		closeLibrary(handle)
		return nil, fail(ErrLibrary, "onnx runtime: %s (%s) does not speak API %d", path, version, minMinor)
	}
	ort.SetSharedLibraryPath(path)
	// Everything that is logged as an error is also returned as one; the log would
	// only put a second, longer text on the user's terminal.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: start %s: %s", path, short(err.Error()))
	}
	if err := ort.DisableTelemetry(); err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: %s: %s", path, short(err.Error()))
	}
	names, err := providers()
	if err != nil {
		return nil, fail(ErrLibrary, "onnx runtime: %s: %v", path, err)
	}
	return &Library{path: path, version: version, providers: names, plugins: map[string]error{}}, nil
}

// muteTelemetry prepares the environment for loading. The library reads
// ORT_DISABLE_TELEMETRY when it starts its environment; 1.30.0 then writes nothing.
// Builds that leave a file in TMPDIR even so find a directory of ours there, which
// restore removes. Where none can be made, they cannot leave a file either.
func muteTelemetry() (restore func() error, err error) {
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "eyas-ort-")
	if err != nil {
		return func() error { return nil }, nil
	}
	old, had := os.LookupEnv("TMPDIR")
	restore = func() error {
		err := os.Unsetenv("TMPDIR")
		if had {
			err = os.Setenv("TMPDIR", old)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	return restore, os.Setenv("TMPDIR", dir)
}

// machines maps GOARCH to the ELF machine whose libraries it loads.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkELF names what is wrong with a file that the loader would refuse: it says
// "no such file" for a library of another processor.
func checkELF(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return fail(ErrLibrary, "onnx runtime: %v", err)
	}
	if !st.Mode().IsRegular() {
		return fail(ErrLibrary, "onnx runtime: %s is not a file", path)
	}
	f, err := elf.Open(path)
	if err != nil {
		return fail(ErrLibrary, "onnx runtime: %s is not a shared library; name another with --ort or run `eyas pull onnxruntime:cpu`", path)
	}
	defer f.Close()
	if want, known := machines[goruntime.GOARCH]; known && f.Machine != want {
		return fail(ErrLibrary, "onnx runtime: %s is built for %s, this machine is %s; name another with --ort or run `eyas pull onnxruntime:cpu`",
			path, machineName(f.Machine), goruntime.GOARCH)
	}
	if f.Type != elf.ET_DYN {
		return fail(ErrLibrary, "onnx runtime: %s is not a shared library", path)
	}
	return nil
}

func machineName(m elf.Machine) string {
	for arch, machine := range machines {
		if machine == m {
			return arch
		}
	}
	return m.String()
}

// checkVersion refuses a library that is older than the binding.
func checkVersion(path, version string) error {
	if version == "" {
		return fail(ErrLibrary, "onnx runtime: %s is not ONNX Runtime; name another with --ort or run `eyas pull onnxruntime:cpu`", path)
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	ma, err1 := strconv.Atoi(major)
	mi, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil || ma != 1 || mi < minMinor {
		return fail(ErrLibrary, "onnx runtime: %s is version %s, needed is 1.%d or newer; run `eyas pull onnxruntime:cpu` or name another with --ort",
			path, fmt.Sprintf("%.20q", version), minMinor)
	}
	return nil
}
