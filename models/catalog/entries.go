package catalog

import (
	"io"

	"github.com/eyas-edge/eyas/models/catalog/face"
)

const (
	anyBuild    = "https://onnxruntime.ai/docs/build/"
	jetsonBuild = "https://onnxruntime.ai/docs/build/eps.html#nvidia-jetson-tx1tx2nanoxavierorin"
	jetsonIndex = "https://pypi.jetson-ai-lab.io"

	// Files of a version of an npm package never change; the repository has no release for each of them.
	faceAPI    = "https://cdn.jsdelivr.net/npm/@vladmandic/face-api@1.7.15/"
	yolox      = "https://github.com/Megvii-BaseDetection/YOLOX"
	yoloxFiles = yolox + "/releases/download/0.1.1rc0/"
	opencvZoo  = "https://github.com/opencv/opencv_zoo"

	// Git LFS files have an address of their own.
	opencvFiles = "https://media.githubusercontent.com/media/opencv/opencv_zoo/510899a2a0adb8c25957915fd030d66dbd553919/models/"

	ort        = "https://github.com/microsoft/onnxruntime"
	ortVersion = "1.30.0"
	ortFiles   = ort + "/releases/download/v" + ortVersion + "/onnxruntime-linux-"
)

// entries is the catalog. The sizes and hashes are those of the published files; a file that
// differs from them is refused.
var entries = []Entry{
	{
		Name: "face", Kind: Model, Version: "1.7.15",
		Description: "Tiny YOLOv2 face detector, 416x416, 0.19 million weights: faces only",
		License:     "MIT", LicenseURL: faceAPI + "LICENSE",
		Origin: "https://github.com/vladmandic/face-api",
		Files: []File{
			{URL: faceAPI + "model/" + face.ManifestName, Size: face.ManifestSize, SHA256: face.ManifestSHA256},
			{URL: faceAPI + "model/" + face.WeightsName, Size: face.WeightsSize, SHA256: face.WeightsSHA256},
		},
		convert: func(w io.Writer, files [][]byte) error { return face.Convert(w, files[0], files[1]) },
	},
	yoloxEntry("nano", "416x416, 0.9 million weights, AP 25.8: for small boards",
		3659407, "c789161ed43c8269fcd4e67c67eeeb4e80c622da2eb296a20bc6007bd18a0b7d"),
	yoloxEntry("tiny", "416x416, 5 million weights, AP 32.8",
		20219662, "427cc366d34e27ff7a03e2899b5e3671425c262ea2291f88bb942bc1cc70b0f7"),
	yoloxEntry("s", "640x640, 9 million weights, AP 40.5: for a GPU",
		35858002, "c5c2d13e59ae883e6af3b45daea64af4833a4951c92d116ec270d9ddbe998063"),
	{
		Name: "nanodet", Kind: Model, Version: "2022nov",
		Description: "NanoDet, COCO's 80 classes, 416x416, 0.9 million weights",
		License:     "Apache-2.0", LicenseURL: opencvZoo + "/blob/main/models/object_detection_nanodet/LICENSE",
		Origin: opencvZoo + "/tree/main/models/object_detection_nanodet",
		Files: []File{{
			URL:  opencvFiles + "object_detection_nanodet/object_detection_nanodet_2022nov.onnx",
			Size: 3800954, SHA256: "4b82da9944b88577175ee23a459dce2e26e6e4be573def65b1055dc2d9720186",
		}},
	},
	{
		Name: "picodet-s", Kind: Model, Version: "320_coco_lcnet",
		Description: "PP-PicoDet-S, COCO's 80 classes, 320x320, 1.2 million weights",
		License:     "Apache-2.0", LicenseURL: "https://github.com/PaddlePaddle/PaddleDetection/blob/release/2.6/LICENSE",
		Origin: "https://github.com/PaddlePaddle/PaddleDetection/tree/release/2.6/configs/picodet",
		Files: []File{{
			URL:  "https://paddledet.bj.bcebos.com/deploy/third_engine/picodet_s_320_coco_lcnet.onnx",
			Size: 4781217, SHA256: "f9c671308fe7c20e618c7e2b5f88cf7460443cfcb1ef4b628d00d95f0f79758e",
		}},
	},
	{
		Name: "fastestdet", Kind: Model, Version: "main",
		Description: "FastestDet, COCO's 80 classes, 352x352, 0.24 million weights: the fastest",
		License:     "BSD-3-Clause", LicenseURL: "https://github.com/dog-qiuqiu/FastestDet/blob/main/LICENSE",
		Origin: "https://github.com/dog-qiuqiu/FastestDet",
		// The repository has neither releases nor tags. Should the file change there, its sum refuses it.
		Files: []File{{
			URL:  "https://raw.githubusercontent.com/dog-qiuqiu/FastestDet/main/example/onnx-runtime/FastestDet.onnx",
			Size: 998169, SHA256: "31cb14c017fce347cb4c846ec62fdf00d76bb3beecdf4be21e7116ac67feb880",
		}},
	},
	ortEntry("cpu", "for the processor alone",
		File{
			URL: ortFiles + "x64-" + ortVersion + ".tgz", Platform: "linux/amd64",
			Size: 11306877, SHA256: "a5ed5a3cac51fbb2e90da632ae43d19212faaa20e76484e62bcb7c23ddb3b3fd",
		},
		File{
			URL: ortFiles + "aarch64-" + ortVersion + ".tgz", Platform: "linux/arm64",
			Size: 10269495, SHA256: "e16a27a8ed330bbc698df7330b0cf56e722f354e3bcc92118682c74ef3c3e3da",
		}),
	ortEntry("cuda12", "with CUDA and TensorRT for NVIDIA GPUs; needs CUDA 12 and cuDNN 9",
		File{
			URL: ortFiles + "x64-gpu_cuda12-" + ortVersion + ".tgz", Platform: "linux/amd64",
			SHA256: "f9886932ee7bb0b4d3fcab736a392d4ff5efaa0672b47f19f0cec03437cf64f1",
		}),
	ortEntry("cuda13", "with CUDA and TensorRT for NVIDIA GPUs; needs CUDA 13 and cuDNN 9",
		File{
			URL: ortFiles + "x64-gpu_cuda13-" + ortVersion + ".tgz", Platform: "linux/amd64",
			SHA256: "382d79133112388cf94ce5855789b7c9bef12bef76a08b6b277e5a317213adcd",
		}),
}

// yoloxEntry describes one of the models of the YOLOX release 0.1.1rc0. AP is what the authors
// state for COCO's validation pictures.
func yoloxEntry(size, about string, bytes int64, sum string) Entry {
	return Entry{
		Name: "yolox-" + size, Kind: Model, Version: "0.1.1rc0",
		Description: "YOLOX, COCO's 80 classes, " + about,
		License:     "Apache-2.0", LicenseURL: yolox + "/blob/0.1.1rc0/LICENSE",
		Origin: yolox + "/releases/tag/0.1.1rc0",
		Files:  []File{{URL: yoloxFiles + "yolox_" + size + ".onnx", Size: bytes, SHA256: sum}},
	}
}

func ortEntry(kind, about string, files ...File) Entry {
	return Entry{
		Name: "onnxruntime:" + kind, Kind: Runtime, Version: ortVersion,
		Description: "ONNX Runtime " + ortVersion + " " + about,
		License:     "MIT", LicenseURL: ort + "/blob/v" + ortVersion + "/LICENSE",
		Origin: ort + "/releases/tag/v" + ortVersion,
		Files:  files,
	}
}
