package metric_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/metric"
)

// The tests after which a run ends, worked out by hand; b marks the best so far.
func TestPatience(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		p      metric.Patience
		values []float64
		best   string
		done   int // tests after which it ends; 0: never
	}{
		"higher":        {metric.Patience{Metric: "auc", Limit: 2}, []float64{.5, .6, .6, .55}, "bb--", 4},
		"lower":         {metric.Patience{Metric: "logloss", Limit: 2}, []float64{.5, .6, .4, .5, .4}, "b-b--", 5},
		"min delta":     {metric.Patience{Metric: "auc", Limit: 2, MinDelta: .1}, []float64{.5, .55, .6, .7}, "b--b", 3},
		"slow progress": {metric.Patience{Metric: "auc", Limit: 3, MinDelta: .1}, []float64{.5, .55, .61, .72}, "b-bb", 0},
		"no limit":      {metric.Patience{Metric: "auc"}, []float64{.5, .4, .3, .2}, "b---", 0},
		"NaN":           {metric.Patience{Metric: "auc", Limit: 2}, []float64{nan, .1, nan, nan}, "-b--", 4},
		"NaN only":      {metric.Patience{Metric: "auc", Limit: 2}, []float64{nan, nan}, "--", 2},
	} {
		p, best, done := c.p, "", 0
		for i, v := range c.values {
			mark := "-"
			if p.See(int64(i), v) {
				mark = "b"
			}
			best += mark
			if p.Done() && done == 0 {
				done = i + 1
			}
			// What is saved and read again goes on as if nothing had been.
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var back metric.Patience
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(p, back); d != "" {
				t.Fatalf("%s: %s", name, d)
			}
			p = back
		}
		if best != c.best || done != c.done {
			t.Errorf("%s: best %s, done after %d; want %s, %d", name, best, done, c.best, c.done)
		}
		if done > 0 && !strings.Contains(p.Why(), p.Metric) {
			t.Errorf("%s: %s", name, p.Why())
		}
	}
	p := metric.Patience{Metric: "auc", Limit: 2}
	if p.Goes(nil) || p.Goes(&metric.Patience{Metric: "logloss"}) || p.Goes(&metric.Patience{Metric: "auc", MinDelta: .1}) || !p.Goes(&metric.Patience{Metric: "auc", Limit: 9}) {
		t.Error("what it goes on from")
	}
}
