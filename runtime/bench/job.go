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

	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// The jobs of a child.
const (
	jobFacts    = "facts"
	jobResident = "resident"
	jobTime     = "time"
	jobSteady   = "steady"
	jobStart    = "start"
)

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
	"provider": eyas.ErrProvider, "budget": eyas.ErrBudget,
}

// kind marks err as one of them without changing its text.
type kind struct {
	error
	is error
}

func (k kind) Is(target error) bool { return target == k.is }
func (k kind) Unwrap() error        { return k.error }

// ask starts a child, tells it what to do and returns its answer.
func (b *bench) ask(ctx context.Context, q request) (reply, error) {
	cfg := b.Config
	if m, ok := cfg.Models[q.Model]; ok {
		cfg.Models = map[string]eyas.ModelConfig{q.Model: m}
	}
	config, err := cfg.YAML()
	if err != nil {
		return reply{}, fmt.Errorf("bench: %w", err)
	}
	q.Version, q.Config, q.Cache = ReportVersion, string(config), filepath.Join(b.dir, "home")
	env := []string{"EYAS_HOME=" + q.Cache}
	if b.lib != "" && q.Job == jobSteady {
		if q.Counts, err = newCounts(b.dir); err != nil {
			return reply{}, fmt.Errorf("bench: %w", err)
		}
		env = append(env, "LD_PRELOAD="+b.lib, countsEnv+"="+q.Counts)
	}
	ctx, cancel := context.WithTimeout(ctx, setupTime+10*q.Duration+time.Duration(q.Runs)*runTime)
	defer cancel()
	rep, err := exchange(ctx, b.Self, env, q)
	if err != nil {
		return reply{}, fmt.Errorf("bench: %s %s: %w", q.Job, q.Model, err)
	}
	return rep, nil
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
	there := map[string]bool{
		jobFacts: r.Facts != nil, jobResident: r.Usage != nil, jobTime: r.Time != nil, jobSteady: r.Steady != nil, jobStart: r.Start != nil,
	}
	if !there[q.Job] {
		return errors.New("the child process did not measure it")
	}
	return nil
}

// Child does one job in a process of its own: it reads the request from in and writes the reply to out. What fails is
// in the reply; an error is that no reply could be made.
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
	r, err := q.do(ctx)
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

func (q request) do(ctx context.Context) (reply, error) {
	cfg, err := eyas.ParseConfig([]byte(q.Config))
	if err != nil {
		return reply{}, err
	}
	if _, ok := cfg.Models[q.Model]; q.Model != "" && !ok {
		return reply{}, kind{fmt.Errorf("model %s is not in the request", q.Model), eyas.ErrConfig}
	}
	if err := os.MkdirAll(q.Cache, 0o700); err != nil {
		return reply{}, err
	}
	s, err := load(cfg)
	if err != nil {
		return reply{}, err
	}
	jobs := map[string]func(context.Context, *setup) (reply, error){
		jobFacts: q.facts, jobResident: q.resident, jobTime: q.time, jobSteady: q.steady, jobStart: q.start,
	}
	job, ok := jobs[q.Job]
	if !ok {
		return reply{}, fmt.Errorf("job %q is not known", q.Job)
	}
	return job(ctx, s)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
