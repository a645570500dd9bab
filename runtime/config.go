package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/shown"
	"github.com/eyas-edge/eyas/runtime/batch"
)

// ConfigVersion is the version of the configuration file's format.
const ConfigVersion = 1

// NoSLO as Config.SLO says that no latency limit is kept: the newest frame wins.
const NoSLO time.Duration = -1

// maxBatch is above any batch that fits a machine's memory, and keeps sums of sizes far from overflowing.
const maxBatch = 4096

// Config says what runs. It is the configuration file in Go; flags set the same fields. The zero
// value with one model works.
type Config struct {
	// Version is the format's version, 1. 0 counts as 1.
	Version int `yaml:"version,omitempty"`

	// Models by the name that results carry.
	Models map[string]ModelConfig `yaml:"models,omitempty"`
	// Sources that OpenSources opens, in order. A program may open its own with camera.Open instead.
	Sources Sources `yaml:"sources,omitempty"`

	// EP is the execution provider: auto, cpu, cuda or tensorrt. It defaults to auto, the best one
	// that works; a named one is a contract.
	EP string `yaml:"ep,omitempty"`
	// Device picks the accelerator: an index, a UUID, a MIG UUID, dla0. It defaults to the first.
	Device string `yaml:"device,omitempty"`
	// Precision is auto, fp32, fp16 or int8. It defaults to auto: as the model is.
	Precision string `yaml:"precision,omitempty"`
	// ORT is the ONNX Runtime library: a file or the folder it lies in. It defaults to a search that
	// `eyas doctor` shows.
	ORT string `yaml:"ort,omitempty"`
	// Lanes is the number of models' runs at the same time, 1 to 64. With an SLO it defaults to what serves most within
	// that, as measured; else to 1.
	Lanes int `yaml:"lanes,omitempty"`
	// Threads of a lane. With an SLO they default to what serves most within that; else to the CPUs that this process may
	// use, divided by the lanes.
	Threads int `yaml:"threads,omitempty"`
	// Batch is the ladder of batch sizes. With an SLO it defaults to those that keep it and are worth their memory, else
	// to 1.
	Batch []int `yaml:"batch,omitempty,flow"`

	// Budget limits the planned memory, in bytes or per cent. It defaults to what the machine has.
	Budget Size `yaml:"budget,omitempty"`
	// Headroom is added to the weights for what cannot be planned. It defaults to 20 %.
	Headroom Size `yaml:"headroom,omitempty"`
	// Placement is auto, dedicated or shared. It defaults to auto.
	Placement string `yaml:"placement,omitempty"`
	// NoCache leaves the caches of optimised models and plans alone.
	NoCache bool `yaml:"no_cache,omitempty"`
	// CheckArena verifies the arena's guards on each run.
	CheckArena bool `yaml:"check_arena,omitempty"`

	// SLO is the limit on the time from capture to result, p99. It defaults to 100ms for live sources
	// and to none for files; NoSLO ("none") says none.
	SLO time.Duration `yaml:"slo,omitempty"`
	// Frames ends each source after so many frames, whether they become results or, of a live source, are dropped; 0 for all.
	Frames int `yaml:"frames,omitempty"`
	// Duration ends the run after a time; 0 for no limit.
	Duration time.Duration `yaml:"duration,omitempty"`
	// Realtime plays clips at their own speed.
	Realtime bool `yaml:"realtime,omitempty"`
	// Every takes only every Nth frame. It defaults to 1.
	Every int `yaml:"every,omitempty"`
	// MaxPixels is the size up to which pictures are opened. It defaults to 100 million.
	MaxPixels int `yaml:"max_pixels,omitempty"`

	Output OutputConfig `yaml:"output,omitempty"`
	// HTTP is the address of the metrics and views, for example 127.0.0.1:8090.
	HTTP string `yaml:"http,omitempty"`

	// SourceOptions are further options for OpenSources, for example camera.Scheme for a kind of source of the program's own.
	SourceOptions []camera.Option `yaml:"-"`
	// Pictures makes each Result carry its picture.
	Pictures bool `yaml:"-"`
	// Wanted, if set, is asked for every frame of a source whether its results are to carry the picture, where Pictures is off.
	Wanted func(source string) bool `yaml:"-"`
	// Policy makes the policy by which each model's batches are made, for comparisons. It defaults to batch.Deadline.
	Policy func() batch.Policy `yaml:"-"`
	// Logger takes warnings and progress. It defaults to none.
	Logger *slog.Logger `yaml:"-"`
	// OnEvent, if set, is called for each event, one at a time. The run that an event is about may not have ended: it
	// must not call the Runtime or wait for who does.
	OnEvent func(Event) `yaml:"-"`
}

