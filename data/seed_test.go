package data

import (
	"slices"
	"testing"
)

// Every seed and every epoch shuffles in a way of its own.
func TestSeedsShuffleApart(t *testing.T) {
	const n = 50
	var seen [][]int
	for seed := range uint64(4) {
		for epoch := range 4 {
			o := Order{Seed: seed, Rows: n, Batch: n, Shuffle: true}
			rows := slices.Clone(o.RankRows(int64(epoch), 0, 1, nil))
			if slices.ContainsFunc(seen, func(other []int) bool { return slices.Equal(other, rows) }) {
				t.Errorf("seed %d epoch %d has an order that was there before", seed, epoch)
			}
			seen = append(seen, rows)
		}
	}
}
