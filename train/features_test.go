package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/resume"
)

// featuresJob is of a table whose label depends on a number and a category.
const featuresJob = `
model: {kind: logistic}
data:
  train: {format: csv, path: train.csv, columns: [who, x, c, y], missing: ["?"]}
  eval: {format: csv, path: eval.csv}
  label: {column: y, positive: ["yes"], negative: ["no"]}
  group: who
  features:
    - {kind: number, column: x, normalize: standard, indicator: true}
    - {kind: category, column: c}
    - {kind: cross, columns: [c, x], buckets: 50}
eval: {group: group}
batch: 20
epochs: 3
optimizer: {kind: adam, lr: 0.05}
checkpoint: {keep: 9}
`

// writeTable writes a file of featuresJob: x is about center, c one of letters.
func writeTable(t *testing.T, path string, seed uint64, rows int, center float64, letters string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for i := range rows {
		x, c := center+r.NormFloat64(), letters[r.IntN(len(letters))]
		y := "no"
		if x > center || c == 'a' {
			y = "yes"
		}
		text := fmt.Sprintf("%.3f", x)
		if i%9 == 0 {
			text = "?"
		}
		fmt.Fprintf(&b, "user%d,%s,%c,%s\n", i%5, text, c, y)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tableDir is a data directory for featuresJob.
func tableDir(t *testing.T) string {
	dir := t.TempDir()
	writeTable(t, filepath.Join(dir, "train.csv"), 1, 400, 10, "abc")
	writeTable(t, filepath.Join(dir, "eval.csv"), 2, 100, 10, "abcd")
	return dir
}

// trainTable trains featuresJob over sockets.
func trainTable(t *testing.T, dir string, j job.Job) ([]report.Rank, []error) {
	t.Helper()
	return runAll(t, j, func(cfg *Config) { cfg.DataDir = dir })
}

// Features are fitted to the training rows, saved beside the checkpoint and used
// as they are by tests and by a run that goes on; whatever the strategy, the model
// is the same.
func TestFeatures(t *testing.T) {
	dir := tableDir(t)
	var auc []float64
	ckpt := ""
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 2}", "{kind: ps, workers: 1, servers: 2}"} {
		ckpt = t.TempDir()
		reports, errs := trainTable(t, dir, parse(t, featuresJob+"strategy: "+s+"\n", "checkpoint.dir="+ckpt))
		for r, err := range errs {
			if err != nil {
				t.Fatalf("%s: rank %d: %v", s, r, err)
			}
		}
		e := reports[0].Main.Eval
		if *e.AUC < .9 || e.GroupAUC == nil || e.Groups != 5 {
			t.Errorf("%s: tested %+v", s, e)
		}
		auc = append(auc, *e.AUC)
	}
	if auc[0] != auc[1] && auc[0] != auc[2] {
		t.Errorf("AUC by strategy: %v", auc)
	}
	c, _, err := checkpoint.Resolve(ckpt)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.File("features.json")
	if err != nil {
		t.Fatal(err)
	}
	f, err := feature.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.Features[0].Moments[0]; f.Rows != 400 || m.Count != 355 || len(f.Features[1].Values) != 3 {
		t.Errorf("learned of %d rows, %d numbers, the values %q", f.Rows, m.Count, f.Features[1].Values)
	}

	// Other training rows would teach other features: a test does not look at them.
	j := parse(t, featuresJob)
	want, err := Evaluate(t.Context(), j, dir, ckpt)
	if err != nil {
		t.Fatal(err)
	}
	writeTable(t, filepath.Join(dir, "train.csv"), 3, 50, 99, "xyz")
	got, err := Evaluate(t.Context(), j, dir, ckpt)
	if err != nil {
		t.Fatal(err)
	}
	if *got.Eval.AUC != *want.Eval.AUC || *want.Eval.AUC != auc[2] {
		t.Errorf("AUC %v in training, %v tested, %v tested beside other training rows", auc[2], *want.Eval.AUC, *got.Eval.AUC)
	}
}

// A run that goes on with other features than it began with is refused with the
// difference, and so is a test; with the same it goes on, with those of the
// checkpoint.
func TestFeaturesOfAnotherJob(t *testing.T) {
	dir, ckpt := tableDir(t), t.TempDir()
	whole := []string{"checkpoint.dir=" + ckpt, "checkpoint.every=20"}
	if _, errs := trainTable(t, dir, parse(t, featuresJob, append(whole, "steps=20")...)); errs[0] != nil {
		t.Fatal(errs[0])
	}
	other := strings.Replace(featuresJob, "buckets: 50", "buckets: 60", 1)
	for _, text := range []string{other, strings.Replace(featuresJob, "normalize: standard", "normalize: minmax", 1)} {
		j := parse(t, text, append(whole, "checkpoint.resume=true")...)
		if _, err := resume.Point(j, 0, nil); err == nil || !strings.Contains(err.Error(), "what must not change on resume differs") {
			t.Errorf("resume with other features: %v", err)
		}
		if _, err := Evaluate(t.Context(), j, dir, ckpt); err == nil || !strings.Contains(err.Error(), "was written with other features") {
			t.Errorf("a test with other features: %v", err)
		}
	}
	_, err := Evaluate(t.Context(), parse(t, other), dir, ckpt)
	if err == nil || !strings.Contains(err.Error(), `was    "buckets": 50`) || !strings.Contains(err.Error(), `is     "buckets": 60`) {
		t.Errorf("the difference is not shown: %v", err)
	}
	reports, errs := trainTable(t, dir, parse(t, featuresJob, append(whole, "checkpoint.resume=true")...))
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	if m := reports[0].Main; m.Resumed != 20 || m.Steps != 60 {
		t.Errorf("went on from %d to %d", m.Resumed, m.Steps)
	}
}

