package vector

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// The limits of a command and of a set.
const (
	// NameMax is the most bytes of a vector's name.
	NameMax = 32
	// TermsMax is the most terms of a linear combination.
	TermsMax = 1024
	// PairsMax is the most dot products of a command.
	PairsMax = 4096
	// PortionsMax is the most portions that a vector is gathered from.
	PortionsMax = 1 << 20
)

// What errors of this package wrap.
var (
	// ErrUsage: the command makes no sense, whatever vectors there are.
	ErrUsage = errors.New("wrong command")
	// ErrUnknown: a vector that the command reads does not exist.
	ErrUnknown = errors.New("no such vector")
	// ErrFull: one more vector would be too many.
	ErrFull = errors.New("too many vectors")
	// ErrIncomplete: portions of a vector that is being gathered are missing.
	ErrIncomplete = errors.New("vector is incomplete")
)

// Op is what a command does.
type Op uint8

// The operations. Dst and Src are names of vectors; one that is only written
// need not exist. All cost O(elements of the shard), dots and combinations that
// many for each pair or term, with every vector read from memory once.
const (
	// OpBegin frees all vectors but Dst, which must exist: a coordinator begins.
	OpBegin Op = iota + 1
	// OpFree frees Dst.
	OpFree
	// OpCopy is Dst = Src.
	OpCopy
	// OpScale is Dst = A Dst.
	OpScale
	// OpAxpy is Dst = Dst + A Src.
	OpAxpy
	// OpCombine is Dst = sum of A V over Terms, which may name Dst itself.
	OpCombine
	// OpDots answers with the dot product of each of Pairs.
	OpDots
	// OpGather sets Dst to 0 and collects it from Portions of Evaluation.
	OpGather
)

// String returns the operation's name.
func (o Op) String() string {
	names := [...]string{"none", "begin", "free", "copy", "scale", "axpy", "combine", "dots", "gather"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Term is a vector V times a number A.
type Term struct {
	A float64
	V string
}

// Pair names the two vectors of a dot product. They may be the same.
type Pair [2]string

// Command is one operation on named vectors. Fields that its Op does not use
// are zero.
type Command struct {
	// Number makes the command be done once: a set does numbers in their order,
	// and answers a repetition of the last one without doing it again. A Begin may
	// have any number above the last; 0 is a command without a number.
	Number uint64
	Op     Op
	// Dst is written, Src is read.
	Dst, Src string
	// A is the factor of Scale and Axpy, a finite number.
	A float64
	// Terms are what Combine adds up, in this order.
	Terms []Term
	// Pairs are what Dots multiplies.
	Pairs []Pair
	// Evaluation numbers what Gather collects, from 1; Portions is of how many.
	Evaluation uint64
	Portions   int
}

// String is the command as a formula, for people.
func (c *Command) String() string {
	switch c.Op {
	case OpBegin:
		return "begin " + c.Dst
	case OpFree:
		return "free " + c.Dst
	case OpCopy:
		return fmt.Sprintf("%s = %s", c.Dst, c.Src)
	case OpScale:
		return fmt.Sprintf("%s = %g %[1]s", c.Dst, c.A)
	case OpAxpy:
		return fmt.Sprintf("%s = %[1]s + %g %s", c.Dst, c.A, c.Src)
	case OpCombine:
		terms := make([]string, len(c.Terms))
		for i, t := range c.Terms {
			terms[i] = fmt.Sprintf("%g %s", t.A, t.V)
		}
		return fmt.Sprintf("%s = %s", c.Dst, strings.Join(terms, " + "))
	case OpDots:
		pairs := make([]string, len(c.Pairs))
		for i, p := range c.Pairs {
			pairs[i] = p[0] + "." + p[1]
		}
		return "dots " + strings.Join(pairs, " ")
	case OpGather:
		return fmt.Sprintf("gather %s of evaluation %d from %d portions", c.Dst, c.Evaluation, c.Portions)
	}
	return c.Op.String()
}

// check says what is wrong with a command whatever vectors there are.
func (c *Command) check() error {
	want := Command{Number: c.Number, Op: c.Op} // what is allowed, and taken for granted
	var names []string
	switch c.Op {
	case OpBegin, OpFree:
		want.Dst, names = c.Dst, []string{c.Dst}
	case OpCopy:
		want.Dst, want.Src, names = c.Dst, c.Src, []string{c.Dst, c.Src}
	case OpScale:
		want.Dst, want.A, names = c.Dst, c.A, []string{c.Dst}
	case OpAxpy:
		want.Dst, want.Src, want.A, names = c.Dst, c.Src, c.A, []string{c.Dst, c.Src}
	case OpCombine:
		want.Dst, want.Terms, names = c.Dst, c.Terms, []string{c.Dst}
	case OpDots:
		want.Pairs = c.Pairs
	case OpGather:
		want.Dst, want.Evaluation, want.Portions, names = c.Dst, c.Evaluation, c.Portions, []string{c.Dst}
	default:
		return fmt.Errorf("%w: unknown operation %d", ErrUsage, uint8(c.Op))
	}
	if err := c.checkForm(&want); err != nil {
		return err
	}
	for _, t := range c.Terms {
		if !finite(t.A) {
			return fmt.Errorf("%w: %v: the factor of %q must be finite, is %g", ErrUsage, c.Op, t.V, t.A)
		}
		names = append(names, t.V)
	}
	for _, p := range c.Pairs {
		names = append(names, p[0], p[1])
	}
	for _, n := range names {
		if n == "" || len(n) > NameMax {
			return fmt.Errorf("%w: %v: the name of a vector has 1 to %d bytes, %q has %d", ErrUsage, c.Op, NameMax, n, len(n))
		}
	}
	return nil
}

// checkForm compares the fields with those that the operation uses, and these
// with their limits.
func (c *Command) checkForm(want *Command) error {
	switch {
	case c.Dst != want.Dst || c.Src != want.Src || c.A != want.A && finite(c.A) || len(c.Terms) != len(want.Terms) ||
		len(c.Pairs) != len(want.Pairs) || c.Evaluation != want.Evaluation || c.Portions != want.Portions:
		return fmt.Errorf("%w: %v has fields that it does not use", ErrUsage, c.Op)
	case !finite(c.A):
		return fmt.Errorf("%w: %v: the factor must be finite, is %g", ErrUsage, c.Op, c.A)
	case c.Op == OpCombine && (len(c.Terms) == 0 || len(c.Terms) > TermsMax):
		return fmt.Errorf("%w: combine takes 1 to %d terms, got %d", ErrUsage, TermsMax, len(c.Terms))
	case c.Op == OpDots && (len(c.Pairs) == 0 || len(c.Pairs) > PairsMax):
		return fmt.Errorf("%w: dots takes 1 to %d pairs, got %d", ErrUsage, PairsMax, len(c.Pairs))
	case c.Op == OpGather && (c.Portions < 1 || c.Portions > PortionsMax):
		return fmt.Errorf("%w: gather takes 1 to %d portions, got %d", ErrUsage, PortionsMax, c.Portions)
	case c.Op == OpGather && c.Evaluation == 0:
		return fmt.Errorf("%w: gather needs an evaluation, numbered from 1", ErrUsage)
	}
	return nil
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
