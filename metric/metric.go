// Package metric measures predictions against labels.
//
// There is a tally for each kind of prediction: Binary, Multiclass, Regression.
// A tally takes rows in any portions; tallies of several ranks are merged into
// one, which then gives the Result of all rows. What merging keeps:
//
//   - Counts, and AUC and per-group AUC, exactly: tallies keep every score.
//   - Log loss, RMSE, calibration, and everything of weighted rows, to the
//     rounding of float64 sums: another order of adding may change the last digits.
//
// The most frequent use is train's; nothing here knows of models or files.
package metric

import "math"

// Rows are some rows of a test.
type Rows struct {
	// Predict has one logit a row (Binary), one value a row (Regression), or one
	// logit a class, row by row (Multiclass).
	Predict []float64
	// Label has one number a row: above .5 is yes (Binary), the number of the class
	// (Multiclass), the value (Regression).
	Label []float64
	// Weight has one number a row, at least 0; nil: all are 1.
	Weight []float64
	// Group says which rows belong together, for the per-group AUC; nil: there are
	// no groups.
	Group []uint64
}

// weight is that of a row.
func (r *Rows) weight(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}

// Tally collects what the metrics of one kind of prediction need. Its fields are
// exported so that it can travel between ranks; they are of no other use.
type Tally interface {
	// Add takes rows. Those of one tally have all groups, or none.
	Add(rows Rows)
	// Merge adds another tally of the same type, which must not be used after it.
	Merge(other Tally)
	// Into writes the metrics of all rows. What is not a number, such as the AUC
	// of rows of one kind, is left out.
	Into(r *Result)
}

// Result holds the metrics of one test. Those that the kind of prediction does
// not define are nil.
type Result struct {
	// Rows is the number of rows, whatever their weights; of a text, of tokens.
	Rows int `json:"rows"`
	// Loss is the mean of the model's own loss.
	Loss *float64 `json:"loss,omitempty"`
	// LogLoss is the mean negative log likelihood, in nats.
	LogLoss *float64 `json:"logloss,omitempty"`
	// Accuracy is the share of rows whose most likely class is right.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// AUC is the area under the ROC curve; see the function AUC.
	AUC *float64 `json:"auc,omitempty"`
	// GroupAUC is the mean AUC of the groups that have rows of both kinds, of
	// which there are Groups; see the function GroupAUC.
	GroupAUC *float64 `json:"gauc,omitempty"`
	Groups   int      `json:"groups,omitempty"`
	// Precision, Recall and F1 are of the rows whose probability is above
	// Threshold; see Confusion.
	Threshold *float64 `json:"threshold,omitempty"`
	Precision *float64 `json:"precision,omitempty"`
	Recall    *float64 `json:"recall,omitempty"`
	F1        *float64 `json:"f1,omitempty"`
	// Calibration compares probabilities with what happened.
	Calibration *Calibration `json:"calibration,omitempty"`
	// RMSE is the root of the mean squared error.
	RMSE *float64 `json:"rmse,omitempty"`
	// Perplexity is exp(LogLoss), where rows are the tokens of a text.
	Perplexity *float64 `json:"perplexity,omitempty"`
	// BestAUC is what the true probabilities of generated data reach on the same
	// rows, and AUCShare is AUC / BestAUC.
	BestAUC  *float64 `json:"best_auc,omitempty"`
	AUCShare *float64 `json:"auc_share,omitempty"`
}

// Calibration says how far predicted probabilities are those that are observed:
// of label 1 (Binary), or of the most likely class being right (Multiclass).
type Calibration struct {
	// Ratio is the sum of the probabilities over the number of rows in which it
	// happened: above 1 the model promises too much.
	Ratio *float64 `json:"ratio,omitempty"`
	// Error is the expected calibration error; see Bins.
	Error *float64 `json:"error,omitempty"`
	Bins  []Bin    `json:"bins"`
}

// Main returns the name and value of the metric that progress lines show.
func (r *Result) Main() (string, float64) {
	switch {
	case r.Perplexity != nil && r.Loss != nil:
		return "test loss", *r.Loss // beside the loss of training
	case r.AUC != nil:
		return "auc", *r.AUC
	case r.Accuracy != nil:
		return "accuracy", *r.Accuracy
	case r.RMSE != nil:
		return "rmse", *r.RMSE
	}
	if r.Loss == nil {
		return "loss", math.NaN()
	}
	return "loss", *r.Loss
}

// named is a metric that can be asked for.
type named struct {
	name   string
	higher bool // more is better
	of     func(r *Result) *float64
}

func all() []named {
	return []named{
		{"loss", false, func(r *Result) *float64 { return r.Loss }},
		{"logloss", false, func(r *Result) *float64 { return r.LogLoss }},
		{"accuracy", true, func(r *Result) *float64 { return r.Accuracy }},
		{"auc", true, func(r *Result) *float64 { return r.AUC }},
		{"gauc", true, func(r *Result) *float64 { return r.GroupAUC }},
		{"precision", true, func(r *Result) *float64 { return r.Precision }},
		{"recall", true, func(r *Result) *float64 { return r.Recall }},
		{"f1", true, func(r *Result) *float64 { return r.F1 }},
		{"rmse", false, func(r *Result) *float64 { return r.RMSE }},
		{"perplexity", false, func(r *Result) *float64 { return r.Perplexity }},
	}
}

// Names returns the metrics that Value knows: their names in JSON.
func Names() []string {
	var names []string
	for _, m := range all() {
		names = append(names, m.name)
	}
	return names
}

// Value returns a metric by its name; ok is false if the result has none of that
// name.
func (r *Result) Value(name string) (v float64, ok bool) {
	for _, m := range all() {
		if m.name == name {
			if p := m.of(r); p != nil {
				return *p, true
			}
		}
	}
	return math.NaN(), false
}

// Better reports whether a is better than b by more than delta, for the metric of
// that name: higher for some, lower for others. NaN is better than nothing, and
// everything is better than NaN.
func Better(name string, a, b, delta float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return !math.IsNaN(a)
	}
	for _, m := range all() {
		if m.name == name && m.higher {
			return a > b+delta
		}
	}
	return a < b-delta
}

// Finite leaves out what is not a number, which JSON cannot say.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Sigmoid is the probability of a logit: 1/(1+e^-z).
func Sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// Softmax writes the probabilities of logits into dst, which may be logits, and
// returns the log of the sum of e^logit. Nothing overflows: the largest logit is
// taken off first.
func Softmax(dst, logits []float64) (logSum float64) {
	top := math.Inf(-1)
	for _, z := range logits {
		top = math.Max(top, z) // NaN stays
	}
	sum := 0.0
	for i, z := range logits {
		dst[i] = math.Exp(z - top)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
	return top + math.Log(sum)
}

// ArgMax is the first index of the largest value.
func ArgMax(v []float64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}
