package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gangline/gangline/tensor"
)

// operand makes a random matrix of rows × cols, stored transposed or not.
func operand[T tensor.Float](r *rand.Rand, rows, cols int, trans bool) Matrix[T] {
	data := make([]T, rows*cols)
	for i := range data {
		data[i] = T(r.NormFloat64())
	}
	if trans {
		return Matrix[T]{data, 1, rows}
	}
	return Matrix[T]{data, cols, 1}
}

func testMultiply[T tensor.Float](t *testing.T, tile *Tile[T], eps float64) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &Product[T]{Tile: tile}
	sizes := []int{0, 1, 2, 3, 5, 6, 7, 15, 16, 17, 31, 40, 65}
	big := []int{7, 385, 400, 650, 1040}
	for trial := range 200 {
		pick := func() int { return sizes[r.IntN(len(sizes))] }
		m, n, k := pick(), pick(), pick()
		switch trial {
		case 0, 1, 2, 3:
			m, n, k = big[trial+1], 1040, 9
		case 4, 5, 6, 7:
			m, n, k = 13, 35, big[trial-3]
		}
		ta, tb := r.IntN(2) == 1, r.IntN(2) == 1
		a, b := operand[T](r, m, k, ta), operand[T](r, k, n, tb)
		ld := n + r.IntN(3)
		const canary = 12345
		c := make([]T, m*ld+20)
		for i := range c {
			c[i] = canary
		}
		// In four parts, as threads would.
		im, jm := m/2, n/3
		p.Multiply(c[:m*ld+20], ld, a, b, 0, im, 0, jm, k)
		p.Multiply(c[:m*ld+20], ld, a, b, im, m, 0, jm, k)
		p.Multiply(c[:m*ld+20], ld, a, b, 0, im, jm, n, k)
		p.Multiply(c[:m*ld+20], ld, a, b, im, m, jm, n, k)
		whole := make([]T, m*ld+20)
		(&Product[T]{Tile: p.Tile}).Multiply(whole, ld, a, b, 0, m, 0, n, k)
		for at, v := range c {
			i, j := at, n
			if ld > 0 {
				i, j = at/ld, at%ld
			}
			if i >= m || j >= n {
				if v != canary {
					t.Fatalf("%dx%dx%d: wrote outside at %d", m, k, n, at)
				}
				continue
			}
			want, size := 0.0, 0.0
			for l := range k {
				x := float64(a.Data[i*a.Row+l*a.Col]) * float64(b.Data[l*b.Row+j*b.Col])
				want += x
				size += math.Abs(x)
			}
			if d := math.Abs(float64(v) - want); !(d <= eps*size*float64(k+1)/2) {
				t.Fatalf("%dx%dx%d ta=%t tb=%t: (%d,%d) is %v, want %v", m, k, n, ta, tb, i, j, v, want)
			}
			if whole[at] != v {
				t.Fatalf("%dx%dx%d: (%d,%d) is %v in a part and %v in the whole", m, k, n, i, j, v, whole[at])
			}
		}
	}
}

func TestMultiply(t *testing.T) {
	for name, tile := range tiles[float32]() {
		t.Run(name+"/f32", func(t *testing.T) { testMultiply(t, tile, 0x1p-23) })
	}
	for name, tile := range tiles[float64]() {
		t.Run(name+"/f64", func(t *testing.T) { testMultiply(t, tile, 0x1p-52) })
	}
}

// tiles are all tiles that this machine can run, with what they are made of.
func tiles[T tensor.Float]() map[string]*Tile[T] {
	all := map[string]*Tile[T]{"go": TileFor[T](false)}
	if Assembly() {
		all["AVX2"] = TileOfAVX2[T]()
	}
	if wide() {
		all["AVX-512"] = TileFor[T](true)
	}
	return all
}

// blocksSeen are the blocks that a product reported as done.
type blocksSeen struct {
	ld    int
	c     []float32
	times []int     // how often each element was in one
	then  []float32 // what it was at the last
}

func (b *blocksSeen) Block(i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			b.times[i*b.ld+j]++
			b.then[i*b.ld+j] = b.c[i*b.ld+j]
		}
	}
}

// TestAssemblyTilesAgree proves that the tiles of AVX-512 and of AVX2 give the
// same bits, setting and adding, and that every element is reported as done
// once, after its last change.
func TestAssemblyTilesAgree(t *testing.T) {
	if !wide() {
		t.Skip("this machine has no AVX-512")
	}
	r := rand.New(rand.NewPCG(5, 6))
	sizes := []int{1, 2, 3, 4, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 25, 31, 32, 33, 47, 48, 49, 63, 65, 129}
	for trial := range 400 {
		m, n, k := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))]
		switch trial % 40 {
		case 0:
			m = blockM + sizes[trial/40]
		case 1:
			k = blockK*(1+trial%3) + sizes[trial/40]
		case 2:
			m, n = blockM+1, blockN+sizes[trial/40]
		case 3:
			k = 0
		}
		a, b := operand[float32](r, m, k, r.IntN(2) == 1), operand[float32](r, k, n, r.IntN(2) == 1)
		start := operand[float32](r, m, n, false).Data
		add := r.IntN(2) == 1
		var got [2]blocksSeen
		for i, tile := range []*Tile[float32]{TileOfAVX2[float32](), TileFor[float32](true)} {
			got[i] = blocksSeen{n, slices.Clone(start), make([]int, m*n), make([]float32, m*n)}
			p := &Product[float32]{Tile: tile, Add: add, After: &got[i]}
			p.Multiply(got[i].c, n, a, b, 0, m, 0, n, k)
			for at, times := range got[i].times {
				if times != 1 || math.Float32bits(got[i].then[at]) != math.Float32bits(got[i].c[at]) {
					t.Fatalf("%dx%dx%d, tile of %d: element %d was reported %d times as %v and is %v", m, k, n, tile.Cols, at, times, got[i].then[at], got[i].c[at])
				}
			}
		}
		for at := range got[0].c {
			if x, y := got[0].c[at], got[1].c[at]; math.Float32bits(x) != math.Float32bits(y) {
				t.Fatalf("%dx%dx%d add=%t: element (%d,%d) is %v in AVX2 and %v in AVX-512", m, k, n, add, at/n, at%n, x, y)
			}
		}
	}
}

// variants are the tables that this machine has: false for portable Go.
func variants() []bool {
	if Assembly() {
		return []bool{false, true}
	}
	return []bool{false}
}

func BenchmarkMultiply(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{512, 512, 512}, {1024, 1024, 1024}, {128, 784, 512}, {128, 512, 512}, {1024, 256, 1024}, {1024, 256, 256}, {128, 64, 128}, {1, 512, 512}, {128, 512, 10}} {
		for _, tr := range [][2]bool{{false, false}, {false, true}, {true, false}} {
			m, k, n := s[0], s[1], s[2]
			x, y := operand[float32](r, m, k, tr[0]), operand[float32](r, k, n, tr[1])
			c := make([]float32, m*n)
			p := &Product[float32]{Tile: TileFor[float32](Assembly())}
			b.Run(fmt.Sprintf("%dx%dx%d/%t/%t", m, k, n, tr[0], tr[1]), func(b *testing.B) {
				for b.Loop() {
					p.Multiply(c, n, x, y, 0, m, 0, n, k)
				}
				b.ReportMetric(2*float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
