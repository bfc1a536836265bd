package compress_test

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/collective/compress"
)

// wide are the codecs with the settings they are meant for.
func wide(b testing.TB) []compress.Codec {
	i8, err1 := compress.NewInt8(256)
	one, err2 := compress.NewOneBit(512)
	top, err3 := compress.NewTopK(.01)
	if err1 != nil || err2 != nil || err3 != nil {
		b.Fatal(err1, err2, err3)
	}
	return []compress.Codec{compress.F16{}, compress.BF16{}, i8, one, top}
}

// The bytes of a second are those of float32.
func BenchmarkCodec(b *testing.B) {
	const n = 256 << 10
	v, sum := normal(source(1), n), make([]float32, n)
	for _, c := range wide(b) {
		enc := make([]byte, c.Bytes(n))
		c.Encode(enc, v)
		f := compress.NewFeedback(c, n)
		run := func(name string, op func() error) {
			b.Run(fmt.Sprintf("%v/%s", c, name), func(b *testing.B) {
				b.SetBytes(4 * n)
				b.ReportAllocs()
				for b.Loop() {
					if err := op(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("encode", func() error { c.Encode(enc, v); return nil })
		run("feedback", func() error { f.Encode(enc, 0, v); f.Keep(); return nil })
		run("decode", func() error { return c.Decode(sum, enc) })
		run("add", func() error { return c.DecodeAdd(sum, enc) })
	}
}

// A step of one rank, without the sums over ranks.
func BenchmarkLowRank(b *testing.B) {
	const rows, cols = 512, 512
	for _, rank := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(rank), func(b *testing.B) {
			l, err := compress.NewLowRank(rows*cols, rank, []compress.Matrix{{Rows: rows, Cols: cols}})
			if err != nil {
				b.Fatal(err)
			}
			v := normal(source(1), rows*cols)
			w := make([]float32, len(v))
			b.SetBytes(4 * rows * cols)
			b.ReportAllocs()
			for b.Loop() {
				copy(w, v)
				l.Sketch(w)
				l.Solve()
				l.Finish(w)
				l.Keep()
			}
		})
	}
}
