// Package doctor finds out what a machine can do for Eyas, and says what to do about what is missing.
// It changes nothing.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/eyas-edge/eyas/camera/picture"
	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/internal/shown"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/catalog"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Status of a finding.
type Status string

// Error means that Eyas cannot do its job; Warn that it can, but not as it should.
const (
	OK    Status = "ok"
	Warn  Status = "warning"
	Error Status = "error"
)

// Finding is one thing that was looked at.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"` // what to do about it

	more []string // further lines of the text
}

// Report is all findings.
type Report struct {
	Findings []Finding `json:"findings"`
	Cameras  []Camera  `json:"cameras"` // what the findings about cameras stand on
}

// Failed says whether a finding is an error.
func (r *Report) Failed() bool {
	for _, f := range r.Findings {
		if f.Status == Error {
			return true
		}
	}
	return false
}

// JSON writes the report as one document.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Status, f.Name, shown.Text(f.Found))
		for _, line := range f.more {
			fmt.Fprintf(t, "\t\t%s\n", shown.Text(line))
		}
		if f.Do != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", shown.Text(f.Do))
		}
	}
	return t.Flush()
}

// Run looks at the machine below root ("/") and at the ONNX Runtime library that the option --ort would
// choose. The library is loaded to see which execution providers work.
func Run(ctx context.Context, root, ortPath string) *Report {
	r := &Report{}
	gpu := machine.NVIDIA(root)
	r.system(root, gpu)
	r.library(ortPath, gpu)
	r.memory(root)
	r.cache()
	r.pictures()
	r.tools(ctx)
	r.cameras(v4l2.At(root))
	r.models()
	return r
}

func (r *Report) add(name string, s Status, found, do string) {
	r.Findings = append(r.Findings, Finding{Name: name, Status: s, Found: found, Do: do})
}

func (r *Report) system(root string, gpu machine.GPU) {
	s := machine.ReadSystem(root)
	parts := []string{s.OS + "/" + s.Arch}
	for _, p := range []string{s.Distribution, s.Board} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if s.Kernel != "" {
		parts = append(parts, "kernel "+s.Kernel)
	}
	if s.Container {
		parts = append(parts, "in a container")
	}
	r.add("system", OK, strings.Join(parts, ", "), "")

	cpu := machine.ReadCPU(root)
	found := fmt.Sprintf("%d allowed", cpu.Allowed)
	if cpu.Why != "" {
		found += " by " + cpu.Why
	}
	if cpu.Model != "" {
		found += ", " + cpu.Model
	}
	r.add("cpu", OK, found, "")
	if len(cpu.Features) > 0 {
		r.add("cpu features", OK, strings.Join(cpu.Features, " "), "")
	}
	if gpu.Present {
		name := strings.Join(gpu.Names, ", ")
		if gpu.Tegra {
			name = "integrated (Jetson) " + gpu.Release
		}
		if gpu.Driver != "" {
			name += ", driver " + gpu.Driver
		}
		r.add("nvidia gpu", OK, strings.TrimSpace(name), "")
	}
}

// library tries the library and each provider that it names.
func (r *Report) library(path string, gpu machine.GPU) {
	found, err := ort.Find(path)
	if err != nil {
		r.add("onnxruntime", Error, err.Error(), "eyas pull onnxruntime:cpu, or name one with --ort or EYAS_ORT_LIB")
		return
	}
	l, err := ort.Load(found.Path)
	if err != nil {
		r.add("onnxruntime", Error, err.Error(), "eyas pull onnxruntime:cpu, or name another with --ort or EYAS_ORT_LIB")
		return
	}
	r.add("onnxruntime", OK, fmt.Sprintf("%s at %s (%s)", l.Version(), l.Path(), found.Why), "")
	cuda := false
	for _, ep := range []string{"cpu", "cuda", "tensorrt"} {
		switch err := try(l, ep); {
		case err == nil:
			r.add("ep "+ep, OK, "works", "")
			cuda = cuda || ep != "cpu"
		case ep == "cpu":
			r.add("ep cpu", Error, err.Error(), "use another ONNX Runtime build")
		case gpu.Present:
			r.add("ep "+ep, Warn, err.Error(), "")
		}
	}
	if gpu.Present && !cuda {
		do := "eyas pull onnxruntime:cuda12 (or cuda13, as your CUDA is)"
		if gpu.Tegra {
			do = "install NVIDIA's ONNX Runtime build for your JetPack, then name it with --ort: see docs/engine.md"
		}
		r.add("gpu use", Error, "there is an NVIDIA GPU, and this ONNX Runtime library cannot use it", do)
	}
}

