package custom_test

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
)

// build compiles one of the programs.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// call runs a program and returns what it printed.
func call(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// trained trains and returns the parameters and slots that the checkpoint has.
func trained(t *testing.T, program, name string, set ...string) map[string][]float64 {
	t.Helper()
	dir := t.TempDir()
	args := []string{"train", name + "/job.yaml", "--progress", "none"}
	for _, s := range append(set, "precision=f64", "data.train.rows=3000", "data.eval.rows=500", "batch=256", "data.train.buckets=2048",
		"data.eval.buckets=2048", "checkpoint.dir="+dir) {
		args = append(args, "--set", s)
	}
	call(t, program, args...)
	c, _, err := checkpoint.Resolve(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]float64{}
	for _, shard := range c.Manifest.Shards {
		for _, e := range shard.Pieces {
			if all[e.Name] != nil {
				continue
			}
			whole := tensor.New(tensor.F64, e.Shape...)
			if err := c.Assemble(e.Name, whole); err != nil {
				t.Fatal(err)
			}
			all[e.Name] = whole.F64()
		}
	}
	if len(all) < 8 {
		t.Fatalf("the checkpoint has %d arrays", len(all))
	}
	return all
}

// What a program brings trains on several processes as it does in one.
func TestSameAsSerial(t *testing.T) {
	allreduce := []string{"strategy.kind=allreduce", "strategy.workers=2", "strategy.servers=0"}
	ps := []string{"strategy.kind=ps", "strategy.workers=2", "strategy.servers=2"}
	star := []string{"strategy.kind=star", "strategy.workers=3", "strategy.servers=0"}
	for name, spreads := range map[string][][]string{"model": {allreduce, ps}, "rule": {allreduce, ps}, "strategy": {star}} {
		t.Run(name, func(t *testing.T) {
			program := build(t, name)
			want := trained(t, program, name, "strategy.kind=serial", "strategy.workers=1", "strategy.servers=0")
			for _, spread := range spreads {
				got := trained(t, program, name, spread...)
				for array, w := range want {
					g := got[array]
					if len(g) != len(w) {
						t.Fatalf("%v: %s has %d elements, want %d", spread, array, len(g), len(w))
					}
					for i := range w {
						if !(math.Abs(g[i]-w[i]) <= 1e-9*(1+math.Abs(w[i]))) {
							t.Fatalf("%v: %s[%d] is %v, want %v", spread, array, i, g[i], w[i])
						}
					}
				}
			}
		})
	}
}

// All commands know what a program brings, and gangline does not.
func TestCommands(t *testing.T) {
	program := build(t, "strategy")
	if out := call(t, program, "plan", "check", "strategy/job.yaml"); !strings.Contains(out, "holds  3 workers") {
		t.Errorf("plan check: %s", out)
	}
	if out := call(t, program, "plan", "show", "strategy/job.yaml"); !strings.Contains(out, "broadcast") || strings.Contains(out, "allreduce") {
		t.Errorf("plan show: %s", out)
	}
	dir := filepath.Join(t.TempDir(), "ckpt")
	program = build(t, "model")
	small := []string{"--set", "data.train.rows=2000", "--set", "data.eval.rows=500", "--set", "checkpoint.dir=" + dir}
	call(t, program, append([]string{"train", "model/job.yaml"}, small...)...)
	if out := call(t, program, append([]string{"eval", "model/job.yaml"}, small...)...); !strings.Contains(out, "AUC") {
		t.Errorf("eval: %s", out)
	}
	out, err := exec.Command("go", "run", "../../cmd/gangline", "train", "model/job.yaml").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte(`kind: unknown "cross"`)) {
		t.Errorf("gangline took a job of another program: %v: %s", err, out)
	}
}

// The examples stay what they promise: short.
func TestShort(t *testing.T) {
	for _, name := range []string{"model", "rule", "strategy"} {
		text, err := os.ReadFile(name + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n >= 80 {
			t.Errorf("%s/main.go has %d lines", name, n)
		}
	}
}
