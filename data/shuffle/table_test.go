package shuffle

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table has the images that its permutation has, whatever it was the
// table of before.
func TestTable(t *testing.T) {
	var table Table
	check := func(t interface{ Fatalf(string, ...any) }, p Permutation, lo, hi uint64) {
		table.Set(p)
		if got, want := table.Append([]int{7}, lo, hi), p.Append([]int{7}, lo, hi); !slices.Equal(got, want) {
			t.Fatalf("images of [%d,%d) of %d are %v, want %v", lo, hi, p.n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 1<<20)).Draw(t, "n")
		lo := rapid.IntRange(0, n).Draw(t, "lo")
		hi := min(n, lo+rapid.IntRange(0, 2000).Draw(t, "count"))
		check(t, keyed(n, rapid.Uint64().Draw(t, "key")), uint64(lo), uint64(hi))
	})
	for _, n := range []int{1 << 32, 65535 * 65535, 65536*65536 + 1, 1 << 40} { // about where tables end
		check(t, keyed(n, 5), uint64(n)-3000, uint64(n))
	}
}

// BenchmarkTable is 512 positions of 32,561, and what entering an epoch costs.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{32_561, 40_000_000} {
		p := Of(n, 1, 1)
		var table Table
		table.Set(p)
		var dst []int
		b.Run("table", func(b *testing.B) {
			for b.Loop() {
				dst = table.Append(dst[:0], 100, 612)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/position")
		})
		b.Run("permutation", func(b *testing.B) {
			for b.Loop() {
				dst = p.Append(dst[:0], 100, 612)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/position")
		})
		b.Run("set", func(b *testing.B) {
			for b.Loop() {
				table.Set(p)
			}
		})
	}
}
