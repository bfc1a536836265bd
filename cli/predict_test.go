package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
)

// invoke runs a command in this process.
func invoke(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), job.Extensions{}, args, &out, &errs)
	return out.String(), errs.String(), status
}

// must is invoke of what must not fail.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, status := invoke(t, args...)
	if status != 0 {
		t.Fatalf("%v: status %d: %s", args, status, errs)
	}
	return out
}

// trainedOn writes rows and a job for them, trains it and returns the job.
func trainedOn(t *testing.T, model, rows string) (jobFile, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"train.svm": rows,
		"job.yaml": "model: " + model + "\noptimizer: {kind: adam, lr: 0.05}\nbatch: 16\nepochs: 20\ncheckpoint: {dir: " + filepath.Join(dir, "ckpt") +
			"}\ndata: {train: {format: libsvm, path: train.svm, features: 4, label_base: 1}, eval: {format: libsvm, path: train.svm, features: 4, label_base: 1}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	jobFile = filepath.Join(dir, "job.yaml")
	trained(t, "train", jobFile)
	return jobFile, dir
}

// classRows are 60 rows of three classes, called 1 to 3, that a model can tell
// apart, in an order of their own.
func classRows() string {
	var b strings.Builder
	for i := range 60 {
		class := (i*i + i/7) % 3
		fmt.Fprintf(&b, "%d %d:%d 4:%g\n", class+1, class+1, 1, float64(i)/100)
	}
	return b.String()
}