// ModelConfig is one model with its thresholds. Zero values stand for the defaults of the model's family.
type ModelConfig struct {
	// Path is an .onnx file, or the name of a pulled model.
	Path string `yaml:"path"`
	// ImgSize is the input size of a model with dynamic axes. It defaults to the model's metadata, else 640.
	ImgSize ImgSize `yaml:"imgsz,omitempty"`
	// Labels is a file with class names. They default to the model's own.
	Labels string `yaml:"labels,omitempty"`
	// Family settles what the model is when its shapes leave that open.
	Family string `yaml:"family,omitempty"`
	// Conf is the least score, 0..1. It defaults to 0.25.
	Conf float64 `yaml:"conf,omitempty"`
	// IoU is the most overlap that non-maximum suppression leaves, 0..1. It defaults to the family's.
	IoU float64 `yaml:"iou,omitempty"`
	// MaxDet is the most detections of a picture. It defaults to 300.
	MaxDet int `yaml:"max_det,omitempty"`
	// Classes keeps only these, by name or id.
	Classes []string `yaml:"classes,omitempty,flow"`
	// Agnostic suppresses across classes.
	Agnostic bool `yaml:"agnostic,omitempty"`
	// MultiLabel lets a candidate have several classes.
	MultiLabel bool `yaml:"multi_label,omitempty"`

	// Quota limits the model's memory; Priority and MaxHold its share of the time.
	Quota    Size          `yaml:"quota,omitempty"`
	Priority int           `yaml:"priority,omitempty"`
	MaxHold  time.Duration `yaml:"max_hold,omitempty"`
}

// SourceConfig is one source.
type SourceConfig struct {
	// Name in results; without one it is the URL without user and password, or each picture's path.
	Name string `yaml:"-"`
	// URL is a picture, folder, glob, clip, raw: or test: source as `eyas run` takes it.
	URL string `yaml:"url"`
	// Models that look at this source, by name. It defaults to all.
	Models []string `yaml:"models,omitempty,flow"`
	// Weight is the source's share under overload. It defaults to 1.
	Weight float64 `yaml:"weight,omitempty"`
}

// OutputConfig says where results go.
type OutputConfig struct {
	// File takes the results; it defaults to standard output.
	File string `yaml:"file,omitempty"`
	// MaxSize starts a new file when this size is reached; the old one gets the suffix .1. 0 for no limit.
	MaxSize Size `yaml:"max_size,omitempty"`
	// Save is a folder for annotated pictures and clips.
	Save string `yaml:"save,omitempty"`
	// Events adds event lines to the results.
	Events bool `yaml:"events,omitempty"`
}

