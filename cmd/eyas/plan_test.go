package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/onnx"
)

// tinyModel writes a model of the YOLOv8 form with any batch size, which gives nothing that is right, and returns
// its path.
func tinyModel(t *testing.T, name string, side int) string {
	t.Helper()
	b := onnx.NewBuilder(name, 13)
	b.Meta("task", "detect")
	b.Meta("names", "{0: 'a', 1: 'b'}")
	x := b.Input("images", tensor.Float32, -1, 3, side, side)
	var levels []string
	cells := 0
	for _, stride := range []int{8, 16, 32} {
		w := b.Float32(fmt.Sprint("w", stride), []int{6, 3, stride, stride}, make([]float32, 6*3*stride*stride))
		conv := b.Node("Conv", []string{x, w}, onnx.Ints("strides", int64(stride), int64(stride)))
		n := side / stride * side / stride
		cells += n
		levels = append(levels, b.Node("Reshape", []string{conv, b.Int64(fmt.Sprint("s", stride), 0, 6, int64(n))}))
	}
	raw := b.Node("Sigmoid", []string{b.Node("Concat", levels, onnx.Int("axis", 2))})
	scale := b.Float32("scale", []int{1, 6, 1}, []float32{64, 64, 32, 32, 1, 1})
	b.Output(b.Node("Mul", []string{raw, scale}), tensor.Float32, -1, 6, cells)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".onnx")
	write(t, path, string(data))
	return path
}

// estimated are the arguments of an estimate that is the same on every machine.
func estimated(args ...string) []string {
	return append([]string{"plan", "--estimate", "--cpu", "x86", "--threads", "1", "--budget", "1GiB"}, args...)
}

func TestPlanTable(t *testing.T) {
	if os.Getpagesize() != 4096 {
		t.Skip("the table is for pages of 4096 bytes")
	}
	t.Setenv("EYAS_ORT_LIB", "/nowhere") // estimates do without
	small, large := tinyModel(t, "small", 64), tinyModel(t, "large", 128)
	for name, args := range map[string][]string{
		"fits":  estimated("--batch", "1,2,4", "--camera", "2x640x480:nv12@15", "--camera", "1x1920x1080:yuyv", "--slo", "100ms", small, large),
		"short": estimated("--batch", "1,2,4", "--budget", "23.5MiB", "--headroom", "1MiB", small),
		"cuda":  estimated("--ep", "cuda", small),
	} {
		t.Run(name, func(t *testing.T) {
			o := call(t, args...)
			if name == "short" {
				o.want(t, exitMachine, "plan: 23.6 MiB")
			} else {
				o.want(t, 0)
			}
			path := filepath.Join("testdata", "plan_"+name+".txt")
			if *update {
				write(t, path, o.stdout)
			}
			want, err := os.ReadFile(path)
			if err != nil || o.stdout != string(want) {
				t.Errorf("%v; run this test with -update if that is right:\n%s", err, o.stdout)
			}
		})
	}
}

// planOf returns the document of a plan.
func planOf(t *testing.T, args ...string) *memplan.Document {
	t.Helper()
	var d memplan.Document
	document(t, &d, append(args, "--json", "-q")...)
	return &d
}

// What is printed is the whole document: read and written again it is the same, with the keys of a solved arena.
func TestPlanJSON(t *testing.T) {
	o := call(t, estimated("--batch", "1,4", "--json", "-q", tinyModel(t, "m", 64))...)
	o.want(t, 0)
	var d memplan.Document
	var printed, again struct {
		Version int
		Batches []struct{ Arena map[string]any }
	}
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal([]byte(o.stdout), &printed), json.Unmarshal(text, &again)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(printed, again) || printed.Version != memplan.DocumentVersion || len(printed.Batches) != 2 {
		t.Errorf("printed %+v, again %+v", printed, again)
	}
	for _, key := range []string{"height", "lower_bound", "proven", "nodes", "seconds", "offsets"} {
		if _, ok := printed.Batches[1].Arena[key]; !ok {
			t.Errorf("the arena has no %q", key)
		}
	}
	arena := d.Batches[1].Arena
	if err := memplan.Validate(arena.Problem(), arena.Solution); err != nil || len(arena.Buffers) == 0 {
		t.Errorf("%d buffers, %v", len(arena.Buffers), err)
	}
}

