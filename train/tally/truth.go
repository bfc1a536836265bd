package tally

import (
	"math"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/metric"
)

// Compare adds to metrics what the truth reaches on the same rows of a source, whose labels
// are in a column of this name.
func Compare(m *metric.Result, src data.Source, oracle data.Oracle, label string) error {
	best, err := bestAUC(src, oracle, label)
	if err != nil || math.IsNaN(best) {
		return err
	}
	m.BestAUC, m.AUCShare = new(best), new(*m.AUC/best)
	return nil
}

// bestAUC is the AUC of the true probabilities on all rows of a source.
func bestAUC(src data.Source, oracle data.Oracle, label string) (float64, error) {
	const chunk = 4096
	n := src.Rows()
	scores, labels := make([]float64, 0, n), make([]float64, 0, n)
	column := 0
	for i, c := range src.Columns() {
		if c.Name == label {
			column = i
		}
	}
	rows := make([]int, 0, chunk)
	var b data.Batch
	for lo := 0; lo < n; lo += chunk {
		rows = rows[:0]
		for r := lo; r < min(lo+chunk, n); r++ {
			rows = append(rows, r)
			scores = append(scores, oracle.Probability(r))
		}
		if err := src.Read(rows, &b); err != nil {
			return 0, err
		}
		for _, y := range b.Columns[column].Values {
			labels = append(labels, float64(y))
		}
	}
	return metric.AUC(scores, labels, nil), nil
}
