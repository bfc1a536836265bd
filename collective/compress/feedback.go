package compress

import "math"

// pieceMin is about how many elements go through all passes of a codec at a time, so
// that they stay in the first cache.
const pieceMin = 2048

// Feedback encodes vectors of one length by a codec, each with what was lost of those
// before it. A vector may be encoded in ranges, which together are all of it, each once.
//
// Source: F. Seide et al., 2014 (see OneBit); that it converges as fast as without
// compression: S. Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient
// Compression Schemes", 2019.
//
// The residual changes only when Keep is called. Memory is twice the vector.
type Feedback struct {
	codec Codec
	pair
	piece   int
	squares float64
}

// pair is a residual and that of the vector in work, or, after keep, that before it.
type pair struct {
	last, next []float32
	kept       bool
}

func newPair(n int) pair { return pair{last: make([]float32, n), next: make([]float32, n)} }

func (p *pair) keep() {
	p.last, p.next = p.next, p.last
	p.kept = true
}

// revert undoes one keep, and reports whether there was one.
func (p *pair) revert() bool {
	if !p.kept {
		return false
	}
	p.last, p.next = p.next, p.last
	p.kept = false
	return true
}

// NewFeedback makes a residual of n zeros.
func NewFeedback(c Codec, n int) *Feedback {
	f := &Feedback{codec: c, pair: newPair(n)}
	if b, ok := c.(interface{ piece() int }); ok {
		f.piece = ceilDiv(pieceMin, b.piece()) * b.piece()
	}
	return f
}

// Encode encodes v and what was lost before of the range that begins at element lo: as the
// codec encodes their sum. It returns the number of bytes.
func (f *Feedback) Encode(dst []byte, lo int, v []float32) int {
	f.kept = false
	last, next := f.last[lo:lo+len(v)], f.next[lo:lo+len(v)]
	n, at := max(len(v), 1), 0
	if f.piece > 0 {
		n = f.piece
	}
	for i := 0; i < len(v); i += n {
		end := min(i+n, len(v))
		f.squares += sum(next[i:end], last[i:end], v[i:end])
		at += f.codec.EncodeRest(dst[at:], next[i:end])
	}
	return at
}

// Add adds to v what was lost before of the range that begins at element lo: for a range
// that is not encoded, so that nothing of it is lost.
func (f *Feedback) Add(v []float32, lo int) {
	f.kept = false
	f.squares += sum(v, f.last[lo:lo+len(v)], v)
	clear(f.next[lo : lo+len(v)])
}

// Keep makes what was lost of the vector part of the residual: all its ranges were encoded,
// and the result is finite.
func (f *Feedback) Keep() {
	f.keep()
	f.squares = 0
}

// Drop forgets the vector in work: the residual stays what it was before it. After it Revert
// has nothing to undo.
func (f *Feedback) Drop() { f.kept, f.squares = false, 0 }

// Revert undoes the last Keep, for a vector whose step was skipped. It does nothing if
// there was no Keep after the last Revert or since the next vector began, and reports that.
func (f *Feedback) Revert() (done bool) { return f.revert() }

// Residual is what has been lost and not made up for: the memory itself, for Restore, valid
// until the next call.
func (f *Feedback) Residual() []float32 { return f.last }

// Input is the norm of the vector in work, of the ranges so far.
func (f *Feedback) Input() float64 { return math.Sqrt(f.squares) }

// sum sets dst = a + b, and returns the sum of the squares of b. dst may be b.
func sum(dst, a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		d, x, y := dst[:4:4], a[:4:4], b[:4:4]
		y0, y1, y2, y3 := float64(y[0]), float64(y[1]), float64(y[2]), float64(y[3])
		d[0] = x[0] + y[0]
		d[1] = x[1] + y[1]
		d[2] = x[2] + y[2]
		d[3] = x[3] + y[3]
		s0 += y0 * y0
		s1 += y1 * y1
		s2 += y2 * y2
		s3 += y3 * y3
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		y := float64(b[i])
		dst[i] = a[i] + b[i]
		s0 += y * y
	}
	return (s0 + s1) + (s2 + s3)
}

// Norm is the Euclidean length of a vector.
func Norm(v []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(v) >= 4 {
		x := v[:4:4]
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
		v = v[4:]
	}
	for _, x := range v {
		s0 += float64(x) * float64(x)
	}
	return math.Sqrt((s0 + s1) + (s2 + s3))
}
