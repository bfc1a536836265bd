package train

import (
	"math"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/metric"
)

// The AUC within groups is that of the groups of the rows, on any number of
// workers, worked out here from what one process predicts.
func TestGroups(t *testing.T) {
	var results []metric.Result
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 3}", "{kind: ps, workers: 2}"} {
		dir := t.TempDir()
		text := strings.Replace(resumeJob, "data: {", "eval: {batch: 16, group: cat.5}\ndata: {eval: {format: generated, first: 211, rows: 300, buckets: 500, seed: 5}, ", 1)
		j := parse(t, text+"strategy: "+s+"\n", "checkpoint.dir="+dir)
		main := runMem(t, j, 0)
		alone, err := Evaluate(t.Context(), j, "", dir)
		if err != nil {
			t.Fatal(err)
		}
		if main.Eval.GroupAUC == nil || *main.Eval.GroupAUC != *alone.Eval.GroupAUC || main.Eval.Groups != alone.Eval.Groups {
			t.Errorf("%s: per-group AUC %v of %d groups, alone %v of %d", s, main.Eval.GroupAUC, main.Eval.Groups, alone.Eval.GroupAUC, alone.Eval.Groups)
		}
		results = append(results, *main.Eval)
	}
	src := open(t, data.Spec{Format: "generated", First: 211, Rows: 300, Buckets: 500, Seed: 5})
	kinds := map[int64][2]bool{} // of labels, by group
	var b data.Batch
	for r := range src.Rows() {
		if err := src.Read([]int{r}, &b); err != nil {
			t.Fatal(err)
		}
		k := kinds[b.Columns[2].IDs[5]]
		k[int(b.Columns[0].Values[0])] = true
		kinds[b.Columns[2].IDs[5]] = k
	}
	both := 0
	for _, k := range kinds {
		if k[0] && k[1] {
			both++
		}
	}
	if both < 3 || results[0].Groups != both || *results[0].GroupAUC == *results[0].AUC {
		t.Errorf("%d groups of both kinds, the test says %d; AUC %v, in groups %v", both, results[0].Groups, *results[0].AUC, *results[0].GroupAUC)
	}
	for _, r := range results[1:] {
		if math.Abs(*r.GroupAUC-*results[0].GroupAUC) > .01 {
			t.Errorf("per-group AUC %v, serial %v", *r.GroupAUC, *results[0].GroupAUC)
		}
	}
}

// A group that the rows do not have is refused, with those that there are.
func TestGroupRefusals(t *testing.T) {
	text := strings.Replace(resumeJob, "data: {", "data: {eval: {format: generated, rows: 30, buckets: 500}, ", 1)
	for group, want := range map[string]string{
		"cta.0": `did you mean "cat"?`, "cat": "say which, as cat.0", "cat.26": "there is no 26", "cat.x": "column.i", "num.13": "there is no 13",
	} {
		_, errs := lifeMem(t, parse(t, text, "eval.group="+group, "checkpoint.dir="+t.TempDir()), 0)
		if errs[0] == nil || !strings.Contains(errs[0].Error(), want) || !strings.Contains(errs[0].Error(), "eval.group") {
			t.Errorf("%s: %v", group, errs[0])
		}
	}
	_, errs := lifeMem(t, parse(t, strings.Replace(text, "ctr, hidden: [8], dim: 4", "linear", 1), "eval.group=cat.0", "checkpoint.dir="+t.TempDir()), 0)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "yes or no") {
		t.Errorf("of a linear model: %v", errs[0])
	}
}
