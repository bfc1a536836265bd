package compute

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/half"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// UpdateKernel returns the kernel of an Update, UpdateRows or UpdateScale node: a call
// of optim on the memory of the variable and its slots, the same in all backends.
// Keys are checked before anything changes. A gradient of 16 bits is widened first.
func UpdateKernel[T tensor.Float](n *graph.Node) Kernel {
	rule := n.Attr.Rule
	if n.Op == graph.UpdateScale {
		scale := optim.LossScale{Every: n.Attr.Every}
		return func(c *Call) error {
			next, good := scale.Next(c.In[0].Scalar(), c.In[1].Scalar(), c.In[2].Scalar())
			c.In[0].SetScalar(next)
			c.In[1].SetScalar(good)
			return nil
		}
	}
	slots := make([][]T, len(rule.Slots()))
	if n.Op == graph.Update {
		wide := tensor.New(tensor.F32, 0)
		return func(c *Call) error {
			fillSlots(slots, c.In[3:])
			grad := c.In[1]
			if h := HalfOf(grad.DType()); h != nil {
				wide.Resize(grad.Shape()...)
				h.Widen(wide.F32(), grad.Halves())
				grad = wide
			}
			optim.Dense(rule, c.Step, c.In[2].Scalar(), tensor.Data[T](c.Out), tensor.Data[T](grad), slots)
			return nil
		}
	}
	var at []int
	return func(c *Call) error {
		keys := c.In[1].I64()
		if err := CheckKeys(keys, c.Out.Shape()[0]); err != nil {
			return err
		}
		at = at[:0]
		for _, k := range keys {
			at = append(at, int(k))
		}
		fillSlots(slots, c.In[4:])
		dim := c.Out.Shape()[1]
		optim.Rows(rule, c.Step, c.In[3].Scalar(), tensor.Data[T](c.Out), at, dim, tensor.Data[T](c.In[2]), slots)
		return nil
	}
}

// HalfOf returns the conversions of a 16-bit type, nil for others.
func HalfOf(d tensor.DType) *half.Type {
	switch d {
	case tensor.BF16:
		return half.BF16(false)
	case tensor.F16:
		return half.F16(false)
	case tensor.Invalid, tensor.F32, tensor.F64, tensor.I32, tensor.I64:
	}
	return nil
}

func fillSlots[T tensor.Float](slots [][]T, in []*tensor.Tensor) {
	for i, t := range in {
		slots[i] = tensor.Data[T](t)
	}
}
