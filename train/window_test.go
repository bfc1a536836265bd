package train

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/generate"
)

// windowJob trains 600 rows, of which 48 KB are in memory at a time.
const windowJob = `
model: {kind: logistic}
optimizer: {kind: adam, lr: 0.05}
batch: 50
epochs: 3
precision: f64
seed: 3
data: {train: {format: criteo, path: PATH, buckets: 100}, memory: 48KB, cache_dir: CACHE}
checkpoint: {every: 7, keep: 9}
`

func windowText(t *testing.T) (text, path string) {
	t.Helper()
	var lines bytes.Buffer
	if err := generate.WriteCriteo(&lines, generate.New(1, 100, 0, 600), 0, 600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("PATH", path, "CACHE", t.TempDir()).Replace(windowJob), path
}

// Rows that do not fit into memory train alike on any ranks, and a run that goes on in
// mid-window ends with the bits of the run that was never interrupted; with another
// limit of memory, which means another order, it is refused.
func TestWindowedRuns(t *testing.T) {
	text, _ := windowText(t)
	var loss []float64
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 3}", "{kind: ps, workers: 2, servers: 1}"} {
		whole, part := t.TempDir(), t.TempDir()
		want := runMem(t, parse(t, text+"strategy: "+s, "checkpoint.dir="+whole), 0)
		middle := checkpointOf(t, whole, 14)
		if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
			t.Fatal(err)
		}
		got := runMem(t, parse(t, text+"strategy: "+s, "checkpoint.dir="+part), 1)
		if want.Steps != 36 || want.Examples != 1800 || got.Resumed != 14 || got.ParamsSHA256 != want.ParamsSHA256 {
			t.Errorf("%s: the whole run %+v, the one that went on %+v", s, want, got)
		}
		loss = append(loss, *want.TrainLoss)
		other := parse(t, text+"strategy: "+s, "checkpoint.dir="+part, "data.memory=1GB")
		_, errs := lifeMem(t, other, 1)
		if err := errors.Join(errs...); !errors.Is(err, data.ErrOtherData) || !strings.Contains(err.Error(), "data.memory") {
			t.Errorf("%s: with more memory: %v", s, err)
		}
	}
	for _, l := range loss[1:] {
		if math.Abs(l-loss[0]) > 1e-9 {
			t.Errorf("losses %v", loss)
		}
	}
}

// A sample of the rows with label 0 leads to about the loss that all rows lead to,
// because those that are left weigh more; without the weights it does not.
func TestNegativesTrain(t *testing.T) {
	text, path := windowText(t)
	text = strings.Replace(text, "memory: 48KB", "memory: 1MB", 1)
	run := func(set ...string) float64 {
		j := parse(t, text, append(set, "checkpoint.every=0", "epochs=10", "optimizer.lr=0.01",
			"data.eval.format=criteo", "data.eval.buckets=100", "data.eval.path="+path)...)
		return *runMem(t, j, 0).Eval.Loss
	}
	all, one, half := run(), run("data.train.negatives.keep=1"), run("data.train.negatives.keep=0.5")
	if math.Abs(all-one) > 1e-9 {
		t.Errorf("with weights that are all 1 the loss is %v, without %v", one, all)
	}
	if math.Abs(half-all) > .03 || half == all {
		t.Errorf("with half of the negative rows the loss is %v, with all %v", half, all)
	}
}

// Without rows to test on of its own, a job tests on what the split puts aside.
func TestSplitTests(t *testing.T) {
	text, _ := windowText(t)
	text = strings.Replace(text, "buckets: 100}", "buckets: 100, split: {by: fraction, validation: 0.2, test: [0.1]}}", 1)
	rows := map[string]int{}
	for _, part := range []string{"", "validation", "test"} {
		set := []string{"checkpoint.every=0", "epochs=2"}
		if part != "" {
			set = append(set, "data.eval.split.part="+part)
		}
		report := runMem(t, parse(t, text, set...), 0)
		rows[part] = report.Eval.Rows
		rows["train"] = report.TrainRows
		if report.Examples != 2*int64(report.TrainRows) {
			t.Errorf("%d examples in two epochs of %d rows", report.Examples, report.TrainRows)
		}
	}
	if rows[""] != rows["validation"] || rows["train"]+rows["validation"]+rows["test"] != 600 || rows["test"] < 35 || rows["validation"] < 85 {
		t.Errorf("%v", rows)
	}
}
