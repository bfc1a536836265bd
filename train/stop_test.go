package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
)

// stopJob overfits a few rows, so that its tests get worse before the end.
const stopJob = `
model: {kind: ctr, hidden: [8], dim: 4}
optimizer: {kind: adam, lr: 0.05}
batch: 30
epochs: 40
data:
  train: {format: generated, rows: 90, buckets: 500, seed: 5}
  eval: {format: generated, first: 211, rows: 200, buckets: 500, seed: 5}
eval: {every: 4, batch: 64, metric: logloss, patience: 3}
checkpoint: {every: 10, keep: 2, best: true}
`

func stopStrategies() []string {
	return []string{"{kind: serial}", "{kind: allreduce, workers: 2}", "{kind: ps, workers: 2, servers: 2}"}
}

// A run ends after so many tests without a better one, on all ranks at one step,
// and keeps the checkpoint of the best: what a run that ends there has.
func TestEarlyStopping(t *testing.T) {
	for _, s := range stopStrategies() {
		t.Run(s, func(t *testing.T) {
			dir := t.TempDir()
			j := parse(t, stopJob+"strategy: "+s+"\n", "checkpoint.dir="+dir)
			main := runMem(t, j, 0)
			best := main.Best
			if best == nil || main.Steps != best.Step+3*4 || main.Steps >= 120 || best.Step == 0 {
				t.Fatalf("it ended after step %d, the best is %+v", main.Steps, best)
			}
			if best.Metric != "logloss" || !strings.Contains(main.Stopped, "logloss has not got better") || *main.Eval.LogLoss <= best.Value {
				t.Errorf("best %+v, stopped: %q, at the end %v", best, main.Stopped, *main.Eval.LogLoss)
			}
			again, err := Evaluate(t.Context(), j, "", checkpoint.BestDir(dir))
			if err != nil {
				t.Fatal(err)
			}
			if again.Checkpoint != best.Checkpoint || again.Step != best.Step || math.Abs(*again.Eval.LogLoss-best.Value) > 1e-12 {
				t.Errorf("the best checkpoint is %s of step %d with %v, the report has %+v", again.Checkpoint, again.Step, *again.Eval.LogLoss, best)
			}
			short := runMem(t, parse(t, stopJob+"strategy: "+s+"\n", "checkpoint.dir="+t.TempDir(), "eval.patience=0", fmt.Sprintf("steps=%d", main.Steps)), 0)
			if short.ParamsSHA256 != main.ParamsSHA256 || short.Stopped != "" || *short.Best != (report.Best{Metric: "logloss", Value: best.Value, Step: best.Step, Checkpoint: short.Best.Checkpoint}) {
				t.Errorf("a run of as many steps has other parameters, or another best: %+v", short.Best)
			}
			if dirs, err := checkpoint.List(dir); err != nil || len(dirs) != 2 {
				t.Errorf("checkpoints kept: %v, %v", dirs, err)
			}
		})
	}
}

// A run that died anywhere and goes on ends at the step, and with the best
// checkpoint, of the run that never did; one that ended early does not go on
// unless its patience is greater.
func TestEarlyStoppingResumes(t *testing.T) {
	for _, s := range stopStrategies() {
		t.Run(s, func(t *testing.T) {
			text, whole := stopJob+"strategy: "+s+"\n", t.TempDir()
			want := runMem(t, parse(t, text, "checkpoint.dir="+whole, "checkpoint.keep=99", "checkpoint.every=3"), 0)
			dirs, err := checkpoint.List(whole)
			if err != nil || len(dirs) < 4 {
				t.Fatalf("%v, %v", dirs, err)
			}
			for i, from := range dirs {
				if i%3 != 0 && filepath.Base(from) != filepath.Base(want.Best.Checkpoint) {
					continue // for time
				}
				part := t.TempDir()
				if err := os.CopyFS(filepath.Join(part, filepath.Base(from)), os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				c, err := checkpoint.Open(from)
				if err != nil {
					t.Fatal(err)
				}
				got := runMem(t, parse(t, text, "checkpoint.dir="+part, "checkpoint.every=3"), 1)
				if got.Steps != want.Steps || got.ParamsSHA256 != want.ParamsSHA256 || got.Best.Step != want.Best.Step || got.Best.Value != want.Best.Value {
					t.Errorf("from step %d: ends after %d with best %+v, want %d and %+v", c.Manifest.Step, got.Steps, got.Best, want.Steps, want.Best)
				}
				// The best checkpoint is there if it was written after the death, or was
				// the one that the run went on from.
				if kept := got.Best.Checkpoint != ""; kept != (want.Best.Step >= c.Manifest.Step) {
					t.Errorf("from step %d: the best, of step %d, is at %q", c.Manifest.Step, want.Best.Step, got.Best.Checkpoint)
				}
			}
			more := runMem(t, parse(t, text, "checkpoint.dir="+whole, "checkpoint.keep=99", "eval.patience=5"), 1)
			if more.Resumed != want.Steps || more.Steps <= want.Steps {
				t.Errorf("with more patience it goes from step %d to %d", more.Resumed, more.Steps)
			}
		})
	}
}

// What cannot be judged is refused before the first step.
func TestStopRefusals(t *testing.T) {
	for set, want := range map[string]string{
		"eval.metric=acu":       `did you mean "auc"?`,
		"eval.metric=rmse":      "tests of model ctr have no rmse; they have auc",
		"eval.metric=gauc":      "have no gauc",
		"eval.patience=-1":      "must not be negative",
		"eval.min_delta=-1":     "must not be negative",
		"eval.every=0":          "eval.every",
		"data.eval.format=":     "say which rows",
		"checkpoint.dir=":       "checkpoint.dir",
		"eval.min_delta=.nan":   "must not be negative",
		"eval.threshold=1":      "between 0 and 1",
		"eval.metric=precision": "",
	} {
		j, err := job.Parse("test", []byte(stopJob), []string{"checkpoint.dir=" + t.TempDir(), set})
		if err == nil {
			w := &worker{member: &member{cfg: Config{Job: j}, setup: setupFor(t, j)}}
			err = w.newJudge()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
