package tune_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/tune"
)

// machine is a made-up one: how long a step takes with settings, times noise.
type machine struct {
	noise  *rand.Rand
	level  float64            // of the noise, as a share
	factor map[string]float64 // of the time of a step, by setting
	losses map[string]float64
	errs   map[string]error
	start  float64 // seconds of a trial before its first step
}

func (m *machine) run(_ context.Context, settings []string, steps int) (tune.Trial, error) {
	t := tune.Trial{Step: .01 * (1 + m.level*(2*m.noise.Float64()-1)), Loss: 1}
	for _, s := range settings {
		if err := m.errs[s]; err != nil {
			return tune.Trial{Wall: .3}, err
		}
		if f, ok := m.factor[s]; ok {
			t.Step *= f
		}
		t.Loss += m.losses[s]
	}
	t.Wall = m.start + float64(steps)*t.Step
	return t, nil
}

func newMachine(seed uint64, level float64) *machine {
	return &machine{start: .3, noise: rand.New(rand.NewPCG(seed, 1)), level: level, factor: map[string]float64{}, losses: map[string]float64{}, errs: map[string]error{}}
}

func candidates(settings ...string) (all []tune.Candidate) {
	for _, s := range settings {
		all = append(all, tune.Candidate{Settings: []string{s}, Lossy: strings.HasPrefix(s, "lossy")})
	}
	return all
}

