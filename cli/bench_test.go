package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gangline/gangline/bench/comm"
	"github.com/gangline/gangline/chart"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/model"
)

func TestBenchStep(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	var out, errs bytes.Buffer
	args := []string{"bench", "step", "--case", "sgemm512,mlp", "--threads", "2", "--iterations", "3"}
	if status := run(t.Context(), job.Extensions{}, append(args, "--json"), &out, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	var results []map[string]any
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"sgemm512", "mlp"} {
		r := results[i]
		if len(results) != 2 || len(r) != 6 || r["name"] != name || r["threads"] != 2. || r["iterations"] != 3. ||
			r["median_s"].(float64) <= 0 || r["min_s"].(float64) <= 0 {
			t.Errorf("got %v", results)
		}
		if _, ok := r["cpu_s"].(float64); !ok {
			t.Errorf("no cpu_s: %v", r)
		}
	}
	out.Reset()
	if status := run(t.Context(), job.Extensions{}, args, &out, &errs); status != 0 || !strings.Contains(out.String(), "median ms") {
		t.Errorf("%s %s", out.String(), errs.String())
	}
	if runtime.GOMAXPROCS(0) != cores {
		t.Error("the timing keeps the cores that it took")
	}
}

// Ranks are processes, and every field that scripts read is there.
func TestBenchCollective(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "bench", "collective", "--ranks", "3", "--hosts", "2,1", "--algorithm", "all", "--bytes", "4KiB,64KiB",
		"--iterations", "3", "--json", "--plots", dir)
	cmd.Env = append(os.Environ(), beMain+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var results []map[string]any
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 2*len(comm.Algorithms("allreduce")) {
		t.Errorf("%d results", len(results))
	}
	for _, r := range results {
		for field, want := range map[string]any{"op": "allreduce", "ranks": 3., "path": "auto", "iterations": 3.} {
			if r[field] != want {
				t.Errorf("%s is %v, want %v", field, r[field], want)
			}
		}
		for _, field := range []string{"bytes", "median_us", "min_us", "p99_us", "algbw_gbs", "busbw_gbs"} {
			if v, ok := r[field].(float64); !ok || v <= 0 {
				t.Errorf("%s is %v", field, r[field])
			}
		}
	}
	for _, format := range chart.Formats() {
		if info, err := os.Stat(filepath.Join(dir, "collective."+format)); err != nil || info.Size() < 1000 {
			t.Errorf("no picture: %v", err)
		}
	}
}

func TestBenchCollectiveRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		`did you mean "allreduce"`: {"--op", "allreduc"},
		"2 to 64":                  {"--ranks", "1"},
		"is no size":               {"--bytes", "4XB"},
		"multiple of 4":            {"--bytes", "5"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), job.Extensions{}, append([]string{"bench", "collective"}, args...), &out, &errs)
		if status != exitRequest || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", args, status, errs.String())
		}
	}
}

func TestBenchRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		`did you mean "mlp"`: {"--case", "mlpp"},
		"1 to 1024 threads":  {"--threads", "0"},
		"no negative":        {"--iterations", "-1"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), job.Extensions{}, append([]string{"bench", "step"}, args...), &out, &errs)
		if status != exitRequest || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: status %d: %s", args, status, errs.String())
		}
	}
}

// Extensions that cannot be used end every command, with what is wrong.
func TestExtensionsChecked(t *testing.T) {
	var ext job.Extensions
	Model("mlp", graph.Binary, func(*graph.Graph, model.Config) graph.Model { return graph.Model{} })(&ext)
	var out, errs bytes.Buffer
	if status := run(t.Context(), ext, []string{"version"}, &out, &errs); status == 0 || !strings.Contains(errs.String(), `model "mlp": gangline has one of that name`) {
		t.Errorf("status %d: %s", status, errs.String())
	}
}
