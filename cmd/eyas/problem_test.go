package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/memplan"
)

// example is the worked example of Pisarchyk and Lee (2020): its optimum is 124.
const example = "id,lower,upper,size\na,0,2,32\nb,1,5,28\nc,2,6,36\nd,3,6,16\ne,4,6,8\nf,5,8,64\ng,6,9,10\nh,7,9,40\n"

func planFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "problem.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlanProblem(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{"plan", "--problem", planFile(t, example)}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	want := regexp.MustCompile(`^height       124 bytes \(0\.00 % above the lower bound\)
lower bound  124 bytes
proven       yes: no plan is lower
nodes        \d+
time         \S+
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestPlanProblemDocuments(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "plan.svg")
	var out, errs strings.Builder
	if code := run([]string{"plan", "--json", "--svg", svg, "--problem", planFile(t, example)}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(out.String()), &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"height", "lower_bound", "proven", "nodes", "seconds", "offsets"} {
		if _, ok := fields[key]; !ok {
			t.Errorf("no %q in %s", key, out.String())
		}
	}
	p, err := memplan.ReadCSV(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	var s memplan.Solution
	if err := json.Unmarshal([]byte(out.String()), &s); err != nil {
		t.Fatal(err)
	}
	if err := memplan.Validate(p, s); err != nil {
		t.Error(err)
	}
	drawn, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(drawn), "<title>h: 40 bytes") {
		t.Errorf("drawing: %v, %.80s", err, drawn)
	}
}

func TestPlanProblemRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"models, too":     {[]string{"--problem", "x.csv", "yolo.onnx"}, "--problem is a list of buffers: leave the models out"},
		"negative nodes":  {[]string{"--problem", "x.csv", "--nodes=-1"}, "--nodes -1 is negative"},
		"no file":         {[]string{"--problem", "none.csv"}, "none.csv"},
		"no numbers":      {[]string{"--problem", planFile(t, "id,lower,upper,size\na,0,2,x\n")}, `line 2: size "x"`},
		"empty lifetimes": {[]string{"--problem", planFile(t, "id,lower,upper,size\na,2,2,8\n")}, "lifetime [2, 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			code := run(append([]string{"plan"}, c.args...), nil, &out, &errs)
			if code != exitUsage || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("exit code %d, want 2 and one line with %q: %s", code, c.want, errs.String())
			}
		})
	}
}
