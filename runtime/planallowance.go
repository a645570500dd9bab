package runtime

import (
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// What a decoder process takes: ffmpeg 5.1, run as for a clip, has 23, 71 and 264 MiB of its own for H.264 of
// 640x480, 1920x1080 and 3840x2160 (RssAnon at its peak; 2 CPUs: it decodes as many frames at once as there are, and
// one more). Pages of its program are shared by all of them, and do not count.
const (
	childBase     = 15 << 20
	childPerPixel = 32
	childBasis    = "allowance for ffmpeg, measured with H.264 on x86 with 2 CPUs"
)

// What ONNX Runtime 1.30 takes on the CPU beside the plan, and the Go heap, after 20 frames of a 640x480 source with
// a warm cache: 6.0 to 10.4 and 10.2 to 12.6 MiB for one of seven asset models, 10.7 and 11.6 for two, 12.5 and 12.3
// for three. docs/memory.md has the command.
const (
	cpuEngine, cpuEngineModel = 5 << 20, 4 << 20
	goHeap, goHeapModel       = 12 << 20, 1 << 20
	cpuBasis                  = "allowance, measured on x86 with ONNX Runtime 1.30"
)

// gpuEngines are guesses of what a GPU provider takes: its context and the code of its kernels, and with TensorRT
// the engine of each model.
var gpuEngines = map[string]struct{ base, model int64 }{
	ort.EPCUDA:     {512 << 20, 64 << 20},
	ort.EPTensorRT: {512 << 20, 256 << 20},
}

// allowances returns what the library on a provider and the Go heap are given where nothing was run.
func allowances(ep string, models int) []memplan.Region {
	n := int64(models)
	engine := memplan.Region{Kind: memplan.Engine, Bytes: cpuEngine + n*cpuEngineModel, Basis: cpuBasis}
	if gpu, ok := gpuEngines[ep]; ok {
		engine.Bytes, engine.Basis = gpu.base+n*gpu.model, memplan.Allowance
	}
	return []memplan.Region{engine, {Kind: memplan.Go, Bytes: goHeap + n*goHeapModel, Basis: cpuBasis}}
}