func records(t *testing.T, text string) [][]string {
	t.Helper()
	r, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Classes come in the input's order, are called as in the input, and as many are
// right as eval says; all formats hold the same.
func TestPredictClasses(t *testing.T) {
	rows := classRows()
	jobFile, dir := trainedOn(t, "{kind: softmax, classes: 3}", rows)
	file := filepath.Join(dir, "out.csv")
	must(t, "predict", jobFile, "--out", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := records(t, string(text))
	if strings.Join(got[0], " ") != "row prediction probability label" || len(got) != 61 {
		t.Fatalf("%d records, the first %v", len(got), got[0])
	}
	right := 0
	for i, line := range strings.Split(strings.TrimSpace(rows), "\n") {
		r := got[i+1]
		if p, err := strconv.ParseFloat(r[2], 64); r[0] != strconv.Itoa(i) || r[3] != line[:1] || err != nil || p < 1./3 || p > 1 {
			t.Fatalf("row %d is %v, the input %q", i, r, line)
		}
		if r[1] == r[3] {
			right++
		}
	}
	if out := must(t, "eval", jobFile); right < 50 || !strings.Contains(out, fmt.Sprintf("accuracy %.5f", float64(right)/60)) {
		t.Errorf("%d of 60 are right; eval says %s", right, out)
	}
	lines := strings.Split(strings.TrimSpace(must(t, "predict", jobFile, "--out", "-", "--format", "jsonl")), "\n")
	must(t, "predict", jobFile, "--out", filepath.Join(dir, "out.parquet"))
	columns, err := parquet.ReadFile[struct {
		Row         int64    `parquet:"row"`
		Prediction  int64    `parquet:"prediction"`
		Probability float64  `parquet:"probability"`
		Label       *float64 `parquet:"label,optional"`
	}](filepath.Join(dir, "out.parquet"))
	if err != nil || len(lines) != 60 || len(columns) != 60 {
		t.Fatalf("%d lines, %d rows of Parquet, %v", len(lines), len(columns), err)
	}
	for i, c := range columns {
		line := fmt.Sprintf(`{"row":%s,"prediction":%s,"probability":%s,"label":%s}`, got[i+1][0], got[i+1][1], got[i+1][2], got[i+1][3])
		var v struct{ Probability float64 }
		if err := json.Unmarshal([]byte(lines[i]), &v); err != nil || lines[i] != line || c.Row != int64(i) || c.Probability != v.Probability || strconv.FormatInt(c.Prediction, 10) != got[i+1][1] || *c.Label != mustFloat(t, got[i+1][3]) {
			t.Fatalf("row %d: CSV %v, JSON %s, Parquet %+v", i, got[i+1], lines[i], c)
		}
	}
}

func mustFloat(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Probabilities and values of every model but gpt, as eval measures them.
func TestPredictEveryModel(t *testing.T) {
	for model, sets := range map[string][]string{
		"ctr": nil, "deepfm": nil, "dlrm": {"model.bottom=[4]"}, "fm": {"model.hidden=[]"}, "logistic": {"model.hidden=[]", "model.dim=0"},
		"linear": {"model.hidden=[]", "model.dim=0"}, "mlp": {"model.dim=0"},
	} {
		t.Run(model, func(t *testing.T) {
			ckpt := filepath.Join(t.TempDir(), "ckpt")
			set := []string{"--set", "model.kind=" + model, "--set", "data.train.rows=600", "--set", "data.eval.rows=500", "--set", "checkpoint.dir=" + ckpt, "--set", "eval.batch=64", "--set", "model.hidden=[8]"}
			for _, s := range sets {
				set = append(set, "--set", s)
			}
			trained(t, append([]string{"train"}, set...)...)
			file := filepath.Join(t.TempDir(), "job.yaml")
			if err := os.WriteFile(file, builtin, 0o644); err != nil {
				t.Fatal(err)
			}
			got := records(t, must(t, append([]string{"predict", file, "--out", "-"}, set...)...))
			evaluated := must(t, append([]string{"eval", file}, set...)...)
			var tally metric.Tally = &metric.Regression{}
			if model != "linear" {
				tally = &metric.Binary{Threshold: .5}
			}
			for i, r := range got[1:] {
				p := mustFloat(t, r[1])
				if model != "linear" {
					p = math.Log(p / (1 - p))
				}
				if r[0] != strconv.Itoa(i) {
					t.Fatalf("row %d is called %s", i, r[0])
				}
				tally.Add(metric.Rows{Predict: []float64{p}, Label: []float64{mustFloat(t, r[2])}})
			}
			var m metric.Result
			tally.Into(&m)
			if want := metricsText(&m); len(got) != 501 || !strings.Contains(evaluated, want) {
				t.Errorf("%d records; predictions have %s, eval says %s", len(got), want, evaluated)
			}
		})
	}
}

// A file of --path is read instead; what goes wrong leaves nothing behind, and
// what was there stays.
func TestPredictPathAndFailures(t *testing.T) {
	jobFile, dir := trainedOn(t, "{kind: softmax, classes: 3}", classRows())
	other := filepath.Join(dir, "other.svm")
	if err := os.WriteFile(other, []byte("1 1:1\n3 3:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := records(t, must(t, "predict", jobFile, "--path", other, "--out", "-")); len(got) != 3 || got[2][3] != "3" {
		t.Errorf("%v", got)
	}
	if got := records(t, must(t, "predict", jobFile, "--path", other, "--out", "-", "--set", "data.eval.format=")); len(got) != 3 {
		t.Errorf("without eval rows: %v", got)
	}
	kept := filepath.Join(dir, "kept.csv")
	if err := os.WriteFile(kept, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.svm")
	if err := os.WriteFile(bad, []byte("1 1:1\n9 3:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"bad.svm:2":               {"--path", bad, "--out", kept},
		"--out is missing":        {},
		"set --format":            {"--out", "x.txt"},
		`did you mean "csv"?`:     {"--out", "x.txt", "--format", "cvs"},
		"is the job file":         {"--out", jobFile, "--format", "csv"},
		"is a file of --path":     {"--path", other, "--out", other, "--format", "csv"},
		"no usable checkpoint":    {"--checkpoint", dir, "--out", kept},
		"checkpoint.dir: is miss": {"--set", "checkpoint.dir=", "--out", kept},
		"say which rows":          {"--set", "data.eval.format=", "--out", kept},
	} {
		if _, errs, status := invoke(t, append([]string{"predict", jobFile}, args...)...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
	after, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(kept); err != nil || len(after) != len(before) || string(text) != "mine" {
		t.Errorf("%d files became %d, and %q", len(before), len(after), text)
	}
}

// A model of text says how likely each row of its tokens is, and all rows together are
// as likely as eval says; a file of --path is read whole.
func TestPredictText(t *testing.T) {
	dir := t.TempDir()
	text := "model: {kind: gpt, dim: 8, layers: 1, heads: 2}\noptimizer: {kind: adamw, lr: 0.01}\nbatch: 4\nepochs: 3\ncheckpoint: {dir: " + filepath.Join(dir, "ckpt") +
		"}\neval: {batch: 3}\ndata: {train: {format: text, path: a.txt, context: 8, to: 0.8}, eval: {format: text, path: a.txt, context: 8, from: 0.8}}\n"
	for name, text := range map[string]string{"job.yaml": text, "a.txt": strings.Repeat("the ring sums. ", 40), "b.txt": "the ring sumsgnir eht mus eht"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	jobFile := filepath.Join(dir, "job.yaml")
	trained(t, "train", jobFile)
	got := records(t, must(t, "predict", jobFile, "--out", "-"))
	if strings.Join(got[0], " ") != "row log_likelihood perplexity" || len(got) != 1+14 {
		t.Fatalf("%d records, the first %v", len(got), got[0])
	}
	sum := 0.0
	for i, r := range got[1:] {
		ll, perplexity := mustFloat(t, r[1]), mustFloat(t, r[2])
		if r[0] != strconv.Itoa(i) || !(ll < 0) || math.Abs(perplexity-math.Exp(-ll/8)) > 1e-9*perplexity {
			t.Errorf("row %d is %v", i, r)
		}
		sum += ll
	}
	if out, want := must(t, "eval", jobFile), fmt.Sprintf("perplexity %.5f", math.Exp(-sum/(14*8))); !strings.Contains(out, want) {
		t.Errorf("the rows have %s, eval says %s", want, out)
	}
	other := records(t, must(t, "predict", jobFile, "--path", filepath.Join(dir, "b.txt"), "--out", "-"))
	if len(other) != 1+3 || mustFloat(t, other[1][2])*2 > mustFloat(t, other[2][2]) {
		t.Errorf("a text as learned, and backwards: %v", other)
	}
}

// The rows that a model was trained on need not be there to predict others.
func TestPredictWithoutTraining(t *testing.T) {
	dir := t.TempDir()
	train, other := filepath.Join(dir, "train.csv"), filepath.Join(dir, "other.csv")
	jobFile := filepath.Join(dir, "job.yaml")
	for path, text := range map[string]string{
		train: "y,a,b\n1,2,u\n0,1,v\n1,3,u\n0,0,w\n", other: "y,a,b\n1,2,u\n0,9,x\n",
		jobFile: "model: {kind: logistic}\noptimizer: {kind: sgd, lr: 0.1}\nbatch: 2\ncheckpoint: {dir: " + filepath.Join(dir, "ckpt") +
			"}\ndata: {label: {column: y}, train: {format: csv, path: train.csv, header: true}, eval: {format: csv, path: train.csv}}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trained(t, "train", jobFile)
	want := must(t, "predict", jobFile, "--path", other, "--out", "-")
	if err := os.Remove(train); err != nil {
		t.Fatal(err)
	}
	if got := must(t, "predict", jobFile, "--path", other, "--out", "-"); got != want || strings.Count(got, "\n") != 3 {
		t.Errorf("got %q, with the training rows %q", got, want)
	}
	if got := must(t, "eval", jobFile, "--set", "data.eval.path=other.csv"); !strings.Contains(got, "2 rows") {
		t.Errorf("eval says %q", got)
	}
	for want, args := range map[string][]string{"data.eval.path: ": {"predict", jobFile, "--out", "-"}, "data.train.path: ": {"train", jobFile}} {
		if _, errs, status := invoke(t, args...); status != exitRequest || !strings.Contains(errs, want+dir+"/train.csv: there is no such file") {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}
