package train

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/train/input"
)

// Workers that read other data are found before the first step, and named; until
// then they hung, or went on with numbers that nobody meant.
func TestAgree(t *testing.T) {
	const train, eval = "1 1:1 3:.5\n-1 2:1\n1 3:1\n-1 1:2\n-1\n", "1 1:1\n-1 2:1\n"
	dir := func(train, eval string) string {
		d := t.TempDir()
		for name, text := range map[string]string{"train.svm": train, "eval.svm": eval} {
			if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	j := parse(t, `
model: {kind: logistic}
data:
  train: {format: libsvm, path: train.svm, features: 3}
  eval: {format: libsvm, path: eval.svm, features: 3}
batch: 2
optimizer: {kind: sgd, lr: 0.1}
strategy: {kind: allreduce}
`)
	for _, c := range []struct{ name, train, eval, want string }{
		{"same", train, eval, ""},
		{"fewer rows", train[:len(train)-3], eval, "rank 1 reads other data than rank 0: data.train is 5 rows"},
		{"other labels", "-" + train, eval, "rank 1 reads other data than rank 0: data.train is 5 rows"},
		{"other tests", train, eval + "1\n", "rank 1 reads other data than rank 0: data.eval is 2 rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dirs := []string{dir(train, eval), dir(c.train, c.eval)}
			_, errs := runAll(t, j, func(cfg *Config) { cfg.DataDir = dirs[cfg.Rank] })
			for r, err := range errs {
				switch {
				case c.want == "" && err != nil:
					t.Errorf("rank %d: %v", r, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("rank %d: got %v, want %q in it", r, err, c.want)
				}
			}
		})
	}
}

// What decides the number of steps is in the digest, lest ranks wait for one another.
func TestDigestOfSteps(t *testing.T) {
	digest := func(set ...string) string {
		j := parse(t, resumeJob, append([]string{"strategy.kind=ps", "checkpoint.dir=c"}, set...)...)
		columns, err := input.Columns(t.Context(), j, "")
		if err != nil {
			t.Fatal(err)
		}
		setup, err := NewSetup(j, columns)
		if err != nil {
			t.Fatal(err)
		}
		d, err := setup.Digest(0)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, set := range []string{"epochs=3", "steps=9", "eval.every=2", "eval.batch=7", "data.eval.format=generated", "network.kind=tcp"} {
		if digest(set) == digest("network.kind=unix") {
			t.Errorf("%s leaves the digest alone", set)
		}
	}
}

// The number of steps does not wrap around.
func TestStepsOfManyEpochs(t *testing.T) {
	s := &Setup{Job: parse(t, resumeJob, "checkpoint.dir=c", "steps=0", "epochs=9223372036854775807")}
	if n := s.steps(data.Order{Rows: 12, Batch: 4}); n < math.MaxInt64-3 {
		t.Errorf("got %d steps", n)
	}
}
