package metric

import (
	"cmp"
	"math"
	"slices"
)

// AUC is the area under the ROC curve: the probability that a random positive
// row (label > .5) scores higher than a random negative one, where equal scores
// count half (the Mann-Whitney statistic over the two counts; Hanley and
// McNeil 1982). With weights (nil: all 1), rows are drawn in proportion to them.
// It is NaN without weight of both kinds, and of a score that is NaN. It is
// exact but for the rounding of the sums, of which there is none without weights
// below 2^53 pairs. O(n log n).
func AUC(scores, labels, weights []float64) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	return aucOf(order, scores, labels, weights)
}

// aucOf is the AUC of the rows that order names, which it sorts.
func aucOf(order []int, scores, labels, weights []float64) float64 {
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	var wins, positives, negatives float64 // wins counts twice
	for lo := 0; lo < len(order); {
		hi, pos, neg := lo, 0.0, 0.0
		for hi < len(order) && scores[order[hi]] == scores[order[lo]] {
			if i := order[hi]; labels[i] > .5 {
				pos += weight(i)
			} else {
				neg += weight(i)
			}
			hi++
		}
		if hi == lo { // NaN equals nothing, itself included: it has no rank
			return math.NaN()
		}
		wins += pos * (2*negatives + neg) // beats all below, half of its equals
		positives += pos
		negatives += neg
		lo = hi
	}
	if positives == 0 || negatives == 0 {
		return math.NaN()
	}
	return wins / 2 / (positives * negatives)
}

// GroupAUC is the AUC within groups, averaged over the groups in proportion to
// their weight, which is their number of rows if weights are nil (Zhu et al.
// 2017). A ranking is used within a group, say of one user: to tell users apart
// is of no help there. Groups with rows of one kind have no AUC and do not count;
// used is the number of those that do. It is NaN if there are none. O(n log n).
func GroupAUC(groups []uint64, scores, labels, weights []float64) (auc float64, used int) {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(groups[a], groups[b]) })
	var sum, total float64
	for lo := 0; lo < len(order); {
		hi, weight := lo, 0.0
		for hi < len(order) && groups[order[hi]] == groups[order[lo]] {
			if weights == nil {
				weight++
			} else {
				weight += weights[order[hi]]
			}
			hi++
		}
		rows := order[lo:hi]
		if slices.ContainsFunc(rows, func(i int) bool { return math.IsNaN(scores[i]) }) {
			return math.NaN(), 0
		}
		if a := aucOf(rows, scores, labels, weights); !math.IsNaN(a) {
			sum += weight * a
			total += weight
			used++
		}
		lo = hi
	}
	return sum / total, used
}
