package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/bench/comm"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/tune"
)

// printed runs gangline as a process and returns what it printed.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	text, err := said(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// said is printed of a process that may fail: the error has what it printed of that.
func said(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), beMain+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", args, err, errs.String())
	}
	return string(text), err
}

// tiny is a job that trains in no time.
func tiny(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.yaml")
	text := `
model: {kind: ctr, dim: 2, hidden: [8]}
data: {train: {format: generated, buckets: 100, rows: 400}}
strategy: {kind: allreduce, workers: 2}
optimizer: {kind: sgd, lr: 0.1}
batch: 20
threads: 1
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What two processes measure is a file that a job chooses its algorithms by. A busy machine
// may have times that no model fits: they are refused, and there is no file.
func TestProbe(t *testing.T) {
	var all []comm.Probed
	costs := filepath.Join(t.TempDir(), "costs.json")
	text, err := said(t, "probe", "--quick", "--path", "unix,tcp", "--out", costs, "--json")
	if err != nil {
		if _, missing := os.Stat(costs); !strings.Contains(err.Error(), "measure again on an idle machine") || missing == nil {
			t.Errorf("%v; file: %v", err, missing)
		}
		return
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(all) != 2 || all[0].Ranks != 2 || all[0].Hosts != 1 {
		t.Fatalf("got %+v", all)
	}
	if all[0].NoFit != "" {
		return
	}
	if len(all[0].Checks) != 8 {
		t.Errorf("got %+v", all[0])
	}
	written, err := os.ReadFile(costs)
	if err != nil {
		t.Fatal(err)
	}
	if table, err := cost.Parse(written); err != nil || table[cost.Unix] != all[0].Link || table[cost.SHM] != cost.Default()[cost.SHM] {
		t.Errorf("%v: %+v", err, table)
	}
	told := printed(t, "plan", "show", tiny(t), "--explain", "--set", "network.costs="+costs, "--set", "network.path=unix")
	if !strings.Contains(told, "costs from "+costs) || !strings.Contains(told, "by unix") {
		t.Errorf("got %s", told)
	}
}

// The ranks of somebody else's launch are the ranks of a probe.
func TestProbeLaunched(t *testing.T) {
	text, err := said(t, "launch", "-n", "2", "--", os.Args[0], "probe", "--quick", "--path", "tcp")
	if err != nil && strings.Contains(err.Error(), "measure again on an idle machine") {
		return
	}
	if err != nil || !strings.Contains(text, "path") || !strings.Contains(text, "tcp:") {
		t.Errorf("got %s, %v", text, err)
	}
}

// Training as the program of a launch, which would keep its report from being written, is
// refused.
func TestTrainLaunched(t *testing.T) {
	text, err := said(t, "launch", "-n", "2", "--", os.Args[0], "train", tiny(t))
	if err == nil || !strings.Contains(err.Error(), "leave out launch and set strategy.workers") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestTune(t *testing.T) {
	out, file := filepath.Join(t.TempDir(), "tuned.yaml"), tiny(t)
	text := printed(t, "tune", file, "--budget", "5s", "--out", out, "--quiet")
	if !strings.Contains(text, "the job as it is") || !strings.Contains(text, "strategy.algorithm=tree") {
		t.Errorf("got %s", text)
	}
	o, err := tune.ReadOverlay(out)
	if err != nil || o.Ranks != 2 || !strings.Contains(o.Note, "cores") {
		t.Fatalf("%+v, %v", o, err)
	}
	// What may have been found here is known for sure now.
	o.Set = []string{"strategy.algorithm=tree"}
	changed, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if shown := printed(t, "plan", "show", file, "--explain", "--overlay", out); !strings.Contains(shown, "strategy.algorithm is tree") || !strings.Contains(shown, "bytes  tree: ") {
		t.Errorf("got %s", shown)
	}
	for want, args := range map[string][]string{
		"found for 2 ranks, the job has 3": {"--set", "strategy.workers=3"}, "found for another job": {"--set", "seed=5"},
	} {
		var errs bytes.Buffer
		args = append([]string{"plan", "show", file, "--overlay", out}, args...)
		if status := run(t.Context(), job.Extensions{}, args, &bytes.Buffer{}, &errs); status != exitRequest || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", args, status, errs.String())
		}
	}
}

func TestMeasureRefusals(t *testing.T) {
	file := tiny(t)
	for want, args := range map[string][]string{
		"2 to 64":                 {"probe", "--ranks", "1"},
		`did you mean "shm"`:      {"probe", "--path", "shn"},
		"there is no directory":   {"probe", "--out", filepath.Join(file, "x", "y")},
		"want 5s to":              {"tune", file, "--budget", "1s"},
		"a share of the loss":     {"tune", file, "--max-error", "1"},
		"--overlay no.yaml":       {"tune", file, "--overlay", "no.yaml"},
		"is the job file":         {"tune", file, "--out", file},
		"network.hosts":           {"tune", file, "--set", "network.hosts=[1,1]", "--set", "network.kind=tcp"},
		"settings of no.yaml":     {"train", file, "--overlay", "no.yaml"},
		`did you mean "halving"`:  {"plan", "show", file, "--set", "strategy.algorithm=halvin"},
		"needs several hosts":     {"plan", "show", file, "--set", "strategy.algorithm=hierarchical"},
		"have 3 ranks, want 2":    {"bench", "collective", "--hosts", "2,1"},
		"hierarchical needs seve": {"bench", "collective", "--algorithm", "hierarchical"},
	} {
		var errs bytes.Buffer
		if status := run(t.Context(), job.Extensions{}, args, &bytes.Buffer{}, &errs); status != exitRequest || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", args, status, errs.String())
		}
	}
}
