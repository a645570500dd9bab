package ort

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/eyas-edge/eyas/internal/machine"
)

// A named provider is had or refused; this library has none for the GPU.
func TestNamedProvider(t *testing.T) {
	l := library(t)
	if machine.NVIDIA("/").Present {
		t.Skip("this machine has a GPU")
	}
	path := model(t, "yolox_nano_person_192")
	for _, c := range []struct{ ep, device, want string }{
		{"cuda", "", "CUDA: "},
		{"tensorrt", "", "TensorRT: "},
		{"gpu", "", `ep "gpu": it is auto, cpu, cuda or tensorrt`},
		{"cuda", "x", `device "x": give a number`},
	} {
		t.Run(c.ep+c.device, func(t *testing.T) {
			s, err := l.OpenFile(path, Options{EP: c.ep, Device: c.device})
			if s != nil || !errors.Is(err, ErrProvider) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	for _, ep := range []string{"", "auto", "cpu"} {
		t.Run("ep="+ep, func(t *testing.T) {
			s, err := l.OpenFile(path, Options{EP: ep, Threads: 1, Warn: func(w string) { t.Errorf("warned: %s", w) }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.EP() != EPCPU {
				t.Errorf("effective ep %s", s.EP())
			}
		})
	}
}

func TestCheckEP(t *testing.T) {
	l := library(t)
	if machine.NVIDIA("/").Present {
		t.Skip("this machine has a GPU")
	}
	for _, c := range []struct{ ep, want string }{
		{"cpu", ""}, {"cuda", "CUDA: "}, {"tensorrt", "TensorRT: "}, {"auto", "it is cpu, cuda or tensorrt"},
	} {
		err := l.CheckEP(c.ep)
		if c.want == "" && err == nil {
			continue
		}
		t.Log(err)
		if c.want == "" || !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.ep, err, c.want)
		}
	}
}

func TestEPFor(t *testing.T) {
	l := library(t)
	if machine.NVIDIA("/").Present {
		t.Skip("this machine has a GPU")
	}
	for _, c := range []struct {
		name, ep, device string
		gpu              bool
		want, fails      string
		warns            bool
	}{
		{name: "the CPU", ep: "cpu", gpu: true, want: EPCPU},
		{name: "auto without a GPU", ep: "auto", want: EPCPU},
		{name: "the default without a GPU", want: EPCPU},
		{name: "auto beside a GPU", ep: "auto", gpu: true, want: EPCPU, warns: true},
		{name: "auto with a device", ep: "auto", device: "0", fails: "CUDA: "},
		{name: "CUDA", ep: "cuda", fails: "CUDA: "},
		{name: "TensorRT", ep: "tensorrt", gpu: true, fails: "TensorRT: "},
		{name: "no provider", ep: "gpu", fails: "it is auto, cpu, cuda or tensorrt"},
		{name: "no device", ep: "auto", device: "x", fails: "give a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var warnings []string
			o := Options{EP: c.ep, Device: c.device, Warn: func(w string) { warnings = append(warnings, w) }}
			ep, dev, err := o.parse()
			if err == nil {
				ep, err = l.epFor(o, ep, dev, c.gpu)
			} else {
				ep, err = l.EPFor(o)
			}
			if c.fails != "" {
				if ep != "" || !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %q, %v", ep, err)
				}
			} else if ep != c.want || err != nil {
				t.Errorf("got %q, %v", ep, err)
			}
			if (len(warnings) == 1) != c.warns || len(warnings) > 1 {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
	if ep, err := l.EPFor(Options{}); err != nil || ep != EPCPU {
		t.Errorf("got %q, %v", ep, err)
	}
}

// auto falls back on a machine with a GPU, with one warning that says why.
func TestAutoWarns(t *testing.T) {
	l := library(t)
	var warnings []string
	o := Options{Threads: 1, Warn: func(w string) { warnings = append(warnings, w) }}
	path := model(t, "yolox_nano_person_192")
	made := func(so *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
		return ort.NewDynamicAdvancedSession(path, nil, nil, so)
	}
	s, err := l.openAuto("m", o, device{dla: -1}, true, made)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.EP() == EPCPU && (len(warnings) != 1 || !strings.Contains(warnings[0], "beside an NVIDIA GPU: CUDA: ")) {
		t.Errorf("warnings %q", warnings)
	}
}

// fakeLibrary is a Library in a directory that holds the named files.
func fakeLibrary(t *testing.T, providers []string, files ...string) *Library {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Library{path: filepath.Join(dir, libraryName), version: "1.30.0", providers: providers, plugins: map[string]error{}}
}

func TestMissing(t *testing.T) {
	cpu, cuda := []string{"CPUExecutionProvider"}, []string{"CUDAExecutionProvider", "CPUExecutionProvider"}
	trt := append([]string{"TensorrtExecutionProvider"}, cuda...)
	for _, c := range []struct {
		name, ep  string
		providers []string
		files     []string
		gpu       bool
		want      string // empty: nothing is missing
	}{
		{"a CPU build", EPCUDA, cpu, nil, true, "is built without it"},
		{"a CPU build and no GPU", EPCUDA, cpu, nil, false, "is built without it"},
		{"no provider library", EPCUDA, cuda, nil, true, "libonnxruntime_providers_cuda.so is missing beside"},
		{"no GPU", EPCUDA, cuda, []string{"libonnxruntime_providers_cuda.so"}, false, "shows no NVIDIA GPU"},
		{"built in", EPCUDA, cuda, []string{"libonnxruntime_providers_cuda.so"}, true, ""},
		{"plugin", EPCUDA, cpu, []string{"libonnxruntime_providers_cuda_plugin.so"}, true, ""},
		{"plugin without GPU", EPCUDA, cpu, []string{"libonnxruntime_providers_cuda_plugin.so"}, false, "shows no NVIDIA GPU"},
		{"TensorRT from a CUDA build", EPTensorRT, cuda, []string{"libonnxruntime_providers_cuda.so"}, true, "TensorRT: the ONNX Runtime library"},
		{"TensorRT", EPTensorRT, trt, []string{"libonnxruntime_providers_tensorrt.so"}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fakeLibrary(t, c.providers, c.files...).missing(gpuProviders[c.ep], c.gpu)
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A provider that the library says it has, but that does not load, is refused with
// what the loader misses.
func TestProviderDoesNotLoad(t *testing.T) {
	library(t)
	l := fakeLibrary(t, []string{"CPUExecutionProvider"})
	dir := filepath.Dir(l.path)
	compile(t, filepath.Join(dir, "libgone.so"), "int gone(void) { return 1; }")
	compile(t, filepath.Join(dir, "libonnxruntime_providers_cuda_plugin.so"),
		"int gone(void); int f(void) { return gone(); }", "-L"+dir, "-lgone", "-lm", "-Wl,--no-as-needed")
	if err := os.Remove(filepath.Join(dir, "libgone.so")); err != nil {
		t.Fatal(err)
	}
	so, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer so.Destroy()
	for range 2 { // the second time from memory
		err = l.appendProvider(so, EPCUDA, device{dla: -1})
		if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), "libgone.so: cannot open") {
			t.Errorf("got %v", err)
		}
	}
}

// The library's own message stands where nothing is missing.
func TestProviderRefuses(t *testing.T) {
	l := library(t)
	so, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer so.Destroy()
	for ep, builtin := range map[string]string{EPCUDA: "CUDAExecutionProvider", EPTensorRT: "TensorrtExecutionProvider"} {
		if fake := (&Library{path: l.path, version: l.version, providers: []string{builtin}}); !exists(filepath.Join(filepath.Dir(l.path), gpuProviders[ep].file)) {
			if err := fake.appendProvider(so, ep, device{dla: -1}); !errors.Is(err, ErrProvider) {
				t.Errorf("%s: %v", ep, err)
			}
		}
	}
}

// Asking for a plugin device that is not there finds none.
func TestNoPluginDevice(t *testing.T) {
	library(t)
	so, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer so.Destroy()
	found, err := appendPlugin(so, "NoSuchExecutionProvider", 0, map[string]string{"a": "b"})
	if found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func TestParseDevice(t *testing.T) {
	for _, c := range []struct {
		text, ep string
		want     device
		err      string
	}{
		{"", EPAuto, device{dla: -1}, ""},
		{"2", EPCUDA, device{index: 2, dla: -1}, ""},
		{"GPU-8f3c", EPCUDA, device{uuid: "GPU-8f3c", dla: -1}, ""},
		{"MIG-8f3c", EPTensorRT, device{uuid: "MIG-8f3c", dla: -1}, ""},
		{"dla1", EPTensorRT, device{dla: 1}, ""},
		{"dla0", EPCUDA, device{}, "only TensorRT uses the DLA"},
		{"dlax", EPTensorRT, device{}, "no such core"},
		{"-1", EPCUDA, device{}, "give a number"},
		{"GPU-1,GPU-2", EPCUDA, device{}, "not a UUID"},
	} {
		t.Run(c.text+" "+c.ep, func(t *testing.T) {
			got, err := parseDevice(c.text, c.ep)
			if c.err != "" {
				if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
			} else if err != nil || got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestSelectUUID(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	for _, c := range []struct {
		uuid string
		ok   bool
	}{{"", true}, {"GPU-1", true}, {"GPU-1", true}, {"GPU-2", false}} {
		if err := selectUUID(c.uuid); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.uuid, err)
		}
	}
}
