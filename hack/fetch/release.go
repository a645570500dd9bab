package main

import (
	"context"
	"os"
	"path"
	"path/filepath"

	"github.com/eyas-edge/eyas/models/catalog"
)

// photoSource is where the photos of the npm package lie without npm, at the version of package-lock.json: the
// files of a published version never change, and their sums are those in npm.go.
const photoSource = "https://cdn.jsdelivr.net/npm/@vladmandic/face-api@1.7.15/demo/"

// fromReleases takes everything from the pages that the catalog names.
func fromReleases(ctx context.Context, deps string) error {
	lib, err := pull(ctx, deps, "onnxruntime:cpu")
	if err != nil {
		return err
	}
	if err := alias(deps, lib); err != nil {
		return err
	}
	if _, err := pull(ctx, deps, "face"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(deps, "photos"), 0o755); err != nil {
		return err
	}
	for _, p := range photos {
		file := catalog.File{URL: photoSource + path.Base(p.to), SHA256: p.sha256}
		say("%s", file.URL)
		if err := catalog.Download(ctx, file, filepath.Join(deps, filepath.FromSlash(p.to)), catalog.Options{}); err != nil {
			return err
		}
	}
	return nil
}

// alias gives the library of a release, relative to deps, the name that npm's has.
func alias(deps, lib string) error {
	target, err := filepath.Rel("onnxruntime", lib)
	if err != nil {
		return err
	}
	name := filepath.Join(deps, "onnxruntime", "libonnxruntime.so.1")
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(target, name)
}

// pull fetches an entry of the catalog into deps and returns its main file relative to it.
func pull(ctx context.Context, deps, name string) (string, error) {
	entry, err := catalog.Lookup(name)
	if err != nil {
		return "", err
	}
	say("%s from %s, licence %s", name, entry.Origin, entry.License)
	home, err := filepath.Abs(deps)
	if err != nil {
		return "", err
	}
	decile := int64(0)
	paths, err := catalog.Pull(ctx, name, catalog.Options{Home: home, Progress: func(done, total int64) {
		if total > 1<<20 && done*10/total > decile {
			decile = done * 10 / total
			say("%s: %d %% of %d MB", name, decile*10, total>>20)
		}
	}})
	if err != nil {
		return "", err
	}
	return filepath.Rel(home, paths[0])
}