// Validate says what is wrong with the configuration, or not yet possible, in one line.
// Models are not opened.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error { return as(ErrConfig, fmt.Errorf(format, args...)) }
	switch {
	case c.Version != 0 && c.Version != ConfigVersion:
		return bad("version %d is not known: this build reads version %d", c.Version, ConfigVersion)
	case c.EP != "" && !slices.Contains([]string{"auto", "cpu", "cuda", "tensorrt"}, c.EP):
		return bad("ep %q is not known: use auto, cpu, cuda or tensorrt", c.EP)
	case c.Device != "" && c.EP == "cpu":
		return bad("device %q is an accelerator, and ep is cpu: leave one of them out", c.Device)
	case c.Placement != "" && !slices.Contains([]string{"auto", "dedicated", "shared"}, c.Placement):
		return bad("placement %q is not known: use auto, dedicated or shared", c.Placement)
	case c.Precision != "" && !slices.Contains([]string{"auto", "fp32", "fp16", "int8"}, c.Precision):
		return bad("precision %q is not known: use auto, fp32, fp16 or int8", c.Precision)
	case c.Threads < 0 || c.Threads > maxThreads:
		return bad("threads %d is out of range: use 1 to %d, or leave it out for the CPUs allowed", c.Threads, maxThreads)
	case c.Lanes > maxLanes:
		return bad("lanes %d is out of range: use 1 to %d, or leave it out", c.Lanes, maxLanes)
	case c.Lanes*c.Threads > mostThreads():
		return bad("%v are %d threads, for %s: use at most %d", Setting{c.Lanes, c.Threads}, c.Lanes*c.Threads, plural(machine.CPUs(), "CPU"), mostThreads())
	case c.SLO < 0 && c.SLO != NoSLO:
		return bad("slo %v is negative: use a time such as 50ms, or none", c.SLO)
	}
	for _, n := range []struct {
		key      string
		negative bool
	}{
		{"lanes", c.Lanes < 0}, {"frames", c.Frames < 0}, {"every", c.Every < 0}, {"duration", c.Duration < 0},
		{"max_pixels", c.MaxPixels < 0}, {"output.max_size", c.Output.MaxSize < 0},
	} {
		if n.negative {
			return bad("%s is below zero: leave it out for the default", n.key)
		}
	}
	for _, b := range c.Batch {
		if b < 1 {
			return bad("batch %d: batch sizes are 1 or more", b)
		}
		if b > maxBatch {
			return bad("batch %d is out of range: use 1 to %d", b, maxBatch)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Models)) {
		if err := c.Models[key].validate(key); err != nil {
			return as(ErrConfig, err)
		}
	}
	seen := map[string]bool{}
	for _, s := range c.Sources {
		if s.URL == "" && s.Name == "" {
			return bad("a source is empty: name a picture, folder or clip")
		}
		if s.URL == "" {
			return bad("source %s: url is missing", s.Name)
		}
		if s.Name != "" && seen[s.Name] {
			return bad("source %s: the name is used twice", s.Name)
		}
		seen[s.Name] = true
		for _, m := range s.Models {
			if _, ok := c.Models[m]; !ok {
				return bad("source %s: there is no model %q: known are %s", s.Name, m,
					strings.Join(slices.Sorted(maps.Keys(c.Models)), ", "))
			}
		}
	}
	return c.notYet()
}

func (m ModelConfig) validate(key string) error {
	switch {
	case key == "":
		return errors.New("a model has no name: give it one, such as \"people\": results carry it")
	case !shown.Plain(key):
		return fmt.Errorf("model %q: its name has a character that cannot be seen: leave it out", key)
	case m.Path == "":
		return fmt.Errorf("model %s: path is missing", key)
	case !(m.Conf >= 0 && m.Conf <= 1):
		return fmt.Errorf("model %s: conf %v is out of range: use 0 to 1", key, m.Conf)
	case !(m.IoU >= 0 && m.IoU <= 1):
		return fmt.Errorf("model %s: iou %v is out of range: use 0 to 1", key, m.IoU)
	case m.MaxDet < 0:
		return fmt.Errorf("model %s: max_det %d is below zero: leave it out for the default", key, m.MaxDet)
	case m.Quota < 0:
		return fmt.Errorf("model %s: quota %v is a share: use bytes, such as 300MiB", key, m.Quota)
	case m.Priority < 0 || m.MaxHold < 0:
		return fmt.Errorf("model %s: priority and max_hold cannot be below zero", key)
	}
	return nil
}

// notYet refuses what the format knows and this version cannot do: nothing that was asked for is
// silently left out.
func (c *Config) notYet() error {
	if c.Precision != "" && c.Precision != "auto" {
		return as(ErrNotYet, fmt.Errorf("precision %s: not yet in this version: leave it out", c.Precision))
	}
	return nil
}
