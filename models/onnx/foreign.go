package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// headBytes is how much of a file tells what it is: enough to reach the names in the first
// records of a PyTorch archive.
const headBytes = 4096

// foreign returns an error that names the file for what it is when its first bytes are those
// of something else than ONNX. path may be "".
func foreign(head []byte, path string) error {
	name := filepath.Base(path)
	if path == "" {
		name = "NAME"
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	export := fmt.Sprintf("export it with `yolo export model=%s.pt format=onnx`", stem)
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	at := func(offset int, magic string) bool {
		return len(head) >= offset && bytes.HasPrefix(head[offset:], []byte(magic))
	}
	switch {
	case len(head) == 0:
		return errors.New("the file is empty: download or export it again")
	case at(0, "PK\x03\x04") && (bytes.Contains(head, []byte("data.pkl")) || torchName(name)),
		at(0, "\x80\x02"), at(0, "\x80\x03"), at(0, "\x80\x04"), at(0, "\x80\x05"):
		return fmt.Errorf("this is a PyTorch checkpoint, not ONNX: %s", export)
	case at(0, "PK\x03\x04"):
		return errors.New("this is a zip archive, not ONNX: unpack it and name the .onnx file in it")
	case at(0, "\x1f\x8b"):
		return errors.New("this is a gzip file, not ONNX: unpack it first")
	case at(0, "ptrt"), at(0, "ftrt"), at(2, "\x00\x00{\""): // Ultralytics puts its metadata, with a length, in front
		return fmt.Errorf("this is a TensorRT engine, which fits one GPU and one version only: use the ONNX file, %s", export)
	case at(4, "TFL3"):
		return fmt.Errorf("this is a TensorFlow Lite model, not ONNX: %s", export)
	case at(4, "ORTM"):
		return errors.New("this is ONNX Runtime's own .ort format, tied to a version and a machine: use the .onnx file that it was made from")
	case bytes.HasPrefix(text, []byte("version https://git-lfs")):
		return errors.New("this is a Git LFS pointer, not the model itself: run `git lfs pull` where it was cloned")
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return errors.New("this is a web page, not a model: download the file itself, not the page that shows it")
	case bytes.HasPrefix(text, []byte("<?xml")), bytes.HasPrefix(text, []byte("<net")):
		return fmt.Errorf("this is XML, perhaps an OpenVINO model, not ONNX: %s", export)
	case at(0, "7767517"):
		return fmt.Errorf("this is an ncnn model, not ONNX: %s", export)
	case at(4, "\x00\x00\x00\x00{\""):
		return errors.New("this is a safetensors file, weights without a graph: export the model that it belongs to with format=onnx")
	case at(0, "\x89HDF"):
		return errors.New("this is a Keras (HDF5) file, not ONNX: convert it with `python -m tf2onnx.convert`")
	case at(0, "\xff\xd8\xff"), at(0, "\x89PNG"):
		return errors.New("this is a picture, not a model: give the model first")
	case head[0] < 8, head[0]&7 != 0 && head[0]&7 != 2:
		return errNotONNX // no field of a ModelProto begins so: large files of other kinds are not read
	}
	return nil
}

// byName is for a file whose bytes say nothing: its name may.
func byName(path string) error {
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	what := "this is no ONNX file"
	switch strings.ToLower(filepath.Ext(path)) {
	case ".engine", ".plan", ".trt":
		what = "this looks like a TensorRT engine, which fits one GPU and one version only"
	case ".pb":
		what = "this looks like a TensorFlow graph, not ONNX"
	case ".rknn", ".hef", ".bin", ".caffemodel", ".pdmodel", ".pdiparams":
		what = "this looks like a model of another runtime, not ONNX"
	}
	return fmt.Errorf("%s: export the model with `yolo export model=%s.pt format=onnx`, or download it again", what, stem)
}

func torchName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".pt", ".pth", ".torchscript":
		return true
	}
	return false
}
