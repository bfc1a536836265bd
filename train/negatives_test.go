package train

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangline/gangline/data/generate"
	"github.com/gangline/gangline/metric"
)

// A model of a tenth of the negative rows, which count ten times, predicts the same
// probabilities as one of all rows: what it says of other rows is calibrated as it is,
// without a shift afterwards, and orders them about as well.
func TestNegativesCalibration(t *testing.T) {
	dir := t.TempDir()
	const train, test = 30_000, 15_000
	for name, at := range map[string][2]int{"train": {0, train}, "test": {train, test}} {
		var lines bytes.Buffer
		if err := generate.WriteCriteo(&lines, generate.New(1, 1000, at[0], at[1]), 0, at[1]); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), lines.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(keep string) (rows int, e *metric.Result) {
		main := runMem(t, parse(t, `
model: {kind: logistic}
optimizer: {kind: adam, lr: 0.003}
batch: 200
epochs: 3
data: {train: {format: criteo, buckets: 1000}, eval: {format: criteo, buckets: 1000}}
`, "data.train.path="+filepath.Join(dir, "train"), "data.eval.path="+filepath.Join(dir, "test"), "data.train.negatives.keep="+keep), 0)
		return main.TrainRows, main.Eval
	}
	_, all := run("0")
	rows, sampled := run("0.1")
	if rows > train/3 || rows < train/4 {
		t.Errorf("%d of %d rows are trained on", rows, train)
	}
	for name, e := range map[string]*metric.Result{"all": all, "sampled": sampled} {
		ratio, off := *e.Calibration.Ratio, *e.Calibration.Error
		if math.Abs(ratio-1) > .06 || off > .03 {
			t.Errorf("%s: predicted over observed is %.4f, the calibration error %.4f", name, ratio, off)
		}
		t.Logf("%s: ratio %.4f, error %.4f, AUC %.4f", name, ratio, off, *e.AUC)
	}
	if *sampled.AUC < *all.AUC-.02 {
		t.Errorf("AUC %.4f, of all rows %.4f", *sampled.AUC, *all.AUC)
	}
}
