package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// The jobs of a child that answers once.
const (
	jobFacts    = "facts"
	jobResident = "resident"
	jobTime     = "time"
	jobSteady   = "steady"
	jobTouch    = "touch"
	jobStart    = "start"
	jobFirst    = "first"
	jobChoose   = "choose"
	jobFrontier = "frontier"
	jobServe    = "serve"
	jobPlace    = "place"
)

// jobs are what a child can do, and how to tell that it has.
var jobs = map[string]struct {
	do   func(request, context.Context, *setup) (reply, error)
	done func(reply) bool
}{
	jobFacts:    {request.facts, func(r reply) bool { return r.Facts != nil }},
	jobResident: {request.resident, func(r reply) bool { return r.Usage != nil }},
	jobTime:     {request.time, func(r reply) bool { return r.Time != nil }},
	jobSteady:   {request.steady, func(r reply) bool { return r.Steady != nil }},
	jobTouch:    {request.touch, func(r reply) bool { return r.Touch != nil }},
	jobStart:    {request.start, func(r reply) bool { return r.Start != nil }},
	jobFirst:    {request.first, func(r reply) bool { return r.First != nil }},
	jobChoose:   {request.choose, func(r reply) bool { return r.Choice != nil }},
	jobFrontier: {request.frontier, func(r reply) bool { return r.Points != nil }},
	jobServe:    {request.serve, func(r reply) bool { return r.Served != nil }},
	jobPlace:    {request.place, func(r reply) bool { return r.Placed != nil }},
}

// The candidates.
const (
	standard = "default" // a plain session of ONNX Runtime, its outputs allocated by the library
	planned  = "planned" // Eyas
	shared   = "shared"  // Eyas with weights and arena in shared memory
)

// request is what a child reads on its standard input.
type request struct {
	Version   int           `json:"version"` // ReportVersion
	Job       string        `json:"job"`
	Config    string        `json:"config"`          // YAML of eyas.Config, its models with paths
	Model     string        `json:"model,omitempty"` // the one of Config, for jobs about one
	Candidate string        `json:"candidate,omitempty"`
	Runs      int           `json:"runs,omitempty"`
	Duration  time.Duration `json:"duration,omitempty"` // nanoseconds
	Policy    string        `json:"policy,omitempty"`   // of serve: one of policies
	Cameras   int           `json:"cameras,omitempty"`
	FPS       float64       `json:"fps,omitempty"`      // of each camera
	Idle      time.Duration `json:"idle,omitempty"`     // nanoseconds
	NoLocks   bool          `json:"no_locks,omitempty"` // do without locked memory
	Group     string        `json:"group,omitempty"`    // folder of a control group to join
	File      string        `json:"file,omitempty"`     // of a co-runner: to be read again and again
	Bytes     int64         `json:"bytes,omitempty"`    // of a co-runner's bursts
	Counts    string        `json:"counts,omitempty"`   // file of the preloaded counter
	Cache     string        `json:"cache"`              // folder that only the children of one Run use
}

// reply is what a child writes on its standard output: what it was asked for, or an error.
type reply struct {
	Error  string         `json:"error,omitempty"`
	Kind   string         `json:"kind,omitempty"` // of kinds
	Facts  *Engine        `json:"facts,omitempty"`
	Usage  *Usage         `json:"usage,omitempty"`
	Memory *memplan.Usage `json:"memory,omitempty"`
	Time   []Time         `json:"time,omitempty"`
	Steady *Steady        `json:"steady,omitempty"`
	Start  *Start         `json:"start,omitempty"`
	Touch  []Touch        `json:"touch,omitempty"`
	First  []firstFrame   `json:"first,omitempty"`
	Choice *chosen        `json:"choice,omitempty"`
	Points []Point        `json:"points,omitempty"`
	Served *Served        `json:"served,omitempty"`
	Placed *placed        `json:"placed,omitempty"`
	Corun  *Corun         `json:"corun,omitempty"`
}

// Bounds on what the two processes tell each other, and on a child that hangs.
const (
	maxRequest = 1 << 20
	maxReply   = 16 << 20
	setupTime  = 10 * time.Minute       // to load, optimise and plan on a slow board
	runTime    = 500 * time.Millisecond // of one run on a slow board
)

// kinds are the kinds of error that survive the way from child to parent.
var kinds = map[string]error{
	"config": eyas.ErrConfig, "not yet": eyas.ErrNotYet, "model": eyas.ErrModel, "library": eyas.ErrLibrary,
	"provider": eyas.ErrProvider, "budget": eyas.ErrBudget, "slo": eyas.ErrSLO,
}

// kind marks err as one of them without changing its text.
type kind struct {
	error
	is error
}

func (k kind) Is(target error) bool { return target == k.is }
func (k kind) Unwrap() error        { return k.error }

