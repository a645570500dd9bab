package runtime_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// cameraPlans is the table for the parser, and for what it is fuzzed with.
var cameraPlans = []struct {
	text string
	want eyas.CameraPlan // zero: refused
}{
	{"4x1920x1080:nv12", eyas.CameraPlan{Count: 4, Width: 1920, Height: 1080, Format: frame.NV12, FPS: 30}},
	{"1x640x480:yuyv@15", eyas.CameraPlan{Count: 1, Width: 640, Height: 480, Format: frame.YUYV, FPS: 15}},
	{"1x1x1:gray@0.5", eyas.CameraPlan{Count: 1, Width: 1, Height: 1, Format: frame.Gray, FPS: 0.5}},
	{"1024x16384x16384:bgra@1000", eyas.CameraPlan{Count: 1024, Width: 16384, Height: 16384, Format: frame.BGRA, FPS: 1000}},
	{"", eyas.CameraPlan{}},
	{"1920x1080:nv12", eyas.CameraPlan{}},
	{"1x1920x1080", eyas.CameraPlan{}},
	{"1x1920x1080:", eyas.CameraPlan{}},
	{"1x1920x1080:h264", eyas.CameraPlan{}},
	{"1x1920x1080:unknown", eyas.CameraPlan{}},
	{"1x1920x1080:nv12@", eyas.CameraPlan{}},
	{"1x1920x1080:nv12@0", eyas.CameraPlan{}},
	{"1x1920x1080:nv12@-1", eyas.CameraPlan{}},
	{"1x1920x1080:nv12@NaN", eyas.CameraPlan{}},
	{"1x1920x1080:nv12@1001", eyas.CameraPlan{}},
	{"0x1920x1080:nv12", eyas.CameraPlan{}},
	{"1025x1920x1080:nv12", eyas.CameraPlan{}},
	{"1x16385x1080:nv12", eyas.CameraPlan{}},
	{"1x1920x65537:nv12", eyas.CameraPlan{}},
	{"1x-1x1080:nv12", eyas.CameraPlan{}},
	{"+1x1920x1080:nv12", eyas.CameraPlan{}},
	{"1x1920x1080x3:nv12", eyas.CameraPlan{}},
	{"1X1920X1080:NV12", eyas.CameraPlan{}},
	{" 1x1920x1080:nv12", eyas.CameraPlan{}},
}

func TestCameraPlan(t *testing.T) {
	for _, c := range cameraPlans {
		t.Run(c.text, func(t *testing.T) {
			var got eyas.CameraPlan
			err := got.UnmarshalText([]byte(c.text))
			if got != c.want || (err == nil) != (c.want != eyas.CameraPlan{}) {
				t.Errorf("%+v, %v", got, err)
			}
			if err == nil && got.String() != c.text {
				t.Errorf("written as %q", got)
			}
		})
	}
}

func FuzzCameraPlan(f *testing.F) {
	for _, c := range cameraPlans {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, again eyas.CameraPlan
		if c.UnmarshalText(text) != nil {
			if c != (eyas.CameraPlan{}) {
				t.Errorf("%q is refused and gives %+v", text, c)
			}
			return
		}
		if c.Count < 1 || c.Count > 1024 || min(c.Width, c.Height) < 1 || max(c.Width, c.Height) > 16384 || !(c.FPS > 0 && c.FPS <= 1000) ||
			c.Format.Bytes(c.Width, c.Height) < 1 {
			t.Errorf("%q gives %+v", text, c)
		}
		if err := again.UnmarshalText([]byte(c.String())); err != nil || again != c {
			t.Errorf("%q is written as %q: %v", text, c, err)
		}
	})
}

