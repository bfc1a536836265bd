package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
)

// casts returns the kernel of a Cast, nil for others.
func (b *builder[T]) casts(n *graph.Node) compute.Kernel {
	if n.Op != graph.Cast {
		return nil
	}
	if h := b.half.Of(n.DType); h != nil {
		return b.each(1, func(c *compute.Call, lo, hi, _ int) {
			h.Narrow(c.Out.Halves()[lo:hi], c.In[0].F32()[lo:hi])
		})
	}
	h := b.half.Of(n.In[0].DType)
	return b.each(1, func(c *compute.Call, lo, hi, _ int) {
		h.Widen(c.Out.F32()[lo:hi], c.In[0].Halves()[lo:hi])
	})
}

// widenChunk is how many elements of a gradient of 16 bits are widened at a time: they
// stay in the first cache until the rule reads them.
const widenChunk = 2048
