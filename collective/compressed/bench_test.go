package compressed_test

import (
	"testing"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// Two ranks of one process, so that the time is that of computing: what a rank takes for an
// element beside the wire is the CPU time of the benchmark, divided by both ranks' elements.
func BenchmarkAllReduce(b *testing.B) {
	const n, rows, cols = 2, 1024, 1024
	i8, _ := compress.NewInt8(256)
	one, _ := compress.NewOneBit(512)
	coded := func(c func() compress.Codec, feedback bool) func(collective.Party) (sum, error) {
		return func(p collective.Party) (sum, error) {
			return compressed.NewAllReduce(p, c(), rows*cols, feedback)
		}
	}
	for _, c := range []struct {
		name string
		make func(p collective.Party) (sum, error)
	}{
		{"ring", func(p collective.Party) (sum, error) {
			r, err := collective.NewRunner(p, collective.RingAllReduce(n), tensor.F32, rows*cols)
			return plain{r}, err
		}},
		{"f16", coded(func() compress.Codec { return compress.F16{} }, false)},
		{"bf16", coded(func() compress.Codec { return compress.BF16{} }, false)},
		{"int8", coded(func() compress.Codec { return i8 }, true)},
		{"onebit", coded(func() compress.Codec { return one }, true)},
		{"topk", coded(func() compress.Codec { c, _ := compress.NewTopK(.01); return c }, true)},
		{"powersgd", func(p collective.Party) (sum, error) {
			return compressed.NewPowerSGD(p, rows*cols, 2, []compress.Matrix{{Rows: rows, Cols: cols}})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(n, mem.Options{})
			defer w.close()
			b.SetBytes(4 * rows * cols)
			var r compress.Report
			must(b, w.each(func(i int) error {
				s, err := c.make(w.party(i))
				in := vector(i, 0, rows*cols)
				v := tensor.New(tensor.F32, rows*cols)
				for range b.N {
					if err == nil {
						copy(v.F32(), in)
						err = s.Run(b.Context(), v)
					}
				}
				if i == 0 && err == nil {
					r = s.Report()
				}
				return err
			}))
			if r.Bytes > 0 {
				b.ReportMetric(float64(r.Plain)/float64(r.Bytes), "fewer")
				b.ReportMetric(r.Relative(), "residual")
			}
		})
	}
}