// The document says what Open plans, to the byte, with a model that has one batch size beside one that has three.
func TestPlanIsWhatOpenPlans(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	models := filepath.Join(testenv.Assets(t), "models")
	cfg := eyas.Config{ORT: testenv.Library(t), Batch: []int{4, 1, 2}, Threads: 1, Models: map[string]eyas.ModelConfig{
		"a": {Path: filepath.Join(models, "yolox_nano_dynbatch.onnx")},
		"b": {Path: filepath.Join(models, "yolox_nano_person_192.onnx")},
	}}
	doc, err := eyas.Plan(t.Context(), cfg, eyas.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rt := open(t, cfg)
	for _, kind := range []memplan.Kind{memplan.Weights, memplan.Headroom, memplan.Arena, memplan.Spill, memplan.Tensors} {
		p := memplan.Plan{Regions: doc.Regions}
		if p.Of(kind) != rt.Plan().Of(kind) || p.In(kind) != rt.Plan().In(kind) {
			t.Errorf("%s: %d bytes in %s memory in the document, %d in %s when opened", kind,
				p.Of(kind), p.In(kind), rt.Plan().Of(kind), rt.Plan().In(kind))
		}
	}
	if rt.Memory().Recordings != 0 {
		t.Error("what the plan has recorded is recorded again")
	}
	if len(doc.Batches) != 3 || len(doc.Batches[2].Sharing) != 1 || doc.Batches[0].ArenaBytes >= doc.Batches[2].ArenaBytes {
		t.Errorf("%+v", doc.Batches)
	}
}

// Plan and Open agree on what a model needs of its quota, and Plan has a document even then.
func TestPlanOfAQuota(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	cfg := eyas.Config{ORT: testenv.Library(t), Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx"), Quota: 1},
	}}
	doc, err := eyas.Plan(t.Context(), cfg, eyas.PlanOptions{})
	var planned, opened *memplan.Shortage
	if !errors.As(err, &planned) || !errors.Is(err, eyas.ErrBudget) || doc == nil || doc.Fits {
		t.Fatalf("%v, document %v", err, doc)
	}
	_, err = eyas.Open(t.Context(), cfg)
	if !errors.As(err, &opened) || opened.Need != planned.Need || doc.Models[0].Need != planned.Need {
		t.Errorf("planned %+v, opened %+v, document %+v", planned, opened, doc.Models)
	}
}

func TestPlanEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := eyas.Config{Models: map[string]eyas.ModelConfig{"tiny": {Path: tinyYOLO(t, 1)}}}
	if doc, err := eyas.Plan(ctx, cfg, eyas.PlanOptions{Estimate: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", doc, err)
	}
}

// An estimate names what its figures are, for each provider and processor.
func TestEstimatedFiguresAreMarked(t *testing.T) {
	path := tinyYOLO(t, 3)
	for _, c := range []struct{ ep, cpu, models, engine string }{
		{"cpu", "x86", "estimated for x86 with AVX", "measured on x86"},
		{"auto", "arm64", "estimated for arm64", "measured on x86"},
		{"cuda", "", "allowance for cuda, no promise", memplan.Allowance},
		{"tensorrt", "", "allowance for tensorrt, no promise", memplan.Allowance},
	} {
		t.Run(c.ep+" "+c.cpu, func(t *testing.T) {
			cfg := eyas.Config{EP: c.ep, Budget: 2 << 30, Models: map[string]eyas.ModelConfig{"tiny": {Path: path}}}
			doc, err := eyas.Plan(t.Context(), cfg, eyas.PlanOptions{Estimate: true, CPU: c.cpu})
			if err != nil {
				t.Fatal(err)
			}
			if len(doc.Batches) != 1 || doc.Batches[0].Batch != 3 { // the model's own
				t.Errorf("%+v", doc.Batches)
			}
			for _, r := range doc.Regions {
				want := c.models
				switch r.Kind {
				case memplan.Engine:
					want = c.engine
				case memplan.Go:
					want = "allowance"
				}
				if !strings.Contains(r.Basis, want) || r.Bytes <= 0 {
					t.Errorf("%s: %d bytes, %q: want %q", r.Kind, r.Bytes, r.Basis, want)
				}
			}
		})
	}
}

// What the machine has no memory for is refused with both numbers before it runs.
func TestPlanOfMoreThanTheMachineHas(t *testing.T) {
	path := filepath.Join(testenv.Assets(t), "models", "yolov8n_int8_dynshape_op17.onnx")
	cfg := eyas.Config{
		Models: map[string]eyas.ModelConfig{"m": {Path: path, ImgSize: eyas.ImgSize{H: 1280, W: 1280}}},
		Batch:  []int{1, 4096}, ORT: testenv.Library(t), NoCache: true, Budget: 1 << 60,
	}
	_, err := eyas.Plan(t.Context(), cfg, eyas.PlanOptions{})
	if !errors.Is(err, eyas.ErrBudget) || !strings.Contains(err.Error(), "this machine has") {
		t.Errorf("%v, want %v", err, eyas.ErrBudget)
	}
}
