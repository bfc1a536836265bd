package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/graph"
)

// AUC agrees with counting all pairs.
func TestAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		scores, labels := make([]float64, n), make([]float64, n)
		for i := range n {
			scores[i] = float64(rapid.IntRange(-3, 3).Draw(t, "score"))
			labels[i] = float64(rapid.IntRange(0, 1).Draw(t, "label"))
		}
		var wins, pairs float64
		for i := range n {
			for j := range n {
				if labels[i] == 1 && labels[j] == 0 {
					pairs++
					switch {
					case scores[i] > scores[j]:
						wins++
					case scores[i] == scores[j]:
						wins += .5
					}
				}
			}
		}
		got := AUC(scores, labels)
		if pairs == 0 {
			if !math.IsNaN(got) {
				t.Fatalf("AUC without pairs is %v", got)
			}
			return
		}
		if math.Abs(got-wins/pairs) > 1e-12 {
			t.Fatalf("AUC %v, counting says %v", got, wins/pairs)
		}
	})
}

// However rows are split over workers, merged tallies give the same metrics.
func TestTallyMerge(t *testing.T) {
	for _, task := range []graph.Task{graph.Binary, graph.Multiclass, graph.Regression, graph.Tokens} {
		r := rand.New(rand.NewPCG(1, 2))
		classes := 1
		if task == graph.Multiclass || task == graph.Tokens {
			classes = 3
		}
		whole, parts := &tally{task: task}, [3]tally{{task: task}, {task: task}, {task: task}}
		for i := range 60 {
			predict := make([]float64, classes)
			for c := range predict {
				predict[c] = r.NormFloat64()
			}
			label := []float64{float64(r.IntN(max(classes, 2)))}
			for _, x := range []*tally{whole, &parts[i%3]} {
				x.add(predict, label)
				x.loss += float64(i)
				x.weight++
			}
		}
		merged := &tally{task: task}
		for i := range parts {
			merged.merge(&parts[i])
		}
		a, b := whole.metrics(true), merged.metrics(true)
		_, va := a.Main()
		_, vb := b.Main()
		if a.Rows != 60 || b.Rows != 60 || *a.Loss != *b.Loss || math.Abs(va-vb) > 1e-12 {
			t.Errorf("%s: %+v, merged %+v", task, a, b)
		}
		if (a.Perplexity != nil) != (task == graph.Tokens) || a.Perplexity != nil && *a.Perplexity != math.Exp(*a.Loss) {
			t.Errorf("%s: perplexity of loss %v: %v", task, *a.Loss, a.Perplexity)
		}
	}
}

// A score that is not a number leaves no AUC, wherever it stands: its row cannot be
// ranked, and to count it as the other kind would be a wrong number.
func TestAUCOfNaN(t *testing.T) {
	for i := range 4 {
		scores := []float64{.1, .2, .3, .4}
		scores[i] = math.NaN()
		if got := AUC(scores, []float64{0, 1, 0, 1}); !math.IsNaN(got) {
			t.Errorf("NaN at %d: AUC %v", i, got)
		}
	}
}
