package collective

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
)

// Opening says which collective begins: what a rank sends to a partner before its
// first byte, and what it holds what the partner sends against.
type Opening struct {
	// Run counts the runs of the runner, from 0.
	Run       uint64
	Goal      Goal
	Reduction reduce.Op
	DType     tensor.DType
	// Elems is the elements of the buffer; of an all-to-all, those that the sender
	// gives to the partner.
	Elems int
	// Algorithm is the name of the schedule, at most 16 bytes of it, and Digest that of
	// all its steps.
	Algorithm string
	Digest    uint64
	// Shape is the dims of the buffer, at most 4 of them; one that is Dynamic is not
	// compared.
	Shape tensor.Shape
	// Name is that of the value, at most 64 bytes of it.
	Name string
}

// The frame of an opening: magic, goal, reduction, dtype, number of dims; run;
// elements; digest; 4 dims; algorithm; name. Numbers are little-endian, texts are filled
// up with zeros.
const (
	openingBytes = 128
	openingMagic = 0x31634c47 // GLc1

	openingDims      = 4
	openingAlgorithm = 16
	openingName      = 64

	runAt       = 8
	elemsAt     = 16
	digestAt    = 24
	dimsAt      = 32
	algorithmAt = dimsAt + 4*openingDims
	nameAt      = algorithmAt + openingAlgorithm
)

// encode writes the frame.
func (o *Opening) encode(b *[openingBytes]byte) {
	*b = [openingBytes]byte{}
	le := binary.LittleEndian
	le.PutUint32(b[:], openingMagic)
	b[4], b[5], b[6], b[7] = byte(o.Goal), byte(o.Reduction), byte(o.DType), byte(len(o.Shape))
	setRun(b, o.Run)
	le.PutUint64(b[elemsAt:], uint64(o.Elems))
	le.PutUint64(b[digestAt:], o.Digest)
	for i, d := range o.Shape[:min(len(o.Shape), openingDims)] {
		le.PutUint32(b[dimsAt+4*i:], uint32(d))
	}
	copy(b[algorithmAt:nameAt], o.Algorithm)
	copy(b[nameAt:], o.Name)
}

// setRun changes the run alone.
func setRun(b *[openingBytes]byte, run uint64) { binary.LittleEndian.PutUint64(b[runAt:], run) }

// decodeOpening reads a frame; ok is false if it is none.
func decodeOpening(b *[openingBytes]byte) (o Opening, ok bool) {
	le := binary.LittleEndian
	if le.Uint32(b[:]) != openingMagic {
		return o, false
	}
	o = Opening{
		Goal: Goal(b[4]), Reduction: reduce.Op(b[5]), DType: tensor.DType(b[6]),
		Run: le.Uint64(b[runAt:]), Elems: int(le.Uint64(b[elemsAt:])), Digest: le.Uint64(b[digestAt:]),
		Algorithm: text(b[algorithmAt:nameAt]), Name: text(b[nameAt:]),
	}
	for i := range min(int(b[7]), openingDims) {
		o.Shape = append(o.Shape, int(int32(le.Uint32(b[dimsAt+4*i:]))))
	}
	return o, true
}

func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

// differences says in words how two openings differ, mine first. It is empty if they
// are of the same collective.
func (o *Opening) differences(other *Opening) string {
	var out []string
	add := func(what string, mine, theirs any) {
		if mine != theirs {
			out = append(out, fmt.Sprintf("%s %v, not %v", what, theirs, mine))
		}
	}
	add("run", o.Run, other.Run)
	add("name", o.Name, other.Name)
	add("goal", o.Goal, other.Goal)
	add("reduction", o.Reduction, other.Reduction)
	add("type", o.DType, other.DType)
	add("elements", o.Elems, other.Elems)
	if !sameDims(o.Shape, other.Shape) {
		add("shape", o.Shape.String(), other.Shape.String())
	}
	add("algorithm", o.Algorithm, other.Algorithm)
	if len(out) == 0 && o.Digest != other.Digest {
		out = append(out, "another schedule of the same name")
	}
	return strings.Join(out, "; ")
}

// sameDims compares what is not dynamic.
func sameDims(a, b tensor.Shape) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && a[i] != tensor.Dynamic && b[i] != tensor.Dynamic {
			return false
		}
	}
	return true
}

// MismatchError says that two ranks of a group began different collectives. None of
// their data was taken.
type MismatchError struct {
	Rank, Peer   int
	Mine, Theirs Opening
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d began another collective than rank %d: %s: all ranks of a group must run the same, in the same order",
		e.Peer, e.Rank, e.Mine.differences(&e.Theirs))
}

// digest is that of all steps of a schedule.
func (s *Schedule) digest() uint64 {
	h := fnv.New64a()
	var b []byte
	put := func(v int) { b = binary.LittleEndian.AppendUint32(b, uint32(v)) }
	put(s.N)
	put(s.Chunks)
	for _, steps := range s.Ranks {
		put(len(steps))
		for _, st := range steps {
			for _, v := range [...]int{st.To, st.Send.Lo, st.Send.Hi, st.From, st.Recv.Lo, st.Recv.Hi, int(st.Action)} {
				put(v)
			}
		}
		_, _ = h.Write(b)
		b = b[:0]
	}
	return h.Sum64()
}