// A budget just above the total fits, and one just below is refused with both numbers; the plan is printed all the
// same.
func TestPlanBudget(t *testing.T) {
	model := tinyModel(t, "m", 64)
	total := planOf(t, estimated("--batch", "1,2", model)...).Total
	budget := func(n int64) outcome {
		return call(t, estimated("--batch", "1,2", "--json", "--budget", strconv.FormatInt(n, 10), model)...)
	}
	budget(total).want(t, 0)
	o := budget(total - 1)
	o.want(t, exitMachine, fmt.Sprintf("(%d bytes) needed, the budget has", total))
	if !strings.Contains(o.stderr, fmt.Sprintf("(%d bytes): raise the budget", total-1)) {
		t.Error(o.stderr)
	}
	var d memplan.Document
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil || d.Fits || d.LargestBatch != 1 || d.Total != total {
		t.Errorf("%v, fits %v, largest batch %d, total %d", err, d.Fits, d.LargestBatch, d.Total)
	}
}

// Models that take turns share an arena: it is as large as the largest needs.
func TestPlanOfSeveralModels(t *testing.T) {
	small, large := tinyModel(t, "small", 64), tinyModel(t, "large", 128)
	arena := func(models ...string) int64 { return planOf(t, estimated(models...)...).Batches[0].ArenaBytes }
	a, b := arena(small), arena(large)
	if both := arena(small, large); a >= b || both != b {
		t.Errorf("the arenas take %d and %d bytes, together %d", a, b, both)
	}
	d := planOf(t, estimated(small, large)...)
	if len(d.Batches[0].Sharing) != 1 || d.Batches[0].Arena.Model != "large" || len(d.Models) != 2 {
		t.Errorf("%+v", d)
	}
}

func TestPlanDrawing(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "plan.svg")
	small, large := tinyModel(t, "small", 64), tinyModel(t, "large", 128)
	d := planOf(t, estimated("--batch", "1,2", "--svg", svg, small, large)...)
	f, err := os.Open(svg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	titles := 0
	for dec := xml.NewDecoder(f); ; {
		token, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
			titles++
		}
	}
	if want := len(d.Batches[1].Arena.Buffers) + 1; titles != want { // and the lower bound
		t.Errorf("%d titles, want %d", titles, want)
	}
}

// What a file says is planned; its sources are not opened.
func TestPlanOfAConfiguration(t *testing.T) {
	config := filepath.Join(t.TempDir(), "eyas.yaml")
	write(t, config, `
slo: 100ms
batch: [1, 4]
budget: 300MiB
headroom: 2MiB
placement: shared
models: {m: {path: `+tinyModel(t, "m", 64)+`, quota: 8MiB}}
sources: {door: {url: "rtsp://nobody.invalid/stream", weight: 2}}
`)
	args := []string{"plan", "-c", config, "--estimate", "--camera", "1x640x480:gray"}
	d := planOf(t, args...)
	if len(d.Batches) != 2 || d.Capacity.Budget != 300<<20 || d.Batches[0].Headroom != 2<<20 || d.Models[0].Quota != 8<<20 ||
		d.Models[0].Name != "m" || d.Regions[0].Placement != memplan.Shared {
		t.Errorf("%+v", d)
	}
	const slot, head = 640 * 480, 4096 // of a ring
	if one, four := d.Batches[0].Frames, d.Batches[1].Frames; one != 3*slot+head || four != 5*slot+head {
		t.Errorf("frames take %d and %d bytes: 3 and 5 slots are right", one, four)
	}
	if d := planOf(t, append(args, "--batch", "2", "--slo", "none")...); len(d.Batches) != 1 || d.Batches[0].Frames != 2*slot+head {
		t.Errorf("flags do not win: %+v", d.Batches)
	}
}