func search(t *testing.T, m *machine, cfg tune.Config) *tune.Result {
	t.Helper()
	if cfg.Budget == 0 {
		cfg.Budget = time.Minute
	}
	r, err := tune.Search(t.Context(), cfg, m.run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The planted best is found through noise of the size of its gain, and two that add up
// are recommended together.
func TestFindsPlanted(t *testing.T) {
	for seed := range uint64(30) {
		m := newMachine(seed, .02)
		m.factor = map[string]float64{"a=1": 1.1, "a=2": .8, "a=3": .95, "b=1": 1.3, "b=2": 1.02, "c=1": 1, "d=1": 2}
		r := search(t, m, tune.Config{Candidates: candidates("a=1", "a=2", "a=3", "b=1", "b=2", "c=1", "d=1")})
		if r.Best == nil || r.Best.Settings[0] != "a=2" || r.Best.Ratio < 1.2 || r.Best.Ratio > 1.3 || r.Best.Pairs != tune.Pairs {
			t.Fatalf("seed %d: %+v: %s", seed, r.Best, r.Why)
		}
		m = newMachine(seed, .02)
		m.factor = map[string]float64{"a=1": .9, "b=1": .8, "a=2": .97}
		r = search(t, m, tune.Config{Candidates: candidates("a=1", "a=2", "b=1", "b=2")})
		if r.Best == nil || r.Best.String() != "b=1 a=1" {
			t.Fatalf("seed %d: %+v: %s", seed, r.Best, r.Why)
		}
	}
}

// Noise alone is no reason to change anything, nor is a gain too small to matter.
func TestNoChange(t *testing.T) {
	changed := 0
	for seed := range uint64(200) {
		m := newMachine(seed, .2)
		r := search(t, m, tune.Config{Candidates: candidates("a=1", "a=2", "a=3", "a=4", "b=1", "b=2", "b=3", "c=1")})
		if r.Best != nil {
			changed++
		} else if !strings.HasPrefix(r.Why, "no change: nothing is faster") {
			t.Fatal(r.Why)
		}
	}
	if changed > 8 { // 2 finalists, each by chance in one of 128
		t.Errorf("a change was recommended %d times of 200 where there was none", changed)
	}
	m := newMachine(1, 0)
	m.factor["a=1"] = .99
	if r := search(t, m, tune.Config{Candidates: candidates("a=1", "a=2")}); r.Best != nil {
		t.Errorf("a gain of 1 %% is recommended: %s", r.Why)
	}
	if r := search(t, newMachine(1, 0), tune.Config{}); r.Best != nil || !strings.Contains(r.Why, "no candidate") {
		t.Errorf("got %+v", r)
	}
}

// The budget bounds the search, whatever a step takes.
func TestBudget(t *testing.T) {
	many := candidates("a=1", "a=2", "a=3", "a=4", "b=1", "b=2", "b=3", "c=1", "c=2")
	for _, budget := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
		m := newMachine(1, .01)
		m.factor["b=2"] = .5
		r := search(t, m, tune.Config{Candidates: many, Budget: budget})
		if r.Spent > budget*13/10 {
			t.Errorf("%v spent of %v", r.Spent, budget)
		}
		if budget > 20*time.Second && (r.Best == nil || r.Best.String() != "b=2") {
			t.Errorf("%v: %s", budget, r.Why)
		}
	}
	m := newMachine(1, .01)
	m.factor["a=1"] = .5
	m.start = 2
	r := search(t, m, tune.Config{Candidates: many, Budget: 10 * time.Second})
	if r.Best != nil || !strings.Contains(r.Why, "the budget was spent after") || r.Spent > 14*time.Second {
		t.Errorf("%+v: %v: %s", r.Best, r.Spent, r.Why)
	}
}

// What changes the loss by more than is allowed is out, however fast; what fails, too.
func TestDropped(t *testing.T) {
	m := newMachine(1, .01)
	m.factor = map[string]float64{"lossy=1": .3, "lossy=2": .7, "bad=1": .1}
	m.losses = map[string]float64{"lossy=1": .1, "lossy=2": -.005}
	m.errs["bad=1"] = errors.New("it\ndoes not fit")
	r := search(t, m, tune.Config{Candidates: candidates("lossy=1", "lossy=2", "bad=1", "a=1"), MaxError: .01})
	if r.Best == nil || r.Best.String() != "lossy=2" {
		t.Fatalf("%+v: %s", r.Best, r.Why)
	}
	for _, row := range r.Rows {
		want := map[string]string{"lossy=1": "the loss is off by 0.1, more than 0.01", "bad=1": "failed: it"}[row.String()]
		if row.Dropped != want {
			t.Errorf("%v: %q, want %q", row, row.Dropped, want)
		}
	}
	m.errs[""] = nil
	broken := func(context.Context, []string, int) (tune.Trial, error) { return tune.Trial{}, errors.New("no data") }
	if _, err := tune.Search(t.Context(), tune.Config{Budget: time.Minute}, broken); err == nil || !strings.Contains(err.Error(), "the job as it is does not run: no data") {
		t.Errorf("got %v", err)
	}
}

const jobText = `
model: {kind: logistic}
data: {train: {format: generated, buckets: 100, rows: 1000}}
strategy: {kind: allreduce, workers: 2}
optimizer: {kind: sgd, lr: 0.1}
`

func parsed(t *testing.T, settings ...string) *job.Job {
	t.Helper()
	j, err := job.Parse("test", []byte(jobText), settings)
	if err != nil {
		t.Fatal(err)
	}
	return &j
}

// Of settings with the same plans one is tried, of those that do not fit none.
func TestCandidates(t *testing.T) {
	digests := map[string]string{
		"": "own", "strategy.bucket=1MiB": "own", "strategy.bucket=64KiB": "small", "strategy.bucket=4MiB": "whole", "strategy.bucket=16MiB": "whole",
		"strategy.bucket=256KiB": "own", "strategy.algorithm=auto": "own", "strategy.algorithm=ring": "own", "strategy.algorithm=tree": "tree",
		"strategy.algorithm=halving": "halving", "strategy.algorithm=doubling": "doubling",
	}
	got, err := tune.Candidates(parsed(t), 4, 0, func(settings []string) (string, error) {
		if d, ok := digests[strings.Join(settings, "")]; ok {
			return d, nil
		}
		return "", errors.New("does not fit")
	})
	want := candidates("strategy.bucket=64KiB", "strategy.bucket=4MiB", "strategy.algorithm=halving", "strategy.algorithm=doubling", "strategy.algorithm=tree",
		"threads=1", "threads=4")
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	serial := parsed(t, "strategy.kind=serial", "strategy.workers=1", "backend=ref")
	if got, err := tune.Candidates(serial, 4, 0, func([]string) (string, error) { return "", nil }); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	hosts := parsed(t, "network.hosts=[1,1]", "network.kind=tcp")
	if err := tune.Check(hosts); err == nil || !strings.Contains(err.Error(), "network.hosts") {
		t.Errorf("got %v", err)
	}
}

// A file of settings belongs to a job and its ranks.
func TestOverlay(t *testing.T) {
	j := parsed(t)
	r := &tune.Result{Best: &tune.Row{Candidate: tune.Candidate{Settings: []string{"strategy.bucket=4MiB", "threads=2"}}}, Why: "fast: {very}"}
	o, err := tune.NewOverlay(j, r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tuned.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(text))
	got, err := tune.ReadOverlay(path)
	if d := cmp.Diff(o, got); d != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	if err := got.Fits(parsed(t, got.Set...)); err != nil {
		t.Error(err)
	}
	for want, setting := range map[string]string{"2 ranks, the job has 3": "strategy.workers=3", "another job": "batch=7"} {
		if err := got.Fits(parsed(t, setting)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for want, text := range map[string]string{
		"unknown field": string(text) + "more: 1\n", "format is": "format: gangline.costs/1\n", "at most": strings.Repeat("#", 1<<17),
	} {
		write(text)
		if _, err := tune.ReadOverlay(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if _, err := tune.ReadOverlay(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}
