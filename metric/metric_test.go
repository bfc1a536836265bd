package metric_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/metric"
)

// slowAUC counts all pairs.
func slowAUC(scores, labels, weights []float64) float64 {
	var wins, pairs float64
	for i := range scores {
		for j := range scores {
			if labels[i] <= .5 || labels[j] > .5 {
				continue
			}
			w := weights[i] * weights[j]
			pairs += w
			switch {
			case scores[i] > scores[j]:
				wins += w
			case scores[i] == scores[j]:
				wins += w / 2
			}
		}
	}
	return wins / pairs // NaN without pairs
}

// slowGroupAUC takes one group after the other.
func slowGroupAUC(groups []uint64, scores, labels, weights []float64) (float64, int) {
	var sum, total float64
	used, done := 0, map[uint64]bool{}
	for _, g := range groups {
		if done[g] {
			continue
		}
		done[g] = true
		var s, l, w []float64
		n := 0.0
		for i := range groups {
			if groups[i] == g {
				s, l, w, n = append(s, scores[i]), append(l, labels[i]), append(w, weights[i]), n+weights[i]
			}
		}
		if a := slowAUC(s, l, w); !math.IsNaN(a) {
			sum, total, used = sum+n*a, total+n, used+1
		}
	}
	return sum / total, used
}

func same(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b))
}

// AUC and per-group AUC agree with counting all pairs, with ties and weights.
func TestAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		groups, scores, labels, weights, ones := make([]uint64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			groups[i] = uint64(rapid.IntRange(0, 4).Draw(t, "group"))
			scores[i] = float64(rapid.IntRange(-3, 3).Draw(t, "score"))
			labels[i] = float64(rapid.IntRange(0, 1).Draw(t, "label"))
			weights[i] = float64(rapid.IntRange(0, 5).Draw(t, "weight")) / 4
			ones[i] = 1
		}
		for _, c := range []struct{ given, meant []float64 }{{nil, ones}, {weights, weights}} {
			if got, want := metric.AUC(scores, labels, c.given), slowAUC(scores, labels, c.meant); !same(got, want) {
				t.Fatalf("AUC %v, counting says %v", got, want)
			}
			got, used := metric.GroupAUC(groups, scores, labels, c.given)
			want, wantUsed := slowGroupAUC(groups, scores, labels, c.meant)
			if !same(got, want) || used != wantUsed {
				t.Fatalf("per-group AUC %v of %d groups, counting says %v of %d", got, used, want, wantUsed)
			}
		}
	})
}

