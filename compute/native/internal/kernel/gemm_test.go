package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
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

func testMultiply[T tensor.Float](t *testing.T, asm bool, eps float64) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &Product[T]{Tile: TileFor[T](asm)}
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
	for _, asm := range variants() {
		t.Run(fmt.Sprintf("asm=%t", asm), func(t *testing.T) {
			testMultiply[float32](t, asm, 0x1p-23)
			testMultiply[float64](t, asm, 0x1p-52)
		})
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
