package compress

import (
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/internal/mix"
)

// Matrix is a part of a vector that is a matrix: Rows*Cols elements in row-major order,
// from element Lo on.
type Matrix struct{ Lo, Rows, Cols int }

// Layers makes matrices of the shapes of gradients that lie at elements lo of a vector:
// the first dim is the rows, all others together are the columns. Shapes of fewer than two
// dims are left out, which means uncompressed.
func Layers(lo []int, shapes [][]int) []Matrix {
	var out []Matrix
	for i, s := range shapes {
		if len(s) < 2 {
			continue
		}
		m := Matrix{Lo: lo[i], Rows: s[0], Cols: 1}
		for _, d := range s[1:] {
			m.Cols *= d
		}
		out = append(out, m)
	}
	return out
}

// LowRank sums the matrices M_i of several ranks as one product of two thin matrices:
//
//	Sketch   M_i += residual;  P_i = M_i Q
//	         P = sum of P_i over the ranks
//	Solve    P made orthonormal;  Q_i = M_i' P
//	         Q = sum of Q_i over the ranks
//	Finish   the sum of M_i is about P Q';  residual = M_i - P Q_i'
//
// and begins the next step with the Q of this one (its columns scaled to length 1, which
// changes nothing but keeps numbers near 1), so that over the steps Q turns to the
// largest singular vectors. What belongs to no matrix, or to one too small to gain from
// it, is summed as it is, behind P.
//
// Source: T. Vogels, S. Karimireddy and M. Jaggi, "PowerSGD: Practical Low-Rank Gradient
// Compression for Distributed Optimization", 2019, Algorithms 1 and 2. There the
// residual is M_i less the mean of what was decoded; here it is M_i less its own
// projection on P, which has the same sum over the ranks, and so the same results, and is
// shorter: no rank keeps how it differs from the others.
//
// Each step costs 6r multiplications an element, and bytes as in the package comment. Memory
// is twice the vector.
type LowRank struct {
	rank     int
	matrices []thin
	plain    []span
	p, q     []float32 // transposed: column by column
	own      []float32 // this rank's part of Q
	warm     pair
	residual pair
	squares  float64
}

// thin is a matrix and where its factors begin.
type thin struct {
	Matrix
	p, q int
}

// span is elements [lo, hi).
type span struct{ lo, hi int }

// NewLowRank binds matrices of a vector of n elements, which must not overlap and are taken
// in the order of their places, and the rank, at least 1.
func NewLowRank(n, rank int, matrices []Matrix) (*LowRank, error) {
	if rank < 1 || n < 0 {
		return nil, fmt.Errorf("compress: rank %d of %d elements: want 1 at least", rank, n)
	}
	sorted := slices.Clone(matrices)
	slices.SortFunc(sorted, func(a, b Matrix) int { return a.Lo - b.Lo })
	l := &LowRank{rank: rank, residual: newPair(n)}
	at, p, q := 0, 0, 0
	for _, m := range sorted {
		if m.Rows < 0 || m.Cols < 0 || m.Lo < at || m.Cols > 0 && m.Rows > (n-m.Lo)/m.Cols {
			return nil, fmt.Errorf("compress: matrix of %d x %d from element %d on overlaps the one before, or ends after %d", m.Rows, m.Cols, m.Lo, n)
		}
		if !gains(rank, m) {
			continue
		}
		l.unpacked(at, m.Lo)
		l.matrices = append(l.matrices, thin{m, p, q})
		p, q = p+rank*m.Rows, q+rank*m.Cols
		at = m.Lo + m.Rows*m.Cols
	}
	l.unpacked(at, n)
	for _, s := range l.plain {
		p += s.hi - s.lo
	}
	l.p, l.q, l.own, l.warm = make([]float32, p), make([]float32, q), make([]float32, q), newPair(q)
	for i := range l.warm.last {
		l.warm.last[i] = fresh(i)
	}
	return l, nil
}

// unpacked adds elements that are summed as they are.
func (l *LowRank) unpacked(lo, hi int) {
	if lo < hi {
		l.plain = append(l.plain, span{lo, hi})
	}
}

// fresh is element i of the factors Q before anything is known: any numbers would do
// that are the same on all ranks and in no pattern.
func fresh(i int) float32 { return float32(2*mix.Unit(mix.At(mix.Golden, uint64(i))) - 1) }

// P is what Sketch made, to be summed over the ranks in place.
func (l *LowRank) P() []float32 { return l.p }

// Q is what Solve made, to be summed over the ranks in place.
func (l *LowRank) Q() []float32 { return l.q }