// A score that is not a number leaves no AUC, wherever it stands: its row cannot
// be ranked, and to count it as the other kind would be a wrong number.
func TestAUCOfNaN(t *testing.T) {
	for i := range 4 {
		scores, labels, groups := []float64{.1, .2, .3, .4}, []float64{0, 1, 0, 1}, []uint64{1, 1, 2, 2}
		scores[i] = math.NaN()
		if got := metric.AUC(scores, labels, nil); !math.IsNaN(got) {
			t.Errorf("NaN at %d: AUC %v", i, got)
		}
		if got, used := metric.GroupAUC(groups, scores, labels, nil); !math.IsNaN(got) || used != 0 {
			t.Errorf("NaN at %d: per-group AUC %v of %d groups", i, got, used)
		}
	}
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

func near() cmp.Option { return cmpopts.EquateApprox(0, 1e-12) }

// Four rows, worked out by hand: probabilities .9 .6 .4 .2, labels 1 0 1 0. Of
// the four pairs, three are in order.
func TestBinaryByHand(t *testing.T) {
	b := &metric.Binary{Threshold: .5}
	b.Add(metric.Rows{
		Predict: []float64{logit(.9), logit(.6), logit(.4), logit(.2)}, Label: []float64{1, 0, 1, 0}, Group: []uint64{7, 7, 8, 9},
	})
	var got metric.Result
	b.Into(&got)
	f := func(v float64) *float64 { return &v }
	want := metric.Result{
		Rows: 4, LogLoss: f(-(math.Log(.9) + math.Log(.4) + math.Log(.4) + math.Log(.8)) / 4), Accuracy: f(.5),
		AUC: f(.75), GroupAUC: f(1), Groups: 1, // of the groups, only the first has both kinds
		Threshold: f(.5), Precision: f(.5), Recall: f(.5), F1: f(.5),
		Calibration: &metric.Calibration{Ratio: f(2.1 / 2), Error: f((.1 + .6 + .6 + .2) / 4), Bins: make([]metric.Bin, 10)},
	}
	for i := range want.Calibration.Bins {
		want.Calibration.Bins[i] = metric.Bin{Lo: float64(i) / 10, Hi: float64(i+1) / 10}
	}
	for i, x := range map[int][2]float64{9: {.9, 1}, 6: {.6, 0}, 4: {.4, 1}, 2: {.2, 0}} {
		bin := &want.Calibration.Bins[i]
		bin.Weight, bin.Predicted, bin.Observed = 1, x[0], x[1]
	}
	// .9 and .6 are just below their bins as float64, depending on how the logit
	// rounds: compare bins by what they hold.
	if d := cmp.Diff(occupied(want.Calibration), occupied(got.Calibration), near()); d != "" {
		t.Errorf("bins: %s", d)
	}
	want.Calibration.Bins, got.Calibration.Bins = nil, nil
	if d := cmp.Diff(want, got, near()); d != "" {
		t.Error(d)
	}
	// With .3 as the threshold, three are predicted, two of them right.
	b = &metric.Binary{Threshold: .3}
	b.Add(metric.Rows{Predict: []float64{logit(.9), logit(.6), logit(.4), logit(.2)}, Label: []float64{1, 0, 1, 0}})
	got = metric.Result{}
	b.Into(&got)
	if !same(*got.Precision, 2./3) || *got.Recall != 1 || !same(*got.F1, .8) || got.GroupAUC != nil {
		t.Errorf("precision %v recall %v F1 %v", *got.Precision, *got.Recall, *got.F1)
	}
}

// occupied lists what the bins that have rows hold.
func occupied(c *metric.Calibration) (out [][3]float64) {
	for _, b := range c.Bins {
		if b.Weight > 0 {
			out = append(out, [3]float64{b.Weight, b.Predicted, b.Observed})
		}
	}
	return out
}

// Three rows of two classes, by hand: right with .85, wrong with .65, right with .5
// (the first of equals).
func TestMulticlassByHand(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		m := &metric.Multiclass{Tokens: tokens}
		m.Add(metric.Rows{Predict: []float64{logit(.85), 0, 1000, 1000 + logit(.65), 5, 5}, Label: []float64{0, 0, 0}})
		var r metric.Result
		m.Into(&r)
		if want := -(math.Log(.85) + math.Log(.35) + math.Log(.5)) / 3; r.Rows != 3 || !same(*r.LogLoss, want) || !same(*r.Accuracy, 2./3) {
			t.Errorf("%+v", r)
		}
		if tokens {
			if want := math.Pow(.85*.35*.5, -1./3); !same(*r.Perplexity, want) || r.Calibration != nil {
				t.Errorf("perplexity %v, want %v", *r.Perplexity, want)
			}
			continue
		}
		if c := r.Calibration; r.Perplexity != nil || !same(*c.Ratio, 2./2) || !same(*c.Error, (.15+.65+.5)/3) {
			t.Errorf("ratio %v, error %v", *c.Ratio, *c.Error)
		}
	}
}

func TestRegressionByHand(t *testing.T) {
	tally := &metric.Regression{}
	tally.Add(metric.Rows{Predict: []float64{1, 2, 3}, Label: []float64{2, 2, 5}, Weight: []float64{1, 1, 2}})
	var r metric.Result
	tally.Into(&r)
	if r.Rows != 3 || !same(*r.RMSE, math.Sqrt((1+0+2*4)/4.)) || r.Calibration != nil {
		t.Errorf("%+v", r)
	}
}

// A row of weight n counts as n rows.
func TestWeightIsRepetition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, fresh := range tallies() {
		weighted, repeated := fresh(), fresh()
		for range 50 {
			row := draw(r, weighted)
			n := r.IntN(4)
			weighted.Add(metric.Rows{Predict: row.Predict, Label: row.Label, Group: row.Group, Weight: []float64{float64(n)}})
			for range n {
				repeated.Add(row)
			}
		}
		var a, b metric.Result
		weighted.Into(&a)
		repeated.Into(&b)
		a.Rows = b.Rows
		if d := cmp.Diff(b, a, near()); d != "" {
			t.Errorf("%T: %s", weighted, d)
		}
	}
}

// tallies makes one of each kind.
func tallies() []func() metric.Tally {
	return []func() metric.Tally{
		func() metric.Tally { return &metric.Binary{Threshold: .4} },
		func() metric.Tally { return &metric.Multiclass{} },
		func() metric.Tally { return &metric.Multiclass{Tokens: true} },
		func() metric.Tally { return &metric.Regression{} },
	}
}

// draw makes a row for a tally.
func draw(r *rand.Rand, of metric.Tally) metric.Rows {
	row := metric.Rows{Predict: []float64{math.Round(4*r.NormFloat64()) / 4}, Label: []float64{float64(r.IntN(2))}}
	if _, ok := of.(*metric.Multiclass); ok {
		row.Predict = []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	}
	if _, ok := of.(*metric.Binary); ok {
		row.Group = []uint64{uint64(r.IntN(5))}
	}
	return row
}

