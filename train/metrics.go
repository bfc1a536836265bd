package train

import (
	"cmp"
	"math"
	"slices"

	"github.com/gangline/gangline/graph"
)

// Metrics are the results of one evaluation. Fields that the model's task does
// not define are nil.
type Metrics struct {
	Rows     int      `json:"rows"`
	Loss     *float64 `json:"loss,omitempty"`     // mean over the rows, in the model's own loss
	LogLoss  *float64 `json:"logloss,omitempty"`  // mean negative log likelihood, nats
	Accuracy *float64 `json:"accuracy,omitempty"` // share of rows whose most likely class is right
	AUC      *float64 `json:"auc,omitempty"`      // area under the ROC curve, ties count half
	RMSE     *float64 `json:"rmse,omitempty"`     // root of the mean squared error
	// Perplexity is exp(LogLoss), where rows are the tokens of a text.
	Perplexity *float64 `json:"perplexity,omitempty"`
	// BestAUC is what the true probabilities of generated data reach on the same
	// rows, and AUCShare is AUC / BestAUC.
	BestAUC  *float64 `json:"best_auc,omitempty"`
	AUCShare *float64 `json:"auc_share,omitempty"`
}

// Main returns the name and value of the metric that progress lines show.
func (m Metrics) Main() (string, float64) {
	switch {
	case m.Perplexity != nil && m.Loss != nil:
		return "test loss", *m.Loss // beside the loss of training
	case m.AUC != nil:
		return "auc", *m.AUC
	case m.Accuracy != nil:
		return "accuracy", *m.Accuracy
	case m.RMSE != nil:
		return "rmse", *m.RMSE
	}
	if m.Loss == nil {
		return "loss", math.NaN()
	}
	return "loss", *m.Loss
}

// tally collects what an evaluation needs, a batch at a time. Tallies of
// several workers are merged by adding them up.
type tally struct {
	task    graph.Task
	loss    float64
	weight  float64
	rows    int
	correct int
	square  float64   // sum of squared errors
	scores  []float64 // binary: logits, for the AUC
	labels  []float64 // binary: beside the scores
}

// add takes predictions ([rows] or [rows classes], flat) and labels of a batch.
func (t *tally) add(predict, label []float64) {
	rows := len(label)
	t.rows += rows
	if rows == 0 {
		return
	}
	switch t.task {
	case graph.Binary:
		for i, z := range predict {
			if (z > 0) == (label[i] > .5) {
				t.correct++
			}
		}
		t.scores = append(t.scores, predict...)
		t.labels = append(t.labels, label...)
	case graph.Multiclass, graph.Tokens:
		classes := len(predict) / rows
		for i, y := range label {
			row := predict[i*classes : (i+1)*classes]
			if argmax(row) == int(y) {
				t.correct++
			}
		}
	case graph.Regression:
		for i, p := range predict {
			t.square += (p - label[i]) * (p - label[i])
		}
	}
}

// merge adds the tally of another worker.
func (t *tally) merge(o *tally) {
	t.loss += o.loss
	t.weight += o.weight
	t.rows += o.rows
	t.correct += o.correct
	t.square += o.square
	t.scores = append(t.scores, o.scores...)
	t.labels = append(t.labels, o.labels...)
}

// metrics works out the results; without scores, of the loss alone. What is not
// a number (an AUC of rows of one kind) is left out.
func (t *tally) metrics(scored bool) Metrics {
	m := Metrics{Rows: t.rows, Loss: finiteOrNil(t.loss / t.weight)}
	n := float64(t.rows)
	if !scored || t.rows == 0 {
		return m
	}
	switch t.task {
	case graph.Binary:
		m.LogLoss = m.Loss
		m.Accuracy = new(float64(t.correct) / n)
		m.AUC = finiteOrNil(AUC(t.scores, t.labels))
	case graph.Multiclass:
		m.LogLoss = m.Loss
		m.Accuracy = new(float64(t.correct) / n)
	case graph.Tokens:
		m.LogLoss = m.Loss
		m.Accuracy = new(float64(t.correct) / n)
		m.Perplexity = finiteOrNil(math.Exp(t.loss / t.weight))
	case graph.Regression:
		m.RMSE = finiteOrNil(math.Sqrt(t.square / n))
	}
	return m
}

// AUC is the area under the ROC curve: the probability that a random positive
// row (label > .5) scores higher than a random negative one, where equal scores
// count half (the Mann-Whitney statistic over the two counts; Hanley and
// McNeil 1982). It is NaN without rows of both kinds, and of a score that is NaN.
// O(n log n).
func AUC(scores, labels []float64) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var rankSum, positives float64
	for lo := 0; lo < len(order); {
		hi, pos := lo, 0.0
		for hi < len(order) && scores[order[hi]] == scores[order[lo]] {
			if labels[order[hi]] > .5 {
				pos++
			}
			hi++
		}
		if hi == lo { // NaN equals nothing, itself included: it has no rank
			return math.NaN()
		}
		// All rows of a tie share the mean of their 1-based ranks.
		rankSum += pos * float64(lo+1+hi) / 2
		positives += pos
		lo = hi
	}
	negatives := float64(len(order)) - positives
	if positives == 0 || negatives == 0 {
		return math.NaN()
	}
	return (rankSum - positives*(positives+1)/2) / (positives * negatives)
}

// argmax is the first index of the largest value.
func argmax(v []float64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}
