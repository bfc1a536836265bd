package train

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
)

// The evaluation at the end is of the parameters at the end and of every row
// once, whatever was evaluated before it, on any number of workers: it says
// what one process says of the checkpoint.
func TestEvaluationIsOfAllRowsOnce(t *testing.T) {
	for _, s := range []string{
		"{kind: serial}", "{kind: allreduce, workers: 3}", "{kind: ps, workers: 2, servers: 2}",
	} {
		t.Run(s, func(t *testing.T) {
			dir := t.TempDir()
			text := strings.Replace(resumeJob, "data: {", "eval: {every: 5, batch: 16}\ndata: {eval: {format: generated, first: 211, rows: 100, buckets: 500, seed: 5}, ", 1)
			j := parse(t, text+"strategy: "+s+"\n", "checkpoint.dir="+dir)
			main := runMem(t, j, 0)
			alone, err := Evaluate(t.Context(), j, "", dir)
			if err != nil {
				t.Fatal(err)
			}
			got, want := main.Eval, alone.Eval
			if got.Rows != 100 || want.Rows != 100 {
				t.Fatalf("%d rows, alone %d, want 100", got.Rows, want.Rows)
			}
			if math.Abs(*got.Loss-*want.Loss) > 1e-6 || *got.AUC != *want.AUC || *got.Accuracy != *want.Accuracy {
				t.Errorf("loss %v auc %v accuracy %v, alone %v %v %v", *got.Loss, *got.AUC, *got.Accuracy, *want.Loss, *want.AUC, *want.Accuracy)
			}
			if *main.TrainLoss >= math.Ln2 {
				t.Errorf("loss on the training rows %v: nothing was learnt", *main.TrainLoss)
			}
		})
	}
}

// Steps that are skipped one after the other end the run with a word on what to
// change; a step in between that counts begins the count again.
func TestSkippedStepsEndTheRun(t *testing.T) {
	text := "model: {kind: linear}\noptimizer: {kind: sgd, lr: 1e30}\nbatch: 30\n" +
		"data: {train: {format: generated, rows: 211, buckets: 500, seed: 5}}\nstrategy: {kind: allreduce}\n"
	for _, c := range []struct{ name, set, want string }{
		{"with a boundary", "eval.every=20", "the last 10 steps before step 11 were skipped"},
		{"at once, not after a thousand epochs", "eval.every=0", "the last 10 steps before step 11 were skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := lifeMem(t, parse(t, text, "epochs=1000", c.set), 0)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "optimizer.lr") {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
	w := &worker{member: &member{cfg: Config{Rank: 1, Logger: slog.New(slog.DiscardHandler)}}, order: data.Order{Rows: 10, Batch: 4}}
	for step := range int64(2*skipsMax - 1) {
		w.onStep(step, exec.Result{Skipped: step != skipsMax-1, Weight: 4, Faulty: []int{0}})
	}
	w.onStep(2*skipsMax, exec.Result{Skipped: true}) // of weight 0: neither one more nor a new beginning
	w.main.Skipped--
	if w.skipped != skipsMax-1 || w.main.Skipped != 2*skipsMax-2 {
		t.Errorf("%d skipped in a row, %d in all", w.skipped, w.main.Skipped)
	}
}

// A run of a few steps that were all skipped has trained nothing and says so.
func TestAllStepsSkipped(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.svm"), []byte("3e38 1:3e38\n3e38 1:3e38\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j := parse(t, "model: {kind: linear}\noptimizer: {kind: sgd, lr: 1}\nbatch: 1\nepochs: 2\n"+
		"data: {train: {format: libsvm, path: a.svm, features: 1}}\n")
	_, errs := runAll(t, j, func(cfg *Config) { cfg.DataDir = dir })
	if want := "the last 4 steps before step 4 were skipped"; errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
		t.Errorf("got %v, want %q in it", errs[0], want)
	}
}

// Rows that count nothing are no reason to lower the learning rate.
func TestAllWeightsZero(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.vw"), []byte("1 0 |f a\n-1 0 |f b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j := parse(t, "model: {kind: logistic}\noptimizer: {kind: sgd, lr: 1}\nbatch: 1\nepochs: 20\ndata: {train: {format: vw, path: a.vw}}\n")
	_, errs := runAll(t, j, func(cfg *Config) { cfg.DataDir = dir })
	if want := "all 40 steps were skipped: the weights of all rows are 0"; errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
		t.Errorf("got %v, want %q in it", errs[0], want)
	}
}