// However rows are spread over ranks, and though tallies travel, the metrics are
// those of all rows in one tally: AUC bit by bit, sums to rounding.
func TestMerge(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		for _, fresh := range tallies() {
			r := rand.New(rand.NewPCG(1, 2))
			whole, parts := fresh(), []metric.Tally{fresh(), fresh(), fresh(), fresh()} // the last has no rows
			for i := range 300 {
				row := draw(r, whole)
				if weighted && i%3 != 0 { // one part never sees a weight
					row.Weight = []float64{r.Float64()}
				}
				whole.Add(row)
				parts[i%3].Add(row)
			}
			merged := fresh()
			for _, p := range parts {
				var wire bytes.Buffer
				arrived := fresh()
				if err := gob.NewEncoder(&wire).Encode(p); err != nil {
					t.Fatal(err)
				}
				if err := gob.NewDecoder(&wire).Decode(arrived); err != nil {
					t.Fatal(err)
				}
				merged.Merge(arrived)
			}
			var a, b metric.Result
			whole.Into(&a)
			merged.Into(&b)
			if a.Rows != 300 {
				t.Errorf("%T: %d rows", whole, a.Rows)
			}
			if d := cmp.Diff(a, b, near()); d != "" {
				t.Errorf("%T: %s", whole, d)
			}
			if !weighted && a.AUC != nil && (*a.AUC != *b.AUC || *a.GroupAUC != *b.GroupAUC || *a.F1 != *b.F1 || *a.Accuracy != *b.Accuracy) {
				t.Errorf("AUC %v, merged %v", *a.AUC, *b.AUC)
			}
		}
	}
}

// Rows of one kind, none, and scores that are no numbers leave metrics out; they
// never become a wrong one, or JSON that nobody can read.
func TestWhatIsNotANumberIsLeftOut(t *testing.T) {
	nan := math.NaN()
	for i, rows := range []metric.Rows{
		{},
		{Predict: []float64{1, 2}, Label: []float64{1, 1}},
		{Predict: []float64{-1, -2}, Label: []float64{0, 0}},
		{Predict: []float64{nan, 1}, Label: []float64{0, 1}, Group: []uint64{1, 1}},
		{Predict: []float64{math.Inf(1), math.Inf(-1)}, Label: []float64{0, 1}},
	} {
		b := &metric.Binary{Threshold: .5}
		b.Add(rows)
		var r metric.Result
		b.Into(&r)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("case %d: %v", i, err)
		}
		if (r.AUC != nil) != (i == 4) || r.GroupAUC != nil {
			t.Errorf("case %d: AUC %v", i, r.AUC)
		}
		if i == 3 && (r.LogLoss != nil || r.Calibration != nil) {
			t.Errorf("a NaN: log loss %v, calibration %v", r.LogLoss, r.Calibration)
		}
	}
	m := &metric.Multiclass{}
	m.Add(metric.Rows{Predict: []float64{1, 2}, Label: []float64{2}})
	var r metric.Result
	if m.Into(&r); r.LogLoss != nil || *r.Accuracy != 0 {
		t.Errorf("a label that is no class: %+v", r)
	}
}

// Every name has a value where the metric is defined, and a direction.
func TestNames(t *testing.T) {
	b, reg, m := &metric.Binary{Threshold: .5}, &metric.Regression{}, &metric.Multiclass{Tokens: true}
	b.Add(metric.Rows{Predict: []float64{1, -1}, Label: []float64{1, 0}, Group: []uint64{1, 1}})
	reg.Add(metric.Rows{Predict: []float64{1}, Label: []float64{0}})
	m.Add(metric.Rows{Predict: []float64{1, 2}, Label: []float64{1}})
	loss := .5
	r := metric.Result{Loss: &loss}
	b.Into(&r)
	var others [2]metric.Result
	reg.Into(&others[0])
	m.Into(&others[1])
	r.RMSE, r.Perplexity = others[0].RMSE, others[1].Perplexity
	for _, name := range metric.Names() {
		v, ok := r.Value(name)
		if !ok || math.IsNaN(v) {
			t.Errorf("%s: %v %v", name, v, ok)
		}
		up, down := metric.Better(name, 1, .5, .1), metric.Better(name, .5, 1, .1)
		if up == down {
			t.Errorf("%s: no direction", name)
		}
		if metric.Better(name, 1, .95, .1) || metric.Better(name, .95, 1, .1) || metric.Better(name, math.NaN(), 1, 0) || !metric.Better(name, 1, math.NaN(), 0) {
			t.Errorf("%s: min_delta or NaN", name)
		}
	}
	for name, higher := range map[string]bool{"auc": true, "logloss": false, "rmse": false, "accuracy": true} {
		if metric.Better(name, 1, 0, 0) != higher {
			t.Errorf("%s: wrong direction", name)
		}
	}
	if _, ok := r.Value("acu"); ok {
		t.Error("an unknown name has a value")
	}
}

func ExampleBinary() {
	b := &metric.Binary{Threshold: .5}
	b.Add(metric.Rows{Predict: []float64{2, .5, -1, -3}, Label: []float64{1, 0, 1, 0}})
	var r metric.Result
	b.Into(&r)
	fmt.Printf("AUC %.2f, accuracy %.2f, log loss %.4f\n", *r.AUC, *r.Accuracy, *r.LogLoss)
	// Output: AUC 0.75, accuracy 0.50, log loss 0.6157
}
