package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/shown"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// The flag groups: a flag has one name and one meaning in every command that has it, and sets the
// field of the configuration with that name.

// identityFlags say what a model is.
type identityFlags struct {
	ImgSize eyas.ImgSize `name:"imgsz" group:"model" placeholder:"N|HxW" help:"Input size of a model with dynamic axes (default: its metadata, else 640)."`
	Labels  string       `group:"model" placeholder:"FILE" help:"Class names, one a line or YAML names."`
	Family  string       `group:"model" placeholder:"NAME" help:"What the model is, where its shapes leave that open."`
}

func (f identityFlags) apply(m *eyas.ModelConfig) {
	set(&m.ImgSize, f.ImgSize)
	set(&m.Labels, f.Labels)
	set(&m.Family, f.Family)
}

type modelFlags struct {
	identityFlags
	Conf       share    `group:"model" placeholder:"0.25" help:"Least score (eval: 0.001)."`
	IoU        share    `name:"iou" group:"model" placeholder:"0.45" help:"Most overlap of two boxes (default: the family's)."`
	MaxDet     int      `group:"model" placeholder:"300" help:"Most detections of a picture (eval: 100)."`
	Classes    []string `group:"model" placeholder:"NAME,..." help:"Only these classes, by name or id."`
	Agnostic   bool     `group:"model" help:"Suppress overlapping boxes across classes."`
	MultiLabel bool     `group:"model" help:"Let a candidate have several classes."`
}

func (f modelFlags) apply(m *eyas.ModelConfig) {
	f.identityFlags.apply(m)
	set(&m.Conf, float64(f.Conf))
	set(&m.IoU, float64(f.IoU))
	set(&m.MaxDet, f.MaxDet)
	set(&m.Agnostic, f.Agnostic)
	set(&m.MultiLabel, f.MultiLabel)
	if f.Classes != nil {
		m.Classes = f.Classes
	}
}

type engineFlags struct {
	EP        string `name:"ep" group:"engine" placeholder:"auto" help:"Execution provider: auto, cpu, cuda or tensorrt. A named one is a contract."`
	Device    string `group:"engine" placeholder:"0" help:"Accelerator: an index, UUID, MIG UUID or dla0."`
	Precision string `group:"engine" placeholder:"auto" help:"auto, fp32, fp16 or int8; only auto in this version."`
	ORT       string `name:"ort" group:"engine" placeholder:"PATH" help:"The ONNX Runtime library."`
	Lanes     int    `group:"engine" placeholder:"N" help:"Runs at the same time (default: chosen by the SLO, else 1)."`
	Threads   int    `group:"engine" placeholder:"N" help:"Threads of a lane (default: chosen by the SLO, else the CPUs allowed by lanes)."`
	Batch     []int  `group:"engine" placeholder:"1,2,4" help:"The ladder of batch sizes; without it an SLO that is set finds one."`
}

func (f engineFlags) apply(c *eyas.Config) {
	set(&c.EP, f.EP)
	set(&c.Device, f.Device)
	set(&c.Precision, f.Precision)
	set(&c.ORT, f.ORT)
	set(&c.Lanes, f.Lanes)
	set(&c.Threads, f.Threads)
	if f.Batch != nil {
		c.Batch = f.Batch
	}
}

type memoryFlags struct {
	Budget     eyas.Size `group:"memory" placeholder:"512MiB|40%" help:"Limit of the planned memory (default: what the machine has)."`
	Headroom   eyas.Size `group:"memory" placeholder:"20%" help:"Room beside the weights for what cannot be planned, as a share of them or in bytes."`
	Placement  string    `group:"memory" placeholder:"auto" help:"auto, dedicated (locked) or shared memory."`
	NoCache    bool      `group:"memory" help:"Leave the cache of optimised models and plans alone."`
	CheckArena bool      `group:"memory" help:"Verify the arena on each run."`
}

func (f memoryFlags) apply(c *eyas.Config) {
	set(&c.Budget, f.Budget)
	set(&c.Headroom, f.Headroom)
	set(&c.Placement, f.Placement)
	set(&c.NoCache, f.NoCache)
	set(&c.CheckArena, f.CheckArena)
}

type timeFlags struct {
	SLO      span `name:"slo" group:"time" placeholder:"50ms|none" help:"Limit on the time from capture to result, p99; lanes and batches follow from it."`
	Frames   int  `group:"time" placeholder:"N" help:"End each source after N frames, of which a live one may drop some."`
	Duration span `group:"time" placeholder:"10s" help:"End after a time."`
	Realtime bool `group:"time" help:"Play clips at their own speed."`
	Every    int  `group:"time" placeholder:"N" help:"Take every Nth frame."`
}