// ask starts a child, tells it what to do and returns its answer. change, if any, changes the configuration.
func (b *bench) ask(ctx context.Context, q request, change ...func(*eyas.Config)) (reply, error) {
	env, err := b.complete(&q, change...)
	if err != nil {
		return reply{}, fmt.Errorf("bench: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, setupTime+10*q.Duration+2*q.Idle+time.Duration(q.Runs)*q.patience())
	defer cancel()
	rep, err := exchange(ctx, b.program(q), env, q)
	if err != nil {
		return reply{}, fmt.Errorf("bench: %s %s: %w", q.Job, q.Model, err)
	}
	return rep, nil
}

// complete fills in what every child is told, and returns the environment that it gets.
func (b *bench) complete(q *request, change ...func(*eyas.Config)) (env []string, err error) {
	cfg := b.Config
	if m, ok := cfg.Models[q.Model]; ok {
		cfg.Models = map[string]eyas.ModelConfig{q.Model: m}
	}
	for _, c := range change {
		c(&cfg)
	}
	config, err := cfg.YAML()
	if err != nil {
		return nil, err
	}
	q.Version, q.Config, q.Cache = ReportVersion, string(config), filepath.Join(b.dir, "home")
	env = []string{"EYAS_HOME=" + q.Cache}
	if b.lib != "" && q.Job == jobSteady {
		if q.Counts, err = newCounts(b.dir); err != nil {
			return nil, err
		}
		env = append(env, "LD_PRELOAD="+b.lib, countsEnv+"="+q.Counts)
	}
	return env, nil
}

// patience is how long one run, or frame of a camera, may take on a slow board.
func (q request) patience() time.Duration {
	if q.FPS > 0 {
		return max(runTime, time.Duration(2*float64(time.Second)/q.FPS))
	}
	return runTime
}

// exchange is the parent's side of one child.
func exchange(ctx context.Context, self, env []string, q request) (reply, error) {
	c, err := child.Start(ctx, child.Spec{Program: self[0], Args: self[1:], Stdin: true, Stdout: true, Env: env})
	if err != nil {
		return reply{}, err
	}
	defer c.Stop()
	sent := make(chan error, 1)
	go func() {
		err := json.NewEncoder(c.Stdin()).Encode(q)
		sent <- errors.Join(err, c.Stdin().Close())
	}()
	answer, err := io.ReadAll(io.LimitReader(c.Stdout(), maxReply+1))
	switch {
	case len(answer) > maxReply:
		err = errors.New("the answer of the child process does not end")
	case err == nil:
		err = c.Wait() // a child that failed says more than the pipe that it left
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("the child process took too long and was stopped: the machine is too slow or too busy for this model")
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	if err != nil {
		return reply{}, err
	}
	if err := <-sent; err != nil {
		return reply{}, err
	}
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil {
		return reply{}, fmt.Errorf("the answer of the child process is damaged: %w", err)
	}
	if r.Error != "" {
		err := errors.New(r.Error)
		if is, ok := kinds[r.Kind]; ok {
			err = kind{err, is}
		}
		return reply{}, err
	}
	return r, q.answered(r)
}

// answered says whether the reply holds what the job is about.
func (q request) answered(r reply) error {
	if job, ok := jobs[q.Job]; !ok || !job.done(r) {
		return errors.New("the child process did not measure it")
	}
	return nil
}

// Child does one job in a process of its own: it reads the request from in and writes the reply to out. What fails is
// in the reply; an error is that no reply could be made. A co-runner goes on until in ends.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	var q request
	d := json.NewDecoder(io.LimitReader(in, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return fmt.Errorf("bench: the request is damaged: %w", err)
	}
	if q.Version != ReportVersion {
		return fmt.Errorf("bench: the request has version %d, this program speaks %d", q.Version, ReportVersion)
	}
	r, err := q.do(ctx, in, out)
	if err != nil {
		r = reply{Error: err.Error()}
		for name, is := range kinds {
			if errors.Is(err, is) {
				r.Kind = name
			}
		}
	}
	return json.NewEncoder(out).Encode(r)
}

func (q request) do(ctx context.Context, in io.Reader, out io.Writer) (reply, error) {
	if err := joinGroup(q.Group); err != nil {
		return reply{}, err
	}
	if q.Job == jobCorun {
		return q.corun(ctx, in, out)
	}
	cfg, err := eyas.ParseConfig([]byte(q.Config))
	if err != nil {
		return reply{}, err
	}
	if _, ok := cfg.Models[q.Model]; q.Model != "" && !ok {
		return reply{}, kind{fmt.Errorf("model %s is not in the request", q.Model), eyas.ErrConfig}
	}
	if q.NoLocks {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{}); err != nil {
			return reply{}, fmt.Errorf("do without locked memory: %w", err)
		}
	}
	if err := os.MkdirAll(q.Cache, 0o700); err != nil {
		return reply{}, err
	}
	job, ok := jobs[q.Job]
	if !ok {
		return reply{}, fmt.Errorf("job %q is not known", q.Job)
	}
	s, err := load(cfg)
	if err != nil {
		return reply{}, err
	}
	return job.do(q, ctx, s)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
