package residual

import (
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/report"
)

// Reports says what this rank's sums saved and lost. It reads all residuals once.
func Reports(buckets []*compressed.Bucket) []report.Bucket {
	var all []report.Bucket
	for _, b := range buckets {
		r := b.Report()
		one := report.Bucket{Bucket: b.Name, Codec: b.Spec.String(), Sums: r.Runs, SumsSkipped: r.Skipped}
		one.CompressedSum = report.CompressedSum{
			Moved: r.Bytes, Plain: r.Plain, Gradient: r.Input, Residual: r.First, SumResidual: r.Second,
		}
		one.Relate()
		all = append(all, one)
	}
	return all
}
