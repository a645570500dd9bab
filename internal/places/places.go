// Package places knows the folders that Eyas looks into: the one of pulled models and libraries, the
// cache, those of the rings' sockets and of claims on memory, and Eyas' own source tree with the fetched files of development. It creates nothing.
package places

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// modulePath is the first line of the go.mod that marks Eyas' source tree.
const modulePath = "module github.com/eyas-edge/eyas"

// Surroundings are what the places depend on.
type Surroundings struct {
	Exe string              // the program's file, absolute and without symbolic links; "" if not known
	Wd  string              // the working directory; "" if not known
	Env func(string) string // the environment
}

// Here returns the surroundings of this process.
func Here() Surroundings {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		exe = ""
	}
	wd, err := os.Getwd()
	if err != nil {
		wd = ""
	}
	return Surroundings{Exe: exe, Wd: wd, Env: os.Getenv}
}

// Home returns the absolute path of the folder of models and libraries: $EYAS_HOME, else
// $XDG_DATA_HOME/eyas, else ~/.local/share/eyas. A relative EYAS_HOME counts from the working
// directory, as a shell would read it; the specification ignores a relative XDG_DATA_HOME.
func (s Surroundings) Home() (string, error) {
	if dir, err := s.own(); dir != "" || err != nil {
		return dir, err
	}
	if dir := s.Env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "eyas"), nil
	}
	if dir := s.Env("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "share", "eyas"), nil
	}
	return "", errors.New("no home directory is known: set EYAS_HOME to a folder for models and libraries")
}

// Cache returns the absolute path of the folder of what can be made again: cache in $EYAS_HOME, else the
// $CACHE_DIRECTORY that systemd made for a service, else $XDG_CACHE_HOME/eyas, else ~/.cache/eyas.
func (s Surroundings) Cache() (string, error) {
	if dir, err := s.own(); err != nil {
		return "", err
	} else if dir != "" {
		return filepath.Join(dir, "cache"), nil
	}
	// Programs inherit the variable from whatever service started them: only a folder that has our name is
	// ours. The list has one entry for each CacheDirectory= of the unit.
	for dir := range strings.SplitSeq(s.Env("CACHE_DIRECTORY"), ":") {
		if filepath.IsAbs(dir) && filepath.Base(dir) == "eyas" {
			return filepath.Clean(dir), nil
		}
	}
	if dir := s.Env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "eyas"), nil
	}
	if dir := s.Env("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".cache", "eyas"), nil
	}
	return "", errors.New("no home directory is known: set EYAS_HOME to a folder for models and caches")
}

// Rings returns the absolute path of the folder of the rings' sockets: run/rings in $EYAS_HOME, else
// $XDG_RUNTIME_DIR/eyas/rings, else that of a service, /run/eyas/rings.
func (s Surroundings) Rings() (string, error) { return s.run("rings") }

// Claims returns the absolute path of the folder in which processes make their plans known: run/claims in $EYAS_HOME,
// else $XDG_RUNTIME_DIR/eyas/claims, else that of a service, /run/eyas/claims.
func (s Surroundings) Claims() (string, error) { return s.run("claims") }

// run returns the absolute path of a folder of what lives as long as processes do.
func (s Surroundings) run(name string) (string, error) {
	if dir, err := s.own(); err != nil {
		return "", err
	} else if dir != "" {
		return filepath.Join(dir, "run", name), nil
	}
	if dir := s.Env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "eyas", name), nil
	}
	return filepath.Join("/run/eyas", name), nil
}

// own returns the absolute path of $EYAS_HOME, "" if it is not set.
func (s Surroundings) own() (string, error) {
	dir := s.Env("EYAS_HOME")
	switch {
	case dir == "":
		return "", nil
	case filepath.IsAbs(dir):
		return filepath.Clean(dir), nil
	case s.Wd == "":
		return "", errors.New("the working directory is not known: set EYAS_HOME to an absolute path")
	}
	return filepath.Join(s.Wd, dir), nil
}

// SourceTree returns the root of Eyas' source tree, "" if there is none: the one that the program
// lies in (bin/eyas). `go run` and `go test` build outside of it, so that for their programs the
// working directory leads to it. An installed eyas ignores the working directory: it must not run code
// from wherever it happens to be started.
func (s Surroundings) SourceTree() string {
	if s.Exe == "" {
		return ""
	}
	if root := rootAbove(filepath.Dir(s.Exe)); root != "" {
		return root
	}
	if strings.Contains(s.Exe, "/go-build") {
		return rootAbove(s.Wd)
	}
	return ""
}

// rootAbove returns the nearest source tree that dir lies in.
func rootAbove(dir string) string {
	for filepath.IsAbs(dir) {
		if marked(dir) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}

func marked(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n') // a last line ends without one
	return strings.TrimSpace(line) == modulePath
}
