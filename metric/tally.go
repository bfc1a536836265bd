package metric

import "math"

// Binary is the tally of yes-or-no predictions. It keeps 16 bytes a row, 8 more
// for weights and 8 for groups.
type Binary struct {
	// Threshold is the probability above which a row counts as predicted, in
	// (0, 1). Set it before the first Add.
	Threshold float64

	Sums      Sums
	Bins      Bins
	Confusion Confusion
	Scores    []float64
	Labels    []float64
	Weights   []float64 // none, or one a row
	Groups    []uint64  // none, or one a row
}

// Add implements Tally.
func (b *Binary) Add(rows Rows) {
	cut := math.Log(b.Threshold / (1 - b.Threshold))
	for i, z := range rows.Predict {
		w, yes, happened := rows.weight(i), rows.Label[i] > .5, 0.0
		loss := softplus(z) // -log(1-p)
		if yes {
			loss, happened = softplus(-z), 1
		}
		b.Sums.add(w, w*loss, (z > 0) == yes)
		b.Confusion.Add(z > cut, yes, w)
		b.Bins.Add(Sigmoid(z), happened, w)
	}
	if rows.Weight != nil || b.Weights != nil {
		b.Weights = filled(b.Weights, len(b.Scores)) // of rows that came without
		for i := range rows.Predict {
			b.Weights = append(b.Weights, rows.weight(i))
		}
	}
	b.Scores = append(b.Scores, rows.Predict...)
	b.Labels = append(b.Labels, rows.Label...)
	b.Groups = append(b.Groups, rows.Group...)
}

// softplus is log(1+e^z) without overflow.
func softplus(z float64) float64 { return math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }

// Merge implements Tally.
func (b *Binary) Merge(other Tally) {
	o := other.(*Binary)
	b.Sums.merge(&o.Sums)
	b.Bins.Merge(&o.Bins)
	b.Confusion.Merge(&o.Confusion)
	if b.Weights != nil || o.Weights != nil {
		b.Weights = append(filled(b.Weights, len(b.Scores)), filled(o.Weights, len(o.Scores))...)
	}
	b.Scores = append(b.Scores, o.Scores...)
	b.Labels = append(b.Labels, o.Labels...)
	b.Groups = append(b.Groups, o.Groups...)
}

// filled returns weights, or n ones.
func filled(weights []float64, n int) []float64 {
	for len(weights) < n {
		weights = append(weights, 1)
	}
	return weights
}

// Into implements Tally.
func (b *Binary) Into(r *Result) {
	if b.Sums.into(r); r.Rows == 0 {
		return
	}
	r.AUC = Finite(AUC(b.Scores, b.Labels, b.Weights))
	if len(b.Groups) == len(b.Scores) {
		auc, used := GroupAUC(b.Groups, b.Scores, b.Labels, b.Weights)
		r.GroupAUC, r.Groups = Finite(auc), used
	}
	r.Threshold = Finite(b.Threshold)
	r.Precision, r.Recall, r.F1 = Finite(b.Confusion.Precision()), Finite(b.Confusion.Recall()), Finite(b.Confusion.F1())
	r.Calibration = b.Bins.Calibration()
}

// Multiclass is the tally of predictions of one class of several.
type Multiclass struct {
	// Tokens says that rows are the tokens of a text: their perplexity counts,
	// their calibration does not.
	Tokens bool

	Sums Sums
	Bins Bins

	room []float64
}

// Add implements Tally. A label that is no class has an infinite loss.
func (m *Multiclass) Add(rows Rows) {
	if len(rows.Label) == 0 {
		return
	}
	classes := len(rows.Predict) / len(rows.Label)
	if cap(m.room) < classes {
		m.room = make([]float64, classes)
	}
	p := m.room[:classes]
	for i, y := range rows.Label {
		z, w, loss := rows.Predict[i*classes:(i+1)*classes], rows.weight(i), math.Inf(1)
		logSum := Softmax(p, z)
		if y >= 0 && y < float64(classes) {
			loss = logSum - z[int(y)]
		}
		best := ArgMax(z)
		right := float64(best) == y
		m.Sums.add(w, w*loss, right)
		if happened := 0.0; !m.Tokens {
			if right {
				happened = 1
			}
			m.Bins.Add(p[best], happened, w)
		}
	}
}

// Merge implements Tally.
func (m *Multiclass) Merge(other Tally) {
	o := other.(*Multiclass)
	m.Sums.merge(&o.Sums)
	m.Bins.Merge(&o.Bins)
}

// Into implements Tally.
func (m *Multiclass) Into(r *Result) {
	m.Sums.into(r)
	switch {
	case r.Rows == 0:
	case !m.Tokens:
		r.Calibration = m.Bins.Calibration()
	case r.LogLoss != nil:
		r.Perplexity = Finite(math.Exp(*r.LogLoss))
	}
}

// Regression is the tally of values.
type Regression struct {
	Rows           int
	Weight, Square float64 // sums of weights, and of weighted squared errors
}

// Add implements Tally.
func (t *Regression) Add(rows Rows) {
	t.Rows += len(rows.Label)
	for i, p := range rows.Predict {
		d, w := p-rows.Label[i], rows.weight(i)
		t.Weight += w
		t.Square += w * d * d
	}
}

// Merge implements Tally.
func (t *Regression) Merge(other Tally) {
	o := other.(*Regression)
	t.Rows += o.Rows
	t.Weight += o.Weight
	t.Square += o.Square
}

// Into implements Tally.
func (t *Regression) Into(r *Result) {
	r.Rows = t.Rows
	r.RMSE = Finite(math.Sqrt(t.Square / t.Weight))
}

// Sums are those that classes need.
type Sums struct {
	Rows                  int
	Weight, Loss, Correct float64
}

func (s *Sums) add(weight, loss float64, correct bool) {
	s.Rows++
	s.Weight += weight
	s.Loss += loss
	if correct {
		s.Correct += weight
	}
}

func (s *Sums) merge(o *Sums) {
	s.Rows += o.Rows
	s.Weight += o.Weight
	s.Loss += o.Loss
	s.Correct += o.Correct
}

func (s *Sums) into(r *Result) {
	r.Rows = s.Rows
	r.LogLoss, r.Accuracy = Finite(s.Loss/s.Weight), Finite(s.Correct/s.Weight)
}
