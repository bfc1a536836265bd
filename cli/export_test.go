package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train"
)

// The parameters of somebody else's network get exactly the digits right that
// they are known to, and they come out as they went in.
func TestMnistImport(t *testing.T) {
	needData(t)
	report := filepath.Join(t.TempDir(), "out.json")
	var out, errs bytes.Buffer
	status := run(t.Context(), job.Extensions{}, []string{"eval", root + "/examples/mnist-import.yaml", "--data-dir", sharedData, "--report", report}, &out, &errs)
	if status != 0 {
		t.Fatal(errs.String())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var e train.Evaluation
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if *e.Eval.Accuracy != .9097 || e.Eval.Rows != 10000 || !strings.Contains(out.String(), "accuracy 0.90970") {
		t.Errorf("accuracy %v of %d rows, want exactly .9097 of 10000: %s", *e.Eval.Accuracy, e.Eval.Rows, out.String())
	}
}

// A checkpoint is exported without its job and read again by a job that imports it,
// with the same metrics.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	ckpt, file := filepath.Join(dir, "ckpt"), filepath.Join(dir, "model.safetensors")
	small := []string{"--set", "data.train.rows=3000", "--set", "data.eval.rows=1000"}
	r := trained(t, append([]string{"train", "--set", "checkpoint.dir=" + ckpt}, small...)...)
	const mapping = "{w1: {from: deep.weight, transpose: true}}"
	var out, errs bytes.Buffer
	if status := run(t.Context(), job.Extensions{}, []string{"export", ckpt, file, "--map", mapping}, &out, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	if want := "tensors in " + file; !strings.Contains(out.String(), want) {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
	args := append([]string{"eval", "--data-dir", dir, "--set", "import.path=model.safetensors", "--set", "import.map=" + mapping, "--report", filepath.Join(dir, "out.json")}, small...)
	if status := run(t.Context(), job.Extensions{}, args, &out, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e train.Evaluation
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if *e.Eval.AUC != *r.Eval.AUC || e.Eval.Rows != 1000 {
		t.Errorf("AUC %v imported, %v trained", *e.Eval.AUC, *r.Eval.AUC)
	}
	for want, args := range map[string][]string{
		"no parameter":               {ckpt, file, "--map", "{w17: {from: x}}"},
		"is no mapping":              {ckpt, file, "--map", "{w1: {form: x}}"},
		"has no import.map":          {ckpt, file, "--map", root + "/examples/ctr.yaml"},
		"accepts 2 arg":              {ckpt},
		"no usable checkpoint":       {dir, file},
		"is in the checkpoint":       {ckpt, filepath.Join(r.Checkpoint, "worker-0.safetensors")},
		"there is no /nowhere/ckpt":  {"/nowhere/ckpt", file},
		"there is no directory /now": {ckpt, "/nowhere/x.safetensors"},
	} {
		errs.Reset()
		if status := run(t.Context(), job.Extensions{}, append([]string{"export"}, args...), &out, &errs); status == 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", args, status, errs.String())
		}
	}
}
