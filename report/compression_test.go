package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What one rank sends another receives: bytes of all ranks count once. Norms are those of one
// long vector.
func TestCompressionOfAllRanks(t *testing.T) {
	bucket := func(name string, moved, plain int64, gradient, residual, sum float64) Bucket {
		b := Bucket{Bucket: name, Codec: "onebit(512)+feedback", Sums: 9, SumsSkipped: 1}
		b.CompressedSum = CompressedSum{Moved: moved, Plain: plain, Gradient: gradient, Residual: residual, SumResidual: sum}
		b.Relate()
		return b
	}
	got := compression([]Rank{
		{Compression: []Bucket{bucket("w", 100, 2000, 3, 6, 0), bucket("b", 10, 20, 0, 0, 0)}},
		{Compression: []Bucket{bucket("w", 100, 2000, 4, 8, 5), bucket("b", 10, 20, 12, 5, 0)}},
		{},
	})
	w, b := bucket("w", 100, 2000, 5, 10, 5), bucket("b", 10, 20, 12, 5, 0)
	want := &Compression{CompressedSum: CompressedSum{
		Moved: 110, Plain: 2020, Saved: 1 - 110./2020, Gradient: 13, Residual: math.Sqrt(125), SumResidual: 5, Lost: math.Sqrt(125) / 13,
	}, Buckets: []Bucket{w, b}}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if w.Saved != .95 || w.Lost != 2 || w.Fewer() != 20 || (&CompressedSum{}).Fewer() != 1 {
		t.Errorf("%+v", w)
	}
	if c := compression([]Rank{{}, {}}); c != nil {
		t.Errorf("without compression: %+v", c)
	}
}
