package ref

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/half"
	"github.com/gangline/gangline/tensor"
)

// conversion returns the kernel of a Cast or Round, nil for others.
func conversion(n *graph.Node) compute.Kernel {
	switch {
	case n.Op == graph.Round:
		from, to := of(n.Attr.Low)
		return func(c *compute.Call) error {
			out := c.Out.F32()
			for i, x := range c.In[0].F32() {
				out[i] = from(to(x))
			}
			return nil
		}
	case n.Op == graph.Cast && n.DType.IsHalf():
		_, to := of(n.DType)
		return func(c *compute.Call) error {
			out := c.Out.Halves()
			for i, x := range c.In[0].F32() {
				out[i] = to(x)
			}
			return nil
		}
	case n.Op == graph.Cast:
		from, _ := of(n.In[0].DType)
		return func(c *compute.Call) error {
			out := c.Out.F32()
			for i, x := range c.In[0].Halves() {
				out[i] = from(x)
			}
			return nil
		}
	}
	return nil
}

// of returns what converts one element of a 16-bit type.
func of(low tensor.DType) (from func(uint16) float32, to func(float32) uint16) {
	if low == tensor.BF16 {
		return half.FromBF16, half.ToBF16
	}
	return half.FromF16, half.ToF16
}
