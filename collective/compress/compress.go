// Package compress makes gradients small: codecs of float32 vectors, and the memory of
// what they lose.
//
// A Codec turns a vector into bytes and back. What comes back differs from what went in;
// Feedback keeps the difference and adds it to the next vector, so that everything
// arrives in the end:
//
//	residual += gradient
//	bytes     = encode(residual)
//	residual -= decode(bytes)
//
// The sum of all that was decoded is the sum of all gradients less the last residual.
//
// # Codecs
//
// The bytes of n elements, and what one element costs:
//
//	codec         bytes                                                 bits per element
//	F16, BF16     2n                                                    16
//	Int8          n + 4 ceil(n/B), for blocks of B                      8 + 32/B
//	OneBit        ceil(n/8) + 8 ceil(n/B)                               1 + 64/B
//	TopK          4k + ceil(kl/8) + ceil((k + floor((n-1)/2^l))/8),     at density 1 %: about 0.41
//	              k = ceil(density n), l = floor(log2(n/k))
//	LowRank       4r (rows + cols) of a matrix                          32r (rows + cols)/(rows cols)
//
// LowRank is no Codec: what it makes of the gradients of several ranks can be added up,
// so it needs no more than two sums between its three parts.
//
// # NaN and infinities
//
// They are never hidden. If an element of a vector is not finite, neither is some
// element of what is decoded: of F16, BF16 and TopK the element itself (of TopK as many as
// are kept), of Int8 and OneBit all of its block, of LowRank all of its matrix. Whoever checks the decoded
// sum (a Commit does) sees it, and skips the step on all ranks. Feedback.Keep is not
// called for such a step: residuals stay what they were, so that one bad gradient spoils
// no later step. F16 makes infinities of finite values from 65520 on, and so such steps
// are skipped too: BF16 has the range of float32.
//
// Numbers are little-endian, and results do not depend on the machine: products are
// rounded before they are added. Nothing here is safe for concurrent use, and nothing
// allocates once made.
package compress

import (
	"errors"
	"fmt"
	"math"
)

// ErrBytes says that bytes are not what the codec makes of a vector of that length.
var ErrBytes = errors.New("compress: bytes that no vector encodes to")

// Codec turns vectors into bytes and back.
type Codec interface {
	// String is the name with all settings: two ranks that say the same understand each
	// other.
	String() string
	// Bytes is the length of n elements, encoded. It depends on n alone.
	Bytes(n int) int
	// Encode writes Bytes(len(src)) bytes to dst, which must have room for them, and
	// returns how many. It is deterministic.
	Encode(dst []byte, src []float32) int
	// EncodeRest is Encode, and subtracts from src what Decode will give: what is left is
	// what was lost. Of elements that are not finite, or of whose block one is not, the
	// rest is undefined.
	EncodeRest(dst []byte, src []float32) int
	// Decode fills dst. Bytes of another length, or that Encode cannot have made, are
	// ErrBytes, and dst is undefined then.
	Decode(dst []float32, src []byte) error
	// DecodeAdd adds to dst what Decode fills it with.
	DecodeAdd(dst []float32, src []byte) error
}

// lengthError says that got bytes are not those of n elements.
func lengthError(c Codec, n, got int) error {
	return fmt.Errorf("%w: %v of %d elements is %d bytes, not %d", ErrBytes, c, n, c.Bytes(n), got)
}

const (
	signBit  = 1 << 31
	infinity = 0x7f800000 // the bits of +Inf: those of NaN without their sign are above
	quietNaN = 0x7fc00000
)

// Finite reports whether no element is NaN or infinite.
func Finite(v []float32) bool {
	// Adding one to an exponent of all ones carries into the sign.
	const one = 1 << 23
	var a, b, c, d uint32
	for len(v) >= 4 {
		x := v[:4:4]
		a |= math.Float32bits(x[0])&^signBit + one
		b |= math.Float32bits(x[1])&^signBit + one
		c |= math.Float32bits(x[2])&^signBit + one
		d |= math.Float32bits(x[3])&^signBit + one
		v = v[4:]
	}
	for _, x := range v {
		a |= math.Float32bits(x)&^signBit + one
	}
	return (a|b|c|d)&signBit == 0
}

// ceilDiv is a/b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
