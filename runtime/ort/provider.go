package ort

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/eyas-edge/eyas/internal/machine"
)

// The providers that Options.EP names.
const (
	EPAuto     = "auto"
	EPCPU      = "cpu"
	EPCUDA     = "cuda"
	EPTensorRT = "tensorrt"
)

// provider is what is known of a GPU provider.
type provider struct {
	title   string // for messages
	builtin string // the library's name for it
	file    string // its shared library, beside libonnxruntime
	plugin  string // the name of its plugin form, empty if there is none
	dynlib  string // the plugin's shared library
}

// CUDA has been a plugin with a name and a file of its own since 2026; both forms
// are in use.
var gpuProviders = map[string]provider{
	EPCUDA: {"CUDA", "CUDAExecutionProvider", "libonnxruntime_providers_cuda.so",
		"CudaPluginExecutionProvider", "libonnxruntime_providers_cuda_plugin.so"},
	EPTensorRT: {"TensorRT", "TensorrtExecutionProvider", "libonnxruntime_providers_tensorrt.so", "", ""},
}

// device is a parsed Options.Device.
type device struct {
	index int    // the GPU's number among the visible ones
	uuid  string // the GPU's or MIG instance's UUID, empty if chosen by number
	dla   int    // the DLA core, -1 if it is not one
}

func parseDevice(text, ep string) (device, error) {
	d := device{dla: -1}
	switch {
	case text == "":
	case strings.HasPrefix(text, "GPU-"), strings.HasPrefix(text, "MIG-"):
		if len(text) > 64 || strings.ContainsAny(text, ", \t\n") {
			return d, fail(ErrProvider, "device %.70q: not a UUID", text)
		}
		d.uuid = text
	case strings.HasPrefix(text, "dla"):
		core, err := strconv.Atoi(strings.TrimPrefix(text, "dla"))
		if err != nil || core < 0 || core > 7 {
			return d, fail(ErrProvider, "device %.20q: no such core; it is dla0 or dla1", text)
		}
		if ep != EPTensorRT {
			return d, fail(ErrProvider, "device %s: only TensorRT uses the DLA; add --ep tensorrt", text)
		}
		d.dla = core
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 255 {
			return d, fail(ErrProvider, "device %.20q: give a number, a UUID (GPU-..., MIG-...) or dla0", text)
		}
		d.index = n
	}
	return d, nil
}

// parse checks the provider and the device that o names.
func (o Options) parse() (ep string, dev device, err error) {
	ep = o.EP
	if ep == "" {
		ep = EPAuto
	}
	if _, gpu := gpuProviders[ep]; !gpu && ep != EPAuto && ep != EPCPU {
		return ep, dev, fail(ErrProvider, "ep %.20q: it is auto, cpu, cuda or tensorrt", ep)
	}
	dev, err = parseDevice(o.Device, ep)
	return ep, dev, err
}

// open makes the session that o asks for, by the contract of Options.EP.
func (l *Library) open(name string, o Options, make maker) (*Session, error) {
	ep, dev, err := o.parse()
	if err != nil {
		return nil, err
	}
	if ep == EPAuto {
		return l.openAuto(name, o, dev, machine.NVIDIA("/").Present, make)
	}
	s, err := l.openOn(name, o, ep, dev, make)
	if ep != EPCPU && errors.Is(err, ErrModel) {
		// Whose fault it is shows on the CPU: what fails there too is the model.
		if made, cerr := l.try(o, EPCPU, dev, make); cerr == nil {
			made.Destroy()
			return nil, fail(ErrProvider, "%s does not take the model: %v", gpuProviders[ep].title, err)
		}
	}
	return s, err
}

// openAuto prefers CUDA on a machine with a GPU, and says why where it ends on the
// CPU. A machine without one has nothing to fall back from and nobody to warn. A
// device that is named has to be had.
func (l *Library) openAuto(name string, o Options, dev device, gpu bool, make maker) (*Session, error) {
	if !gpu && o.Device == "" {
		return l.openOn(name, o, EPCPU, dev, make)
	}
	s, reason := l.openOn(name, o, EPCUDA, dev, make)
	if reason == nil || o.Device != "" { // a device is asked for: the CPU is no answer
		return s, reason
	}
	s, err := l.openOn(name, o, EPCPU, dev, make)
	if err == nil {
		o.warn(reason)
	}
	return s, err
}