// try runs a model of one node on a provider: only a run proves that it is there.
func try(l *ort.Library, ep string) error {
	b := onnx.NewBuilder("probe", 13)
	x := b.Input("x", tensor.Float32, 1)
	b.Output(b.Node("Neg", []string{x}), tensor.Float32, 1)
	model, err := b.Bytes()
	if err != nil {
		return err
	}
	s, err := l.Open("probe", model, ort.Options{EP: ep, Threads: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := ort.NewTensor("x", tensor.Float32, 1)
	if err != nil {
		return err
	}
	defer ort.FreeTensor(in)
	run, err := s.Bind([]*tensor.Tensor{in}, make([]*tensor.Tensor, 1))
	if err != nil {
		return err
	}
	defer run.Close()
	return run.Run()
}

func (r *Report) memory(root string) {
	m := machine.ReadMemory(root)
	found := fmt.Sprintf("%s available of %s", mib(m.Available), mib(m.Total))
	if m.Limit > 0 {
		found += fmt.Sprintf(", control group limit %s with %s used", mib(m.Limit), mib(m.Used))
	}
	if m.Usable() < 256<<20 {
		r.add("memory", Warn, found, "less than 256 MiB can be used: close other programs or raise the limit")
	} else {
		r.add("memory", OK, found, "")
	}
	switch l := machine.ReadLocked(); {
	case !l.Known:
		r.add("locked memory", Warn, "unknown", "")
	case l.Unlimited:
		r.add("locked memory", OK, "no limit", "")
	case l.Soft < 64<<20:
		r.add("locked memory", Warn, mib(l.Soft)+" may be locked",
			"to keep weights from being swapped out raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit")
	default:
		r.add("locked memory", OK, mib(l.Soft)+" may be locked", "")
	}
}

// cache says where optimised models and plans are kept. It makes nothing.
func (r *Report) cache() {
	const off = "without a cache every start optimises its models anew: "
	dir, err := places.Here().Cache()
	if err != nil {
		r.add("cache", Warn, "no place for it", off+err.Error())
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add("cache", OK, dir+", not made yet", "")
	case err != nil:
		r.add("cache", Warn, dir, off+err.Error())
	case !info.IsDir():
		r.add("cache", Warn, dir+" is not a folder", off+"remove it, or name another place with EYAS_HOME")
	case info.Mode().Perm()&0o022 != 0:
		r.add("cache", Warn, dir+" can be written by others", off+"empty it and chmod 700 it")
	default:
		r.add("cache", OK, dir, "")
	}
}

func (r *Report) tools(ctx context.Context) {
	for _, t := range machine.Tools(ctx) {
		switch {
		case t.Path != "":
			r.add(t.Name, OK, strings.TrimSpace(t.Path+" "+t.Version), "")
		case t.Name == "ffmpeg":
			r.add(t.Name, Warn, "not installed: clips cannot be opened", "apt-get install ffmpeg")
		}
	}
}

// pictures says which JPEG decoder is in use: quantised models see the difference.
func (r *Report) pictures() {
	if d := picture.JPEGDecoder(); d != "go" {
		r.add("jpeg", OK, d, "")
		return
	}
	r.add("jpeg", Warn, "Go's decoder: slower, and a quantised model may find a box more or less than elsewhere", "apt-get install libturbojpeg0")
}

func (r *Report) models() {
	if path, ok := catalog.Find("face"); ok {
		r.add("default model", OK, path, "")
		return
	}
	r.add("default model", Warn, "face is not there: eyas run needs -m", "eyas pull face")
}

func mib(n uint64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
