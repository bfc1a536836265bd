// Package scored has what a model says of rows, worked out from what its graph puts out.
package scored

import (
	"math"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/metric"
)

// Rows is what a model says of some consecutive rows. Its memory is used again.
type Rows struct {
	First int // number of the first row, from 0
	Task  graph.Task
	// Value has one number a row: the probability of label 1 (Binary), the value
	// (Regression), the probability of Class (Multiclass), or the logarithm of the
	// likelihood of the row's tokens (Tokens).
	Value []float64
	Class []int // Multiclass
	// Tokens are how many tokens a row has (Tokens).
	Tokens int
	// Names are what the input calls the classes; nil: by their numbers.
	Names []string
	// Label is that of every row, NaN where the file has none; of Tokens, that of every
	// token: the one after it.
	Label []float64

	room []float64 // probabilities of a row's classes
}

// Perplexity is that of a row (Tokens): e^-(log likelihood / tokens).
func (s *Rows) Perplexity(row int) float64 { return math.Exp(-s.Value[row] / float64(s.Tokens)) }

// Fill turns what the model's output has for so many rows, logits or values, into what is
// said of them. Task and Label are those of the rows.
func (s *Rows) Fill(rows int, predict []float64) {
	s.Value, s.Class = s.Value[:0], s.Class[:0]
	switch s.Task {
	case graph.Binary:
		for _, z := range predict {
			s.Value = append(s.Value, metric.Sigmoid(z))
		}
	case graph.Tokens:
		if rows > 0 {
			s.fillTokens(rows, predict)
		}
	case graph.Multiclass:
		if len(s.Label) == 0 {
			return
		}
		classes := s.classes(predict)
		for ; len(predict) > 0; predict = predict[classes:] {
			metric.Softmax(s.room, predict[:classes])
			best := metric.ArgMax(predict[:classes])
			s.Class = append(s.Class, best)
			s.Value = append(s.Value, s.room[best])
		}
	case graph.Regression:
		s.Value = append(s.Value, predict...)
	}
}

// classes is how many there are, for which room is made.
func (s *Rows) classes(predict []float64) int {
	classes := len(predict) / len(s.Label)
	if len(s.room) != classes {
		s.room = make([]float64, classes)
	}
	return classes
}

// fillTokens adds up the logarithms of the probabilities that the tokens of each row
// have, given those before them.
func (s *Rows) fillTokens(rows int, predict []float64) {
	s.Tokens = len(s.Label) / rows
	classes, sum := s.classes(predict), 0.0
	for i, y := range s.Label {
		logits := predict[i*classes : (i+1)*classes]
		sum += logits[int(y)] - metric.Softmax(s.room, logits)
		if (i+1)%s.Tokens == 0 {
			s.Value, sum = append(s.Value, sum), 0
		}
	}
}