func (f timeFlags) apply(c *eyas.Config) {
	set(&c.SLO, time.Duration(f.SLO))
	set(&c.Frames, f.Frames)
	set(&c.Duration, time.Duration(f.Duration))
	set(&c.Realtime, f.Realtime)
	set(&c.Every, f.Every)
}

type outFlags struct {
	Output    string `short:"o" group:"out" placeholder:"FILE" help:"Append the results to this file instead of standard output, which is -."`
	Save      string `group:"out" placeholder:"DIR" help:"Write annotated pictures and clips."`
	HTTP      string `name:"http" group:"out" placeholder:"ADDR" help:"Serve a page of the cameras, their views, and metrics: 127.0.0.1:8090."`
	Events    bool   `group:"out" help:"Add event lines to the results."`
	LogFormat string `group:"out" enum:"text,json" default:"text" help:"text or json."`
	Quiet     bool   `short:"q" group:"out" help:"Only errors on standard error."`
	MaxPixels int    `group:"out" placeholder:"100000000" help:"Size up to which pictures are opened."`
}

func (f outFlags) apply(c *eyas.Config) {
	set(&c.Output.File, f.Output)
	set(&c.Output.Save, f.Save)
	set(&c.Output.Events, f.Events)
	set(&c.HTTP, f.HTTP)
	set(&c.MaxPixels, f.MaxPixels)
}

// set overwrites a field with a flag that was given.
func set[T comparable](field *T, flag T) {
	var zero T
	if flag != zero {
		*field = flag
	}
}

// span is a duration or "none".
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := eyas.ParseDuration(string(text))
	*s = span(d)
	return err
}

// share is a number above 0 and up to 1. A zero that was written would count as not given.
type share float64

func (s *share) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v > 0 && v <= 1) {
		return fmt.Errorf("%q is not a number above 0 and up to 1", text)
	}
	*s = share(v)
	return nil
}

// configFlags are the flags of the commands that run models.
type configFlags struct {
	Config string   `short:"c" placeholder:"FILE" help:"Configuration file; flags win over it."`
	Model  []string `short:"m" sep:"none" placeholder:"MODEL" help:"An .onnx file or a pulled model; repeats. It defaults to face."`
	modelFlags
	engineFlags
	memoryFlags
	timeFlags
	outFlags
}

// config returns the effective configuration: defaults, then the file, then the flags.
func (f *configFlags) config(sources []string) (eyas.Config, error) {
	var c eyas.Config
	if f.Config != "" {
		var err error
		if c, err = eyas.LoadConfig(f.Config); err != nil {
			return c, err
		}
	}
	if len(f.Model) > 0 {
		c.Models = nil
	}
	for _, path := range f.Model {
		addModel(&c, path)
	}
	if len(sources) > 0 {
		c.Sources = nil
	}
	for _, s := range sources {
		name, what := camera.SplitName(s)
		c.Sources = append(c.Sources, eyas.SourceConfig{Name: name, URL: what})
	}
	for key, m := range c.Models {
		f.modelFlags.apply(&m)
		c.Models[key] = m
	}
	f.engineFlags.apply(&c)
	f.memoryFlags.apply(&c)
	f.timeFlags.apply(&c)
	f.outFlags.apply(&c)
	return c, nil
}

// planned returns the configuration of the commands that take models and no sources: the file's, whose models are
// left out where others are named, and the flags over it. byDefault says that nobody named one and face is taken.
func planned(file string, named []string, id identityFlags, engine engineFlags, memory memoryFlags) (c eyas.Config, byDefault bool, err error) {
	if file != "" {
		if c, err = eyas.LoadConfig(file); err != nil {
			return c, false, err
		}
	}
	if byDefault = len(named) == 0 && len(c.Models) == 0; byDefault {
		named = []string{"face"}
	}
	if len(named) > 0 {
		c.Models = nil
	}
	for _, path := range named {
		addModel(&c, path)
	}
	for key, m := range c.Models {
		id.apply(&m)
		c.Models[key] = m
	}
	engine.apply(&c)
	memory.apply(&c)
	return c, byDefault, nil
}

// addModel names a model by its file without .onnx; a second one of that name gets -2.
func addModel(c *eyas.Config, path string) {
	if c.Models == nil {
		c.Models = map[string]eyas.ModelConfig{}
	}
	base := shown.Text(strings.TrimSuffix(filepath.Base(path), ".onnx"))
	key := base
	for i := 2; ; i++ {
		if _, taken := c.Models[key]; !taken {
			break
		}
		key = fmt.Sprintf("%s-%d", base, i)
	}
	c.Models[key] = eyas.ModelConfig{Path: path}
}
