package train

import (
	"strings"
	"testing"
)

// The curves of a run have every step, alike by all strategies, and the rate that
// the steps had.
func TestCurves(t *testing.T) {
	text := strings.Replace(resumeJob, "data: {", "eval: {every: 5}\ndata: {eval: {format: generated, first: 211, rows: 100, buckets: 500, seed: 5}, ", 1)
	text = strings.Replace(text, "lr: 0.01}", "lr: 0.01, schedule: {kind: step, every: 4, factor: 0.5}}", 1)
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 2}", "{kind: ps, workers: 2}"} {
		main := runMem(t, parse(t, text+"strategy: "+s+"\n", "checkpoint.dir="+t.TempDir()), 0)
		var names []string
		for _, c := range main.Curves {
			names = append(names, c.Name)
			last := c.Points[len(c.Points)-1]
			switch {
			case last.Step != 12 || len(c.Points) != map[string]int{"loss": 12, "test_loss": 3, "auc": 3, "lr": 12}[c.Name]:
				t.Errorf("%s: %s has %d points to step %d", s, c.Name, len(c.Points), last.Step)
			case c.Name == "lr" && (c.Points[3].Value != .01 || c.Points[4].Value != .005 || last.Value != .0025):
				t.Errorf("%s: rates %v", s, c.Points)
			case c.Name == "auc" && last.Value != *main.Eval.AUC:
				t.Errorf("%s: AUC %v, at the end %v", s, c.Points, *main.Eval.AUC)
			}
		}
		if got := strings.Join(names, " "); got != "loss test_loss auc lr" {
			t.Errorf("%s: curves %s", s, got)
		}
	}
}
