package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/eyas-edge/eyas/models/catalog/face"
)

const faceAPI = "@vladmandic/face-api"

// item is one file of an npm package and where it goes in .deps.
type item struct {
	from   string // below node_modules
	to     string // below .deps
	sha256 string
}

// libraries are the ONNX Runtime 1.30.0 libraries of npm's onnxruntime-node, by GOARCH.
var libraries = map[string]item{
	"amd64": {
		"onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1", "onnxruntime/libonnxruntime.so.1",
		"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
	},
	"arm64": {
		"onnxruntime-node/bin/napi-v6/linux/arm64/libonnxruntime.so.1", "onnxruntime/libonnxruntime.so.1",
		"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76",
	},
}

// photos are the package's own example pictures.
var photos = []item{
	photo("sample1.jpg", "8ecae4b267b2d3169e06e00c7dee97097aa2a94635d45216f7732a5f4943cb51"),
	photo("sample2.jpg", "7d2b60ae6f13bf30f422e04df87451081a02c83de469056f25afb44b7000c691"),
	photo("sample3.jpg", "8eb081c9efb14370fa94d9feab9e5fbeafd19a627491853a80c2bf67f7ffa936"),
	photo("sample4.jpg", "729efa5923061d40eb4ed5f267a18cc7b8ba6f852bb2757b16d8b7e4937476fc"),
	photo("sample5.jpg", "6d45095ebb182d8f975c0790e0e4eefd86fbb40609cf4b271776d92e12662938"),
	photo("sample6.jpg", "9baad80f9d5e306fb9b8c0913d44445f1e95848df317530efb03d0934c57ba87"),
}

func photo(name, sum string) item {
	return item{faceAPI + "/demo/" + name, "photos/" + name, sum}
}

// needed returns what this machine takes from npm's packages.
func needed() ([]item, error) {
	lib, ok := libraries[runtime.GOARCH]
	if runtime.GOOS != "linux" || !ok {
		return nil, fmt.Errorf("no ONNX Runtime is pinned for %s/%s: linux on amd64 and arm64 only", runtime.GOOS, runtime.GOARCH)
	}
	return append([]item{lib}, photos...), nil
}

// fromNPM installs hack/npm without running any script of its packages, copies what is
// needed and removes the rest, 290 MB with the libraries of other systems.
func fromNPM(ctx context.Context, root, deps string, items []item) error {
	dir := filepath.Join(root, "hack", "npm")
	modules := filepath.Join(dir, "node_modules")
	say("npm ci in %s (ONNX Runtime 1.30.0 and face-api 1.7.15, about 110 MB)", dir)
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	defer os.RemoveAll(modules)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci: %w", err)
	}
	for _, it := range items {
		data, err := os.ReadFile(filepath.Join(modules, filepath.FromSlash(it.from)))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != it.sha256 {
			return fmt.Errorf("%s: SHA-256 is %x, %s was pinned", it.from, sum, it.sha256)
		}
		if err := put(filepath.Join(deps, filepath.FromSlash(it.to)), data); err != nil {
			return err
		}
	}
	return convertFace(deps, filepath.Join(modules, filepath.FromSlash(faceAPI), "model"))
}

// convertFace makes models/face.onnx from the two files in dir, which face.Convert checks.
func convertFace(deps, dir string) error {
	manifest, err := os.ReadFile(filepath.Join(dir, face.ManifestName))
	if err != nil {
		return err
	}
	weights, err := os.ReadFile(filepath.Join(dir, face.WeightsName))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := face.Convert(&out, manifest, weights); err != nil {
		return err
	}
	return put(filepath.Join(deps, "models", "face.onnx"), out.Bytes())
}