// A file without labels is predicted as one with them.
func TestPredictWithoutLabels(t *testing.T) {
	dir, ckpt := tableDir(t), t.TempDir()
	softmax := strings.NewReplacer("logistic", "softmax, classes: 2", `, positive: ["yes"], negative: ["no"]`, "", "eval: {group: group}", "").Replace(featuresJob)
	for i, text := range []string{featuresJob, softmax} {
		at := filepath.Join(ckpt, fmt.Sprint(i))
		j := parse(t, text, "checkpoint.dir="+at)
		if _, errs := trainTable(t, dir, j); errs[0] != nil {
			t.Fatal(errs[0])
		}
		labelled, err := os.ReadFile(filepath.Join(dir, "eval.csv"))
		if err != nil {
			t.Fatal(err)
		}
		bare := filepath.Join(dir, "bare.csv")
		var b strings.Builder
		b.WriteString("who,x,c\n")
		for line := range strings.Lines(string(labelled)) {
			b.WriteString(line[:strings.LastIndex(line, ",")] + "\n")
		}
		if err := os.WriteFile(bare, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		scores := func(j job.Job, path string, wantLabels bool) (v []float64) {
			_, err := Predict(t.Context(), j, dir, at, path, func(s *Scored) error {
				if want := i == 1; want != slices.Equal(s.Names, []string{"no", "yes"}) {
					t.Errorf("classes are called %q", s.Names)
				}
				v = append(v, s.Value...)
				for _, y := range s.Label {
					if math.IsNaN(y) == wantLabels {
						t.Errorf("a label is %v", y)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		with := scores(j, "", true)
		j.Data.Eval.Columns, j.Data.Eval.Header = nil, true
		without := scores(j, bare, false)
		if len(with) != 100 || !slices.Equal(with, without) {
			t.Errorf("%v are predicted with labels, %v without", with, without)
		}
	}
}

// Ranks whose features learned of other rows are found before the first step.
func TestFeaturesAgree(t *testing.T) {
	dirs := []string{tableDir(t), tableDir(t)}
	// One value late in the file, which no sample of rows shows.
	path := filepath.Join(dirs[1], "train.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	at := 213
	cells := strings.Split(lines[at], ",")
	cells[1] = "11.11"
	lines[at] = strings.Join(cells, ",")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := runAll(t, parse(t, featuresJob, "strategy.kind=allreduce"), func(cfg *Config) { cfg.DataDir = dirs[cfg.Rank] })
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "rank 1 reads other data than rank 0") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// What is wrong with columns is an error of the job's field, and with rows one of
// file, line and column.
func TestFeatureFaults(t *testing.T) {
	dir := tableDir(t)
	for _, c := range []struct{ old, now, want string }{
		{"column: c}", "column: cc}", `data.train: job: data.features[1].column: the file has no column "cc"`},
		{"{column: y, positive", "{column: z, positive", `data.train: job: data.label.column: the file has no column "z"`},
		{`negative: ["no"]`, `negative: ["nope"]`, `train.csv:`},
		{`negative: ["no"]`, `negative: ["nope"]`, `column "y": label "no" is none of ["nope" "yes"]`},
		{"kind: category, column: c", "kind: number, column: c", `"c" is text, not number`},
	} {
		_, err := input.OpenSource(t.Context(), parse(t, strings.Replace(featuresJob, c.old, c.now, 1)), dir, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: got %v, want %q in it", c.now, c.old, err, c.want)
		}
	}
}

// A server reads no row of any file: it has its plan of what rank 0 says of the columns,
// also where only reading the whole file tells how many ids there are.
func TestServersReadNoData(t *testing.T) {
	dir := tableDir(t)
	if err := os.WriteFile(filepath.Join(dir, "rows.svm"), []byte("1 1:1 7:.5\n-1 2:1\n1 3:1\n-1 1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	libsvm := "\nmodel: {kind: logistic}\nbatch: 2\noptimizer: {kind: sgd, lr: 0.1}\ndata: {train: {format: libsvm, path: rows.svm}}\n"
	for _, text := range []string{featuresJob, libsvm} {
		run := func(set ...string) *report.Main {
			t.Helper()
			ckpt, empty := t.TempDir(), t.TempDir()
			var main *report.Main
			for _, more := range [][]string{{"epochs=1"}, {"epochs=2", "checkpoint.resume=true"}} {
				j := parse(t, text, append(append(set, "checkpoint.dir="+ckpt), more...)...)
				reports, errs := runAll(t, j, func(cfg *Config) {
					cfg.DataDir = dir
					if cfg.role() == "server" {
						cfg.DataDir = empty
					}
				})
				for r, err := range errs {
					if err != nil {
						t.Fatalf("rank %d: %v", r, err)
					}
				}
				main = reports[0].Main
			}
			return main
		}
		alone, served := run("strategy.kind=serial"), run("strategy.kind=ps", "strategy.workers=1", "strategy.servers=2")
		if alone.ParamsSHA256 != served.ParamsSHA256 || served.Resumed == 0 {
			t.Errorf("with servers the parameters are others: %+v, alone %+v", served, alone)
		}
	}
}

// A server whose job is another one finds that its plan differs, and says so before the
// first step.
func TestServerOfAnotherJob(t *testing.T) {
	dir := tableDir(t)
	j := parse(t, featuresJob, "strategy.kind=ps", "strategy.workers=2")
	_, errs := runAll(t, j, func(cfg *Config) {
		cfg.DataDir = dir
		if cfg.role() == "server" {
			cfg.Job.Batch = 10
		}
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "plans differ: ranks 0, 1 have plan") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
