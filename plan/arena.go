package plan

import (
	"fmt"
	"slices"
)

// Line bounds, from above, the bytes between two neighbours of a run in an arena:
// enough to begin each on a cache line of its own.
const Line = 64

// Span returns the bytes [lo, hi) of the arena that the values of refs fill
// together: what one Collective sums of several. It fails unless they are of one
// dtype and lie in one arena one behind the other, in the order of refs, with less
// than Line bytes between neighbours, in which no other value is but one that shares
// memory with them.
func (p *Plan) Span(refs []Ref) (lo, hi int, err error) {
	var before *Value
	for _, r := range refs {
		v := &p.Values[r.Value]
		switch {
		case v.Arena == 0 || !v.Shape.Static():
			return 0, 0, fmt.Errorf("%s is in no arena", Quote(v.Name))
		case before == nil:
			lo = v.Offset
		case v.Arena != before.Arena || v.DType != before.DType:
			return 0, 0, fmt.Errorf("%s is %v in arena %d, %s %v in arena %d",
				Quote(before.Name), before.DType, before.Arena, Quote(v.Name), v.DType, v.Arena)
		case v.Offset < hi || v.Offset >= hi+Line:
			return 0, 0, fmt.Errorf("%s ends at %d of the arena and %s begins at %d", Quote(before.Name), hi, Quote(v.Name), v.Offset)
		}
		before, hi = v, v.Offset+v.Bytes()
	}
	for i := range p.Values {
		v := &p.Values[i]
		within := before != nil && v.Arena == before.Arena && v.Offset < hi && v.Offset+v.Bytes() > lo
		if within && !slices.ContainsFunc(refs, func(r Ref) bool { return r.Value == i || v.Overlaps(&p.Values[r.Value]) }) {
			return 0, 0, fmt.Errorf("%s lies between them", Quote(v.Name))
		}
	}
	return lo, hi, nil
}

// Bytes is the size of a value of static shape.
func (v *Value) Bytes() int { return v.Shape.Elems() * v.DType.Size() }