// warn says why auto ends on the CPU.
func (o Options) warn(reason error) {
	if o.Warn != nil {
		o.Warn("running on the CPU beside an NVIDIA GPU: " + reason.Error())
	}
}

// EPFor returns the provider that OpenFile would end on, before there is a model: cpu,
// cuda or tensorrt. Where auto cannot have the GPU of the machine, Warn is told and the answer is
// cpu; the caller then opens with EP cpu, and is not warned again. With the answer cuda auto can still
// end on the CPU, for a model that CUDA does not take. Errors are ErrProvider.
func (l *Library) EPFor(o Options) (string, error) {
	ep, dev, err := o.parse()
	if err != nil {
		return "", err
	}
	return l.epFor(o, ep, dev, machine.NVIDIA("/").Present)
}

func (l *Library) epFor(o Options, ep string, dev device, gpu bool) (string, error) {
	switch {
	case ep == EPCPU, ep == EPAuto && !gpu && o.Device == "":
		return EPCPU, nil
	case ep != EPAuto:
		if err := l.loads(ep, dev, gpu); err != nil {
			return "", err
		}
		return ep, nil
	}
	err := l.loads(EPCUDA, dev, gpu)
	switch {
	case err == nil:
		return EPCUDA, nil
	case o.Device != "":
		return "", err
	}
	o.warn(err)
	return EPCPU, nil
}

// CheckEP says whether a provider can be had on this machine: nil, or an ErrProvider
// with the reason. It loads the provider, which takes a while for one on the GPU.
func (l *Library) CheckEP(ep string) error {
	if _, gpu := gpuProviders[ep]; gpu {
		return l.loads(ep, device{dla: -1}, machine.NVIDIA("/").Present)
	}
	if ep == EPCPU {
		return nil
	}
	return fail(ErrProvider, "ep %.20q: it is cpu, cuda or tensorrt", ep)
}

// loads says whether a provider of GPUs can be had: nil, or the reason.
func (l *Library) loads(ep string, dev device, gpu bool) error {
	if why := l.missing(gpuProviders[ep], gpu); why != "" {
		return fail(ErrProvider, "%s", why)
	}
	so, err := ort.NewSessionOptions()
	if err != nil {
		return fail(ErrProvider, "%s", short(err.Error()))
	}
	defer so.Destroy()
	return l.appendProvider(so, ep, dev)
}

// openOn makes a session on one provider.
func (l *Library) openOn(name string, o Options, ep string, dev device, make maker) (*Session, error) {
	if p, gpu := gpuProviders[ep]; gpu {
		if why := l.missing(p, machine.NVIDIA("/").Present); why != "" {
			return nil, fail(ErrProvider, "%s", why)
		}
	}
	var held int64
	if o.OwnAllocator {
		create := make
		make = func(so *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
			goruntime.LockOSThread() // the allocator counts by thread
			defer goruntime.UnlockOSThread()
			watch()
			s, err := create(so)
			held = watched()
			return s, err
		}
	}
	made, err := l.try(o, ep, dev, make)
	if err != nil {
		if errors.Is(err, ErrModel) {
			return nil, fail(ErrModel, "%s: %v%s", name, err, whatToDo(ep))
		}
		return nil, err
	}
	s, err := newSession(name, ep, made)
	if err == nil {
		s.own, s.held = o.OwnAllocator, held
	}
	return s, err
}

// missing says why a GPU provider cannot be had, as far as that shows without
// loading it; empty if nothing is missing.
func (l *Library) missing(p provider, gpu bool) string {
	dir := filepath.Dir(l.path)
	switch {
	case !slices.Contains(l.providers, p.builtin) && l.pluginFile(p) == "":
		return fmt.Sprintf("%s: the ONNX Runtime library %s (%s) is built without it; %s", p.title, l.path, l.version, remedy())
	case l.pluginFile(p) == "" && !exists(filepath.Join(dir, p.file)):
		return fmt.Sprintf("%s: %s is missing beside %s; %s", p.title, p.file, l.path, remedy())
	case !gpu:
		return fmt.Sprintf("%s: this machine shows no NVIDIA GPU (no /dev/nvidia0); load its driver, or use --ep cpu", p.title)
	}
	return ""
}