// What is estimated is what is recorded; and a recorded plan is recalled by the next start.
func TestPlanIsWhatIsRecorded(t *testing.T) {
	for _, name := range []string{"yolox_nano_dynbatch", "nanodet_m_416"} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--batch", "1,2", "--threads", "1", "--budget", "4GiB", modelFile(t, name)}
			guess := planOf(t, append([]string{"plan", "--estimate"}, args...)...)
			first := planOf(t, append([]string{"plan"}, args...)...)
			second := planOf(t, append([]string{"plan"}, args...)...)
			if len(guess.Batches) != len(first.Batches) {
				t.Fatalf("%d and %d batch sizes", len(guess.Batches), len(first.Batches))
			}
			for i, got := range first.Batches {
				for _, c := range []struct {
					what            string
					guess, recorded int64
				}{{"weights", guess.Batches[i].Weights, got.Weights}, {"arena", guess.Batches[i].ArenaBytes, got.ArenaBytes},
					{"tensors", guess.Batches[i].Tensors, got.Tensors}} {
					if ratio := float64(c.guess) / float64(c.recorded); math.Abs(ratio-1) > 0.1 {
						t.Errorf("batch %d, %s: estimated %d, recorded %d", got.Batch, c.what, c.guess, c.recorded)
					}
				}
				if !got.Arena.Proven || got.ArenaBytes != second.Batches[i].ArenaBytes || !slices.Equal(got.Arena.Offsets, second.Batches[i].Arena.Offsets) {
					t.Errorf("batch %d: another plan at the second start", got.Batch)
				}
			}
		})
	}
}

// The total that is printed is what a run then checks its budget against.
func TestRunKeepsToThePrintedTotal(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	model := []string{"-m", modelFile(t, "yolox_nano_person_192"), "-q", "--threads", "2"}
	source := "test:pattern?size=64x64&frames=20"
	for range 2 { // the second measures what engine and Go heap take
		call(t, append([]string{"run", source}, model...)...).want(t, 0)
	}
	total := planOf(t, append([]string{"plan"}, model...)...).Total
	for _, args := range [][]string{{"plan"}, {"run", source}} {
		budget := func(n int64) outcome {
			return call(t, append(args, append(model, "--budget", strconv.FormatInt(n, 10))...)...)
		}
		budget(total-1).want(t, exitMachine, fmt.Sprintf("plan: %s (%d bytes) needed", memplan.FormatBytes(total), total))
		if args[0] == "plan" { // the run measures anew at its end
			budget(total).want(t, 0)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	model := tinyModel(t, "m", 64)
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no model", []string{"none"}, exitModel, "model none is neither a file nor a known model"},
		{"no file", []string{"none.onnx"}, exitModel, "model none.onnx: no such file"},
		{"board", []string{"--board", "orin", model}, exitUsage, "--board orin: not yet in this version"},
		{"nodes", []string{"--nodes", "7", model}, exitUsage, "--nodes is for --problem"},
		{"cpu without estimate", []string{"--cpu", "arm64", model}, exitUsage, "cpu is for estimates"},
		{"no such cpu", []string{"--estimate", "--cpu", "riscv", model}, exitUsage, `cpu "riscv" is not known: use x86, x86-avx512, arm64`},
		{"no camera", []string{"--camera", "one", model}, exitUsage, `camera "one" is not understood: use COUNTxWIDTHxHEIGHT:FORMAT`},
		{"no format", []string{"--camera", "1x2x2:h264", model}, exitUsage, `camera "1x2x2:h264": pixel format "h264" is not known`},
		{"batch of none", []string{"--batch", "0", model}, exitUsage, "batch 0: batch sizes are 1 or more"},
		{"batch of many", []string{"--batch", "1000000000", model}, exitUsage, "batch 1000000000 is out of range"},
		{"precision", []string{"--precision", "fp16", model}, exitUsage, "precision fp16: not yet"},
		{"size of a fixed model", []string{"--estimate", "--imgsz", "32", model}, exitModel, "--imgsz says 32x32"},
		{"no arena to draw", []string{"--estimate", "--svg", "/nowhere/x.svg", model}, exitFailed, "/nowhere"},
		{"no library", []string{"--ort", t.TempDir(), model}, exitMachine, "no libonnxruntime.so there"},
		{"no configuration", []string{"-c", "none.yaml"}, exitUsage, "none.yaml"},
		{"quota", []string{"-q", "-c", quotaFile(t, model), "--estimate"}, exitMachine, "model m: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			call(t, append([]string{"plan"}, c.args...)...).want(t, c.code, c.want)
		})
	}
}

// Without a model it is face, which is said.
func TestPlanDefaultModel(t *testing.T) {
	o := call(t, "plan", "--estimate", "--json")
	if o.code != 0 { // not beside this test's binary
		o.want(t, exitModel, faceOnly, "model face is not here yet: eyas pull face")
		return
	}
	o.want(t, 0, faceOnly)
}

// quotaFile is a configuration with a quota that no model keeps to.
func quotaFile(t *testing.T, model string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eyas.yaml")
	write(t, path, "models: {m: {path: "+model+", quota: 4KiB}}\n")
	return path
}
