package distinct

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/internal/mix"
)

// TestFind holds the radix sort against the obvious way, for ids of any
// width.
func TestFind(t *testing.T) {
	var d Sorter
	rapid.Check(t, func(t *rapid.T) {
		most := int64(1)<<rapid.IntRange(0, 62).Draw(t, "bits") - 1
		ids := rapid.SliceOf(rapid.Int64Range(0, most)).Draw(t, "ids")
		ids = append(ids, ids[:len(ids)/2]...)
		pos := make([]int64, len(ids))
		keys := d.Find(ids, make([]int64, len(ids)), pos)
		if want := slices.Compact(slices.Sorted(slices.Values(ids))); !slices.Equal(keys, want) {
			t.Fatalf("keys of %v are %v, want %v", ids, keys, want)
		}
		for i, p := range pos {
			if keys[p] != ids[i] {
				t.Fatalf("entry %d of %v is at %d of %v", i, ids, p, keys)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	ids := make([]int64, 26*2048)
	for i := range ids {
		ids[i] = int64(mix.At(1, uint64(i)) >> 44)
	}
	var d Sorter
	keys, pos := make([]int64, len(ids)), make([]int64, len(ids))
	for b.Loop() {
		d.Find(ids, keys, pos)
	}
}