// pluginFile returns the path of p's plugin library, empty if there is none.
func (l *Library) pluginFile(p provider) string {
	if p.dynlib == "" {
		return ""
	}
	path := filepath.Join(filepath.Dir(l.path), p.dynlib)
	if !exists(path) {
		return ""
	}
	return path
}

func exists(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// remedy names the way to a library with GPU support.
func remedy() string {
	if goruntime.GOARCH == "arm64" {
		return "none is published for aarch64: build ONNX Runtime with CUDA on the board and name it with --ort"
	}
	return "run `eyas pull onnxruntime:cuda12` (or cuda13), or name a build with CUDA with --ort"
}

// appendProvider adds ep to the session options.
func (l *Library) appendProvider(so *ort.SessionOptions, ep string, dev device) error {
	if ep == EPCPU {
		return nil // always there
	}
	p := gpuProviders[ep]
	if err := selectUUID(dev.uuid); err != nil {
		return err
	}
	var err error
	switch {
	case slices.Contains(l.providers, p.builtin) && ep == EPTensorRT:
		// What TensorRT does not take goes to CUDA before it goes to the CPU.
		if err = appendTensorRT(so, dev); err == nil && slices.Contains(l.providers, gpuProviders[EPCUDA].builtin) {
			err = appendCUDA(so, dev)
		}
	case slices.Contains(l.providers, p.builtin):
		err = appendCUDA(so, dev)
	default:
		err = l.appendCUDAPlugin(so, p, dev)
	}
	if err == nil {
		return nil
	}
	text := short(err.Error())
	if lib := l.unresolved(p); lib != "" {
		text = lib // what the loader misses says more than that loading failed
	}
	return fail(ErrProvider, "%s: %s", p.title, text)
}

// selectUUID makes the device with this UUID the only one that CUDA sees. CUDA reads
// the variable once, so one process uses one UUID.
func selectUUID(uuid string) error {
	const key = "CUDA_VISIBLE_DEVICES"
	if uuid == "" {
		return nil
	}
	if old := os.Getenv(key); old != "" && old != uuid {
		return fail(ErrProvider, "device %s: %s is already %.80q", uuid, key, old)
	}
	return os.Setenv(key, uuid)
}

func appendCUDA(so *ort.SessionOptions, dev device) error {
	po, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer po.Destroy()
	if err := po.Update(map[string]string{"device_id": strconv.Itoa(dev.index)}); err != nil {
		return err
	}
	return so.AppendExecutionProviderCUDA(po)
}

func appendTensorRT(so *ort.SessionOptions, dev device) error {
	po, err := ort.NewTensorRTProviderOptions()
	if err != nil {
		return err
	}
	defer po.Destroy()
	set := map[string]string{"device_id": strconv.Itoa(dev.index)}
	if dev.dla >= 0 {
		set["trt_dla_enable"], set["trt_dla_core"] = "1", strconv.Itoa(dev.dla)
		set["trt_fp16_enable"] = "1" // the DLA has no float32
	}
	if err := po.Update(set); err != nil {
		return err
	}
	return so.AppendExecutionProviderTensorRT(po)
}

// appendCUDAPlugin registers the plugin library the first time, then adds one of its
// devices.
func (l *Library) appendCUDAPlugin(so *ort.SessionOptions, p provider, dev device) error {
	path := l.pluginFile(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	err, tried := l.plugins[path]
	if !tried {
		err = ort.RegisterExecutionProviderLibrary(p.plugin, path)
		l.plugins[path] = err
	}
	if err != nil {
		return err
	}
	found, err := appendPlugin(so, p.plugin, dev.index, nil)
	if err == nil && !found {
		err = fmt.Errorf("there is no device %d", dev.index)
	}
	return err
}

// unresolved returns the loader's message for the first library that p's shared
// library needs and that cannot be loaded. The provider itself is left alone: loaded
// outside of ONNX Runtime it would never work afterwards.
func (l *Library) unresolved(p provider) string {
	path := filepath.Join(filepath.Dir(l.path), p.file)
	if plugin := l.pluginFile(p); plugin != "" {
		path = plugin
	}
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return ""
	}
	for _, name := range needed[:min(len(needed), 64)] {
		if strings.HasPrefix(name, "libonnxruntime") {
			continue
		}
		handle, err := openLibrary(name)
		if err != nil {
			return short(err.Error()) + "; install the CUDA, cuDNN or TensorRT that this build of ONNX Runtime needs"
		}
		closeLibrary(handle)
	}
	return ""
}
