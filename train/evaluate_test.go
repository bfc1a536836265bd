package train

import (
	"log/slog"
	"math"
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
	text := "model: {kind: linear}\noptimizer: {kind: sgd, lr: 1e30}\nbatch: 30\nepochs: 9\neval: {every: 20}\n" +
		"data: {train: {format: generated, rows: 211, buckets: 500, seed: 5}}\nstrategy: {kind: allreduce}\n"
	_, errs := lifeMem(t, parse(t, text), 0)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "were skipped") || !strings.Contains(err.Error(), "optimizer.lr") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	w := &worker{member: &member{cfg: Config{Rank: 1, Logger: slog.New(slog.DiscardHandler)}}, order: data.Order{Rows: 10, Batch: 4}}
	for step := range int64(2*skipsMax - 1) {
		w.onStep(step, exec.Result{Skipped: step != skipsMax-1, Weight: 4})
	}
	if w.skipped != skipsMax-1 || w.main.Skipped != 2*skipsMax-2 {
		t.Errorf("%d skipped in a row, %d in all", w.skipped, w.main.Skipped)
	}
}
