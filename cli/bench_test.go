package cli

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

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
