package compressed

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/tensor"
)

// Part is one tensor of a Bucket.
type Part struct {
	// Name is that of the parameter whose gradient it is: checkpoints find residuals by it.
	Name  string
	Shape tensor.Shape
}

// Bucket sums several f32 tensors as one vector, in which nothing lies between them, in the way
// that a Spec says. Memory is that of the sum and, of several tensors, one vector more.
type Bucket struct {
	Name  string
	Spec  compress.Spec
	Parts []Part
	// Index and Ranks are this rank's place in the group.
	Index, Ranks int

	lo     []int // elements at which parts begin, and their end
	vector *tensor.Tensor
	sum    interface {
		Run(ctx context.Context, t *tensor.Tensor) error
		Bytes() int64
		Revert()
		State() compress.State
		Restore(old []compress.State) error
		Report() compress.Report
	}
}

// NewBucket binds the sum of tensors of these shapes. All ranks must bind the same. It fails as
// NewAllReduce and NewPowerSGD do, of whose matrices the first dim is the rows and all others
// together are the columns.
func NewBucket(p collective.Party, name string, spec compress.Spec, parts []Part) (*Bucket, error) {
	b := &Bucket{Name: name, Spec: spec, Parts: parts, Index: p.Index, Ranks: len(p.Group), lo: []int{0}}
	var shapes [][]int
	for _, part := range parts {
		if !part.Shape.Static() {
			return nil, fmt.Errorf("compressed: %q has shape %v, which is not known before", part.Name, part.Shape)
		}
		shapes = append(shapes, part.Shape)
		b.lo = append(b.lo, b.Elems()+part.Shape.Elems())
	}
	if len(parts) > 1 {
		b.vector = tensor.New(tensor.F32, b.Elems())
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	codec, err := spec.Codec()
	switch {
	case err != nil:
		return nil, err
	case codec == nil:
		b.sum, err = NewPowerSGD(p, b.Elems(), spec.Rank, compress.Layers(b.lo[:len(parts)], shapes))
	default:
		b.sum, err = NewAllReduce(p, codec, b.Elems(), spec.Feedback)
	}
	return b, err
}

// Elems is the length of the vector.
func (b *Bucket) Elems() int { return b.lo[len(b.lo)-1] }

// Range is the elements [lo, hi) of a part in the vector.
func (b *Bucket) Range(part int) (lo, hi int) { return b.lo[part], b.lo[part+1] }

// Warm is the elements [lo, hi) of State.Warm that are of a part: none of most.
func (b *Bucket) Warm(part int) (lo, hi int) {
	if b.Spec.Kind != compress.KindPowerSGD {
		return 0, 0
	}
	for k := range part + 1 {
		lo = hi
		_, n := compress.Factors(0, b.Spec.Rank, compress.Layers([]int{0}, [][]int{b.Parts[k].Shape}))
		hi += n
	}
	return lo, hi
}

// Run sums the tensors of all parts over the group in place, as AllReduce.Run does.
func (b *Bucket) Run(ctx context.Context, parts []*tensor.Tensor) error {
	if len(parts) != len(b.Parts) {
		return fmt.Errorf("compressed: bucket %s of %d tensors given %d", b.Name, len(b.Parts), len(parts))
	}
	if b.vector == nil {
		return b.sum.Run(ctx, parts[0])
	}
	v := b.vector.F32()
	for i, t := range parts {
		if n := b.lo[i+1] - b.lo[i]; t.DType() != tensor.F32 || t.Elems() != n {
			return fmt.Errorf("compressed: %q of %d f32 elements given %d %v", b.Parts[i].Name, n, t.Elems(), t.DType())
		}
		copy(v[b.lo[i]:], t.F32())
	}
	if err := b.sum.Run(ctx, b.vector); err != nil {
		return err
	}
	for i, t := range parts {
		copy(t.F32(), v[b.lo[i]:])
	}
	return nil
}

// Bytes is what one Run moves, sent plus received.
func (b *Bucket) Bytes() int64 { return b.sum.Bytes() }

// Revert is as that of AllReduce.
func (b *Bucket) Revert() { b.sum.Revert() }

// State is as that of AllReduce.
func (b *Bucket) State() compress.State { return b.sum.State() }

// Restore is as that of AllReduce.
func (b *Bucket) Restore(old []compress.State) error { return b.sum.Restore(old) }

// Report is as that of AllReduce.
func (b *Bucket) Report() compress.Report { return b.sum.Report() }
