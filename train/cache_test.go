package train

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/train/input"
)

// cacheJob trains on what featuresJob is converted to and tests on the raw file.
const cacheJob = `
model: {kind: logistic}
data:
  train: {format: cache, path: train.gcache}
  eval: {format: csv, path: eval.csv, columns: [who, x, c, y], missing: ["?"]}
  group: who
batch: 20
epochs: 3
optimizer: {kind: adam, lr: 0.05}
checkpoint: {keep: 9}
`

// values are what a model says of a file.
func values(t *testing.T, dir, text, ckpt, path string, set ...string) (v []float64) {
	t.Helper()
	_, err := Predict(t.Context(), parse(t, text, set...), dir, ckpt, path, func(s *Scored) error {
		v = append(v, s.Value...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A model trained on a cache file is the one trained on the table it was converted
// from: its tests, checkpoints and predictions go by the features that the file keeps.
func TestCacheKeepsFeatures(t *testing.T) {
	dir, fromCSV, fromCache := tableDir(t), t.TempDir(), t.TempDir()
	h, err := input.Convert(t.Context(), parse(t, featuresJob), dir, false, filepath.Join(dir, "train.gcache"))
	if err != nil || len(h.Features) == 0 {
		t.Fatalf("the header keeps %d bytes of features: %v", len(h.Features), err)
	}
	reports, errs := trainTable(t, dir, parse(t, featuresJob, "checkpoint.dir="+fromCSV))
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	want := reports[0].Main
	writeTable(t, filepath.Join(dir, "train.csv"), 3, 50, 99, "xyz") // nobody looks at it any more
	for _, s := range []string{"serial", "ps"} {
		ckpt := filepath.Join(fromCache, s)
		reports, errs := trainTable(t, dir, parse(t, cacheJob, "checkpoint.dir="+ckpt, "strategy.kind="+s, "strategy.workers=1"))
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		if got := reports[0].Main; *got.Eval.AUC != *want.Eval.AUC || *got.Eval.GroupAUC != *want.Eval.GroupAUC {
			t.Errorf("%s: tested %+v, want %+v", s, got.Eval, want.Eval)
		}
		c, _, err := checkpoint.Resolve(ckpt)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.File("features.json"); err != nil {
			t.Error(err)
		}
		raw := filepath.Join(dir, "eval.csv")
		scores := values(t, dir, featuresJob, fromCSV, raw)
		if got := values(t, dir, cacheJob, ckpt, raw); len(scores) != 100 || !slices.Equal(got, scores) {
			t.Errorf("%s: the job of the cache predicts %v, want %v", s, got, scores)
		}
		if got := values(t, dir, featuresJob, ckpt, raw); !slices.Equal(got, scores) {
			t.Errorf("%s: the job of the table predicts %v, want %v", s, got, scores)
		}
	}
	on := []string{"checkpoint.dir=" + filepath.Join(fromCache, "serial"), "checkpoint.resume=true", "epochs=4"}
	if reports, errs = trainTable(t, dir, parse(t, cacheJob, on...)); errs[0] != nil || reports[0].Main.Resumed != 60 {
		t.Errorf("a run that goes on: %v", errs[0])
	}
}

// Cache files whose rows were made by other features are refused, as is a raw file
// where there are none to make of it.
func TestCacheOfOtherFeatures(t *testing.T) {
	dir, ckpt := tableDir(t), t.TempDir()
	at := filepath.Join(dir, "train.gcache")
	convert := func(eval bool, path string) {
		t.Helper()
		if _, err := input.Convert(t.Context(), parse(t, featuresJob), dir, eval, path); err != nil {
			t.Fatal(err)
		}
	}
	convert(false, at)
	other := filepath.Join(dir, "other.gcache")
	convert(true, filepath.Join(dir, "eval.gcache"))
	if _, errs := trainTable(t, dir, parse(t, cacheJob, "checkpoint.dir="+ckpt)); errs[0] != nil {
		t.Fatal(errs[0])
	}
	asCache := []string{"data.eval.format=cache", "data.eval.columns=", "data.eval.missing=", "data.group=", "eval.group=group"}
	if got, err := Evaluate(t.Context(), parse(t, cacheJob, append(asCache, "data.eval.path=eval.gcache")...), dir, ckpt); err != nil || got.Eval.Rows != 100 {
		t.Errorf("a converted test file: %+v, %v", got, err)
	}
	writeTable(t, filepath.Join(dir, "train.csv"), 5, 400, 10, "abc")
	convert(true, other)
	_, err := Evaluate(t.Context(), parse(t, cacheJob, append(asCache, "data.eval.path=other.gcache")...), dir, ckpt)
	if err == nil || !strings.Contains(err.Error(), "data.eval.path: "+other+" was converted with features that learned of other rows") {
		t.Errorf("a test file of other features: %v", err)
	}
	convert(false, at)
	if _, err = Evaluate(t.Context(), parse(t, cacheJob), dir, ckpt); err == nil || !strings.Contains(err.Error(), "data.train.path: "+at+" was converted with") {
		t.Errorf("training rows of other features: %v", err)
	}

	svm := filepath.Join(dir, "rows.svm")
	if err := os.WriteFile(svm, []byte("1 1:1\n-1 2:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	libsvm := "\nmodel: {kind: logistic}\noptimizer: {kind: sgd, lr: 1}\ndata: {train: {format: libsvm, path: rows.svm}}\n"
	if _, err := input.Convert(t.Context(), parse(t, libsvm), dir, false, at); err != nil {
		t.Fatal(err)
	}
	if _, err = input.OpenSource(t.Context(), parse(t, cacheJob), dir, true); err == nil || !strings.Contains(err.Error(), "data.eval.format: csv has named columns, but the cache file of data.train keeps no features") {
		t.Errorf("a table beside a cache without features: %v", err)
	}
	_, err = Predict(t.Context(), parse(t, cacheJob, "data.eval.format=cache", "data.eval.columns=", "data.eval.missing=", "data.group="), dir, ckpt, svm, nil)
	if err == nil || !strings.Contains(err.Error(), "say what form it has, data.eval.format=csv") {
		t.Errorf("a file of another form: %v", err)
	}
}