// Sketch begins a step with this rank's vector.
func (l *LowRank) Sketch(v []float32) {
	l.residual.kept, l.warm.kept = false, false
	l.squares = 0
	for _, m := range l.matrices {
		for i := range m.Rows {
			lo := m.Lo + i*m.Cols
			row := l.residual.next[lo : lo+m.Cols]
			l.squares += sum(row, l.residual.last[lo:lo+m.Cols], v[lo:lo+m.Cols])
			for k := range l.rank {
				l.p[m.p+k*m.Rows+i] = dot(row, l.warm.last[m.q+k*m.Cols:])
			}
		}
	}
	at := l.tail()
	for _, s := range l.plain {
		n := s.hi - s.lo
		sum(l.p[at:at+n], l.residual.last[s.lo:s.hi], v[s.lo:s.hi]) // of a codec before this one
		clear(l.residual.next[s.lo:s.hi])
		at += n
	}
}

// tail is where in P the elements begin that are summed as they are.
func (l *LowRank) tail() int {
	at := 0
	for _, m := range l.matrices {
		at += l.rank * m.Rows
	}
	return at
}

// Solve goes on when P is the sum over the ranks.
func (l *LowRank) Solve() {
	clear(l.q)
	for _, m := range l.matrices {
		p := l.p[m.p : m.p+l.rank*m.Rows]
		orthonormalize(p, l.rank, m.Rows)
		for i := 0; i < m.Rows; i += 4 {
			l.project(m, p, i, min(4, m.Rows-i))
		}
	}
	copy(l.own, l.q)
}

// project adds to Q what n rows from row i on make of it.
func (l *LowRank) project(m thin, p []float32, i, n int) {
	var rows [4][]float32
	for j := range n {
		lo := m.Lo + (i+j)*m.Cols
		rows[j] = l.residual.next[lo : lo+m.Cols]
	}
	for k := range l.rank {
		q, c := l.q[m.q+k*m.Cols:m.q+(k+1)*m.Cols], p[k*m.Rows+i:k*m.Rows+i+n]
		if n == 4 {
			addFour(q, &rows, c)
			continue
		}
		for j, x := range c {
			addMultiple(q, rows[j], x)
		}
	}
}

// Finish ends the step when Q is the sum over the ranks: v becomes the sum of the vectors.
// It reports whether all of it is finite: only then may Keep be called.
func (l *LowRank) Finish(v []float32) (finite bool) {
	for _, m := range l.matrices {
		for i := range m.Rows {
			lo := m.Lo + i*m.Cols
			row, rest := v[lo:lo+m.Cols], l.residual.next[lo:lo+m.Cols]
			l.expand(m, i, row, rest)
		}
		for k := range l.rank {
			l.warmUp(m.q+k*m.Cols, m.q+(k+1)*m.Cols)
		}
	}
	at := l.tail()
	for _, s := range l.plain {
		at += copy(v[s.lo:s.hi], l.p[at:])
	}
	return Finite(v)
}

// Whole is a step of one rank alone, which has nobody to send to: v becomes the sum of v and
// the residual, of which nothing is left. It reports whether all of it is finite.
func (l *LowRank) Whole(v []float32) (finite bool) {
	l.residual.kept, l.warm.kept = false, false
	l.squares = sum(v, l.residual.last, v)
	clear(l.residual.next)
	copy(l.warm.next, l.warm.last)
	return Finite(v)
}

// warmUp readies column [lo, hi) of Q for the next step. A column of zeros would stay one.
func (l *LowRank) warmUp(lo, hi int) {
	norm := Norm(l.q[lo:hi])
	for i := lo; i < hi; i++ {
		l.warm.next[i] = float32(float64(l.q[i]) / norm)
		if norm == 0 {
			l.warm.next[i] = fresh(i)
		}
	}
}

// expand sets row i of the sum, and takes from the rest of this rank's row its part.
func (l *LowRank) expand(m thin, i int, row, rest []float32) {
	p := l.p[m.p+i:]
	clear(row)
	k := 0
	for ; k+1 < l.rank; k += 2 {
		q := m.q + k*m.Cols
		x, y := p[k*m.Rows], p[(k+1)*m.Rows]
		addTwo(row, l.q[q:q+2*m.Cols], x, y)
		addTwo(rest, l.own[q:q+2*m.Cols], -x, -y)
	}
	if k < l.rank {
		q := m.q + k*m.Cols
		addMultiple(row, l.q[q:q+m.Cols], p[k*m.Rows])
		addMultiple(rest, l.own[q:q+m.Cols], -p[k*m.Rows])
	}
}

