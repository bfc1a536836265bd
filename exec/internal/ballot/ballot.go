// Package ballot is what ranks say in a Commit, and what they all make of it.
package ballot

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Fault is the least of what a rank finds wrong.
type Fault byte

// The faults.
const (
	Own  Fault = 0 // the rank's own weight or loss is not finite
	Grad Fault = 1 // a gradient is not finite; after an all-reduce all ranks say so
	None Fault = 2
)

// The sizes of the parts of a ballot, in bytes.
const (
	numberSize = 8
	pairSize   = 2 * numberSize
	faultSize  = 1
)

// Ballot is what a rank says: its weight and its loss as float64 in little-endian order,
// for each of its slices if the plan has any, and zeros up to as many as any rank has;
// then, where gradients are cut over ranks and clipped by norm, the squares of those of
// this rank; then one byte: the least of the faults it found.
type Ballot struct {
	bytes   []byte
	squared bool // it has squares
}

// New makes a ballot with room for as many pairs of weight and loss as any rank has.
func New(pairs int, squared bool) *Ballot {
	size := pairs*pairSize + faultSize
	if squared {
		size += numberSize
	}
	return &Ballot{make([]byte, size), squared}
}

// Set says number i of weight, loss, weight, loss and so on.
func (b *Ballot) Set(i int, x float64) {
	binary.LittleEndian.PutUint64(b.bytes[numberSize*i:], math.Float64bits(x))
}

// Close says the rest: the fault, and the squares if the ballot has them.
func (b *Ballot) Close(f Fault, squares float64) {
	end := len(b.bytes) - faultSize
	b.bytes[end] = byte(f)
	if b.squared {
		binary.LittleEndian.PutUint64(b.bytes[end-numberSize:], math.Float64bits(squares))
	}
}

// Bytes is the ballot as it is sent. All ballots of a Commit have one size.
func (b *Ballot) Bytes() []byte { return b.bytes }

// Verdict is what ranks agree on.
type Verdict struct {
	// Weight and Loss are sums over all ranks; the loss over those of which it is finite.
	Weight, Loss float64
	// Squares are those of all gradients, where they are asked for.
	Squares float64
	// Skipped says that the step changes nothing: its weight is 0. Overflow says that it
	// was a gradient that was not finite, of finite losses.
	Skipped, Overflow bool
	// Faulty are the ranks with the least of the faults.
	Faulty []int
}

// Count adds the ballots of all ranks, one behind the other in the order of the group, and
// each in the order of its slices, so that every rank gets the same bits. Squares are
// those that all ranks found alike, to which the sum of what they say of their own is added.
//
// If some ranks' own loss is not finite they are at fault: a gradient that was summed
// already is spoiled everywhere.
func (b *Ballot) Count(all []byte, group []int, squares float64) Verdict {
	v, size, said := Verdict{}, len(b.bytes), 0.0
	worst := None
	for i := range group {
		worst = min(worst, Fault(all[(i+1)*size-faultSize]))
	}
	for i, rank := range group {
		one := all[i*size : (i+1)*size]
		if Fault(one[size-faultSize]) == worst && worst < None {
			v.Faulty = append(v.Faulty, rank)
		}
		if b.squared {
			said += number(one[size-faultSize-numberSize:])
		}
		for ; len(one) > pairSize; one = one[pairSize:] {
			weight, loss := number(one), number(one[numberSize:])
			if weight-weight == 0 && loss-loss == 0 { // both are finite
				v.Weight += weight
				v.Loss += loss
			}
		}
	}
	if worst < None {
		v.Weight = 0
		v.Overflow = worst == Grad
	}
	if v.Squares = squares + said; math.IsInf(v.Squares, 0) { // every gradient is finite, their sum is not
		v.Weight, v.Faulty = 0, slices.Clone(group)
	}
	v.Skipped = v.Weight == 0
	return v
}

func number(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
