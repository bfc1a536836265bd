package tally

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/metric"
)

// However rows are split over workers, tallies that travelled and were merged give
// the metrics of one process.
func TestTallyMerge(t *testing.T) {
	for _, task := range []graph.Task{graph.Binary, graph.Multiclass, graph.Regression, graph.Tokens} {
		r := rand.New(rand.NewPCG(1, 2))
		classes := 1
		if task == graph.Multiclass || task == graph.Tokens {
			classes = 3
		}
		whole, parts := New(task, .5), [3]Tally{New(task, .5), New(task, .5), New(task, .5)}
		for i := range 60 {
			predict := make([]float64, classes)
			for c := range predict {
				predict[c] = r.NormFloat64()
			}
			rows := metric.Rows{Predict: predict, Label: []float64{float64(r.IntN(max(classes, 2)))}}
			for _, x := range []*Tally{&whole, &parts[i%3]} {
				x.Add(rows)
				x.Loss += float64(i)
				x.Weight++
				x.Rows++
			}
		}
		merged := New(task, .5)
		for i := range parts {
			var wire bytes.Buffer
			arrived := New(task, .5)
			if err := parts[i].Encode(&wire); err != nil {
				t.Fatal(err)
			}
			if err := arrived.Decode(&wire); err != nil {
				t.Fatal(err)
			}
			merged.Merge(&arrived)
		}
		a, b := whole.Result(true), merged.Result(true)
		if a.Rows != 60 || *a.Loss != 29.5 {
			t.Errorf("%s: %+v", task, a)
		}
		if d := cmp.Diff(a, b, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%s: %s", task, d)
		}
		if defined := []bool{a.AUC != nil, a.Perplexity != nil, a.RMSE != nil}; !cmp.Equal(defined, []bool{task == graph.Binary, task == graph.Tokens, task == graph.Regression}) {
			t.Errorf("%s: AUC, perplexity, RMSE: %v", task, defined)
		}
		if r := whole.Result(false); r.AUC != nil || r.LogLoss != nil || r.Rows != 60 || *r.Loss != 29.5 {
			t.Errorf("%s without scores: %+v", task, r)
		}
	}
}