// Keep makes what Finish left the state of the next step. Revert undoes it once, for a step
// that was skipped.
func (l *LowRank) Keep() { l.residual.keep(); l.warm.keep() }

// Revert undoes the last Keep. It does nothing if there was none after the last Revert or
// since the next Sketch, and reports that.
func (l *LowRank) Revert() (done bool) {
	l.residual.revert()
	return l.warm.revert()
}

// State returns the residual and the warm Q: memory that is valid until the next Sketch.
func (l *LowRank) State() State { return State{First: l.residual.last, Warm: l.warm.last} }

// Restore takes over the share of rank index of n in the state of another group, as the
// function of that name. On an error nothing has changed.
func (l *LowRank) Restore(index, n int, old []State) error {
	var warm []float32
	for i := range old {
		if w := old[i].Warm; len(w) > 0 && warm == nil {
			warm = w
		}
	}
	if len(old) > 0 && len(warm) != len(l.q) {
		return fmt.Errorf("%w: factors of %d elements where %d belong: the matrices or the rank were others", ErrState, len(warm), len(l.q))
	}
	if err := Restore(l.residual.last, nil, 0, index, n, old); err != nil {
		return err
	}
	l.residual.kept, l.warm.kept = false, false
	copy(l.warm.last, warm)
	for i := range l.warm.last {
		if len(old) == 0 {
			l.warm.last[i] = fresh(i)
		}
	}
	return nil
}

// Input is the norm of what this rank gave to matrices in the last Sketch.
func (l *LowRank) Input() float64 { return math.Sqrt(l.squares) }

// lost is how much of a column may be left without what other columns have of it, for it to
// be no more than rounding.
const lost = 1e-5

// orthonormalize makes the columns of length rows, one behind the other, orthonormal, by
// Gram-Schmidt, twice for each column, which is enough (L. Giraud et al., 2005). A column
// that depends on those before becomes zero; one that is not finite has NaN after it.
func orthonormalize(p []float32, columns, rows int) {
	for k := range columns {
		c := p[k*rows : (k+1)*rows]
		before := Norm(c)
		for range 2 {
			for j := range k {
				other := p[j*rows : (j+1)*rows]
				addMultiple(c, other, -float32(dot64(c, other)))
			}
		}
		after := Norm(c)
		factor := 1 / after
		if after <= lost*before { // or both are infinite: infinity times 0 is NaN
			factor = 0
		}
		for i, x := range c {
			c[i] = float32(float64(x) * factor)
		}
	}
}

// dot is the sum of products, of as many as a has.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		x, y := a[:4:4], b[:4:4]
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += float32(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

func dot64(a, b []float32) float64 {
	s := 0.0
	for i, x := range a {
		s += float64(x) * float64(b[i]) // exact products: fused or not is the same
	}
	return s
}

// addMultiple is dst += f src.
func addMultiple(dst, src []float32, f float32) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := dst[:4:4], src[:4:4]
		d[0] += float32(f * s[0])
		d[1] += float32(f * s[1])
		d[2] += float32(f * s[2])
		d[3] += float32(f * s[3])
		dst, src = dst[4:], src[4:]
	}
	for i := range dst {
		dst[i] += float32(f * src[i])
	}
}

// addTwo is dst += f a + g b, from left to right, for a and b one behind the other.
func addTwo(dst, ab []float32, f, g float32) {
	n := len(dst)
	a, b := ab[:n], ab[n:2*n]
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		d, x, y := dst[:4:4], a[:4:4], b[:4:4]
		d[0] = d[0] + float32(f*x[0]) + float32(g*y[0])
		d[1] = d[1] + float32(f*x[1]) + float32(g*y[1])
		d[2] = d[2] + float32(f*x[2]) + float32(g*y[2])
		d[3] = d[3] + float32(f*x[3]) + float32(g*y[3])
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = dst[i] + float32(f*a[i]) + float32(g*b[i])
	}
}

// addFour is dst += f[0] rows[0] + ... + f[3] rows[3], from left to right.
func addFour(dst []float32, rows *[4][]float32, f []float32) {
	n := len(dst)
	a, b, c, d := rows[0][:n], rows[1][:n], rows[2][:n], rows[3][:n]
	e, g, h, i := f[0], f[1], f[2], f[3]
	for j := range dst {
		dst[j] = dst[j] + float32(e*a[j]) + float32(g*b[j]) + float32(h*c[j]) + float32(i*d[j])
	}
}
