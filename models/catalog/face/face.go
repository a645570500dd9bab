// Package face turns the Tiny Face Detector of @vladmandic/face-api (MIT), a Tiny YOLOv2
// with depthwise-separable convolutions, into an ONNX model. The network is published as
// TensorFlow.js weights: a JSON manifest and one file of uint8 values with a scale and a
// minimum per tensor. The conversion is exact: each weight is value*scale + min in float64,
// rounded once to float32, as TensorFlow.js computes it.
//
// The model takes [batch,3,416,416] float32, RGB, (level - mean) / 255; it answers
// [batch,25,13,13]: 5 anchors x (x, y, w, h, objectness), all raw. The recipe and the
// anchors travel in the model's metadata under the key "eyas".
package face

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// The two files of the package's folder model/ and what they hold in version 1.7.15.
const (
	ManifestName   = "tiny_face_detector_model-weights_manifest.json"
	ManifestSize   = 3219
	ManifestSHA256 = "5d1af4849ac48d5b985f4a9b16010c512353ddd6fcc63d50fd0bc9e9e64296e5"

	WeightsName   = "tiny_face_detector_model.bin"
	WeightsSize   = 193321
	WeightsSHA256 = "b7503ce7df31039b1c43316a9b865cab6a70dd748cc602d3fa28b551503c3871"
)

// Input is the side of the square input in pixels, Cells that of the output grid.
const (
	Input = 416
	Cells = Input / 32
)

// recipe is what Eyas has to know to feed and to read the model. Names, anchors, mean and the
// overlap of 0.4 are those of the authors' TinyFaceDetector. They pad right and bottom; padding
// both sides is better: of the 22 faces in the package's six photos 21 score 0.4 or more, all but
// a profile (0.38), against 19. The padding's level is near the mean, which the network
// sees as nothing.
const recipe = `family: yolov2
imgsz: 416
resize: letterbox
pad: 114
channels: rgb
mean: [117.001, 114.697, 97.404]
std: [255, 255, 255]
anchors: [[1.603231, 2.094468], [6.041143, 7.080126], [2.882459, 3.518061], [4.266906, 5.178857], [9.041765, 10.66308]]
names: [face]
conf: 0.4
iou: 0.4
`

// Convert checks the two files against their SHA-256 and writes the ONNX model. The same
// files give the same bytes.
func Convert(w io.Writer, manifest, weights []byte) error {
	for _, f := range []struct {
		name string
		data []byte
		want string
	}{{ManifestName, manifest, ManifestSHA256}, {WeightsName, weights, WeightsSHA256}} {
		if sum := sha256.Sum256(f.data); hex.EncodeToString(sum[:]) != f.want {
			return fmt.Errorf("face: %s has SHA-256 %x, expected %s", f.name, sum, f.want)
		}
	}
	tensors, err := parse(manifest, weights)
	if err != nil {
		return fmt.Errorf("face: %w", err)
	}
	model, err := build(tensors)
	if err != nil {
		return fmt.Errorf("face: %w", err)
	}
	_, err = w.Write(model)
	return err
}
