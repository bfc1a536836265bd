package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
)

// setupFor is the setup of a job of generated rows.
func setupFor(t *testing.T, j job.Job) *Setup {
	t.Helper()
	columns, err := input.Columns(t.Context(), j, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSetup(j, columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// exported writes the parameters of a run as a file of somebody else, under other
// names, and returns it.
func exported(t *testing.T, dir string, m checkpoint.Mapping) (file string, state params.State) {
	t.Helper()
	c, _, err := checkpoint.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	if state, err = params.Read(c); err != nil {
		t.Fatal(err)
	}
	tensors, err := m.Export(state)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "model.safetensors")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.WriteSafetensors(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return file, state
}

// What any strategy trained, tables among it, is exported without its job and
// imported by any other: parameters and metrics are those of the run.
func TestExportAndImport(t *testing.T) {
	const mapping = "{w1: {from: deep.weight, transpose: true}, embed: {from: table}}"
	m := checkpoint.Mapping{"w1": {From: "deep.weight", Transpose: true}, "embed": {From: "table"}}
	text := strings.Replace(resumeJob, "data: {", "data: {eval: {format: generated, first: 211, rows: 100, buckets: 500, seed: 5}, ", 1)
	kinds := []string{"{kind: serial}", "{kind: allreduce, workers: 2}", "{kind: ps, workers: 2, servers: 2}"}
	for i, s := range kinds {
		dir := t.TempDir()
		main := runMem(t, parse(t, text+"strategy: "+s+"\n", "checkpoint.dir="+dir), 0)
		file, state := exported(t, dir, m)
		other := kinds[(i+1)%len(kinds)]
		j := parse(t, text+"strategy: "+other+"\nimport: {path: "+file+", map: "+mapping+"}\n", "checkpoint.dir="+t.TempDir())
		again, err := Evaluate(t.Context(), j, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if again.Step != 0 || again.Checkpoint != file || *again.Eval.AUC != *main.Eval.AUC {
			t.Errorf("imported: %s step %d AUC %v, the run had %v", again.Checkpoint, again.Step, *again.Eval.AUC, *main.Eval.AUC)
		}
		// A step of rate next to 0 leaves the parameters that a run began with.
		j.Steps, j.Optimizer.LR, j.Epochs = 1, 1e-30, 1
		begun := runMem(t, j, 0)
		want, err := state.Digest(setupFor(t, j).Step)
		if err != nil {
			t.Fatal(err)
		}
		if begun.ParamsSHA256 != want {
			t.Errorf("%s of %s begins with other parameters than it imported", other, s)
		}
	}
}

// The file is part of what must not change on resume, and of what ranks compare.
func TestImportIsOfTheJob(t *testing.T) {
	a := parse(t, resumeJob, "checkpoint.dir=x")
	b := parse(t, resumeJob, "checkpoint.dir=x", "import.path=x.safetensors")
	_, da, err := a.Fixed()
	if err != nil {
		t.Fatal(err)
	}
	if _, db, err := b.Fixed(); err != nil || da == db {
		t.Errorf("with an import: the same job (%v)", err)
	}
	m := &member{cfg: Config{Job: a}, setup: setupFor(t, a)}
	seen := map[string]bool{}
	for _, v := range []float32{0, 1} {
		m.imported = params.New(m.setup.Step).Only(m.setup.Step)
		m.imported["w1"].F32()[0] = v
		d, err := m.digest()
		if err != nil || seen[d] {
			t.Errorf("other parameters, the same digest (%v)", err)
		}
		seen[d] = true
	}
}

// A file that does not fit ends the job before it begins, naming what.
func TestImportRefusals(t *testing.T) {
	dir := t.TempDir()
	runMem(t, parse(t, resumeJob, "checkpoint.dir="+dir), 0)
	file, _ := exported(t, dir, nil)
	for setting, want := range map[string]string{
		"model.dim=5":                         `tensor "embed" is f32 [500 4], the model wants f32 [500 5]`,
		"precision=f64":                       "f32 [500 4], the model wants f64",
		"import.map={w1: {from: w9}}":         `no tensor "w9"`,
		"import.map={w9: {from: w1}}":         `no parameter "w9"`,
		"import.map={w1: {form: w1}}":         "form",
		"import.map={w1: {from: w1, x: 1}}":   "x",
		"import.path=" + dir + "/no.safetens": "no.safetens",
	} {
		j, err := job.Parse("test", []byte(resumeJob), []string{"checkpoint.dir=x", "import.path=" + file, setting})
		if err == nil {
			_, err = imported(j, "", setupFor(t, j).Step)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", setting, err, want)
		}
	}
}
