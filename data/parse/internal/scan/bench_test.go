package scan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkEntries reads entries of six significant digits, one long line of them.
func BenchmarkEntries(b *testing.B) {
	if !Here() {
		b.Skip("this machine has no assembly")
	}
	const n = 4000
	r, id := rand.New(rand.NewPCG(1, 2)), 0
	var text []byte
	for range n {
		id += 1 + r.IntN(1200)
		text = fmt.Appendf(text, " %d:%.6g", id, .01+.99*r.Float64())
	}
	text = append(append(text, '\n'), make([]byte, 2*reach)...)
	ids, values := make([]int32, n+4), make([]float32, n+4)
	b.SetBytes(int64(len(text)))
	e := &Entries{Base: 1, Beyond: 1 << 30}
	for b.Loop() {
		e.Begin()
		for at, k := 0, 0; text[at] == ' '; {
			next, got, _, _ := e.Read(text, at, ids[k:], values[k:], -1)
			if got == 0 {
				b.Fatal(at)
			}
			at, k = next, k+got
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
}
