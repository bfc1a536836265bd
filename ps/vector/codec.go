package vector

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The bytes of a command: number u64, operation u8, then what the operation
// uses in the order of Command's fields. Little-endian; numbers have fixed sizes,
// so that the size of a command does not depend on what happens to be computed. A
// name is its length u8 and its bytes; terms are a count u16 and for each factor
// f64 and name; pairs are a count u16 and two names each; an evaluation is u64,
// portions are u32.

// Append appends the bytes of a command. It fails as Set.Do would.
func (c *Command) Append(dst []byte) ([]byte, error) {
	if err := c.check(); err != nil {
		return dst, err
	}
	dst = binary.LittleEndian.AppendUint64(dst, c.Number)
	dst = append(dst, byte(c.Op))
	switch c.Op {
	case OpBegin, OpFree:
		dst = appendName(dst, c.Dst)
	case OpCopy:
		dst = appendName(appendName(dst, c.Dst), c.Src)
	case OpScale:
		dst = appendFloat(appendName(dst, c.Dst), c.A)
	case OpAxpy:
		dst = appendFloat(appendName(appendName(dst, c.Dst), c.Src), c.A)
	case OpCombine:
		dst = binary.LittleEndian.AppendUint16(appendName(dst, c.Dst), uint16(len(c.Terms)))
		for _, t := range c.Terms {
			dst = appendName(appendFloat(dst, t.A), t.V)
		}
	case OpDots:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(c.Pairs)))
		for _, p := range c.Pairs {
			dst = appendName(appendName(dst, p[0]), p[1])
		}
	case OpGather:
		dst = binary.LittleEndian.AppendUint64(appendName(dst, c.Dst), c.Evaluation)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(c.Portions))
	}
	return dst, nil
}

func appendName(dst []byte, s string) []byte { return append(append(dst, byte(len(s))), s...) }

func appendFloat(dst []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
}

// Decode reads a command that src holds exactly. Its memory is bounded by the
// length of src.
func Decode(src []byte) (Command, error) {
	r := reader{src: src}
	c := Command{Number: r.u64(), Op: Op(r.u8())}
	switch c.Op {
	case OpBegin, OpFree:
		c.Dst = r.name()
	case OpCopy:
		c.Dst, c.Src = r.name(), r.name()
	case OpScale:
		c.Dst, c.A = r.name(), r.f64()
	case OpAxpy:
		c.Dst, c.Src, c.A = r.name(), r.name(), r.f64()
	case OpCombine:
		c.Dst = r.name()
		for n := r.u16(); n > 0 && !r.short; n-- {
			c.Terms = append(c.Terms, Term{A: r.f64(), V: r.name()})
		}
	case OpDots:
		for n := r.u16(); n > 0 && !r.short; n-- {
			c.Pairs = append(c.Pairs, Pair{r.name(), r.name()})
		}
	case OpGather:
		c.Dst, c.Evaluation, c.Portions = r.name(), r.u64(), int(r.u32())
	}
	switch {
	case r.short:
		return Command{}, fmt.Errorf("%w: a %v is cut off after %d bytes", ErrUsage, c.Op, len(src))
	case len(r.src) > 0:
		return Command{}, fmt.Errorf("%w: %d bytes after a %v", ErrUsage, len(r.src), c.Op)
	}
	if err := c.check(); err != nil {
		return Command{}, err
	}
	return c, nil
}

// reader takes numbers off a slice; past its end it gives zeros and is short.
type reader struct {
	src   []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if len(r.src) < n {
		r.short, r.src = true, nil
		return make([]byte, n)
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) u8() uint8    { return r.take(1)[0] }
func (r *reader) u16() uint16  { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32  { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64  { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) f64() float64 { return math.Float64frombits(r.u64()) }
func (r *reader) name() string { return string(r.take(int(r.u8()))) }

// SumBytes is the size of a Sum on the wire: Hi and Lo, f64 each.
const SumBytes = 16

// AppendSums appends the answer to a Dots.
func AppendSums(dst []byte, sums []Sum) []byte {
	for _, s := range sums {
		dst = appendFloat(appendFloat(dst, s.Hi), s.Lo)
	}
	return dst
}

// DecodeSums reads the answer to a Dots of so many pairs.
func DecodeSums(src []byte, pairs int) ([]Sum, error) {
	if pairs < 0 || pairs > PairsMax || len(src) != pairs*SumBytes {
		return nil, fmt.Errorf("%w: %d bytes are not the dot products of %d pairs, %d bytes each", ErrUsage, len(src), pairs, SumBytes)
	}
	r := reader{src: src}
	sums := make([]Sum, pairs)
	for i := range sums {
		sums[i] = Sum{Hi: r.f64(), Lo: r.f64()}
	}
	return sums, nil
}
