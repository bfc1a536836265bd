package compute

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// UpdateKernel returns the kernel of an Update or UpdateRows node: a call of
// optim on the memory of the variable and its slots, the same in all backends.
// Keys are checked before anything changes.
func UpdateKernel[T tensor.Float](n *graph.Node) Kernel {
	rule := n.Attr.Rule
	slots := make([][]T, len(rule.Slots()))
	if n.Op == graph.Update {
		return func(c *Call) error {
			fillSlots(slots, c.In[3:])
			optim.Dense(rule, c.Step, c.In[2].Scalar(), tensor.Data[T](c.Out), tensor.Data[T](c.In[1]), slots)
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

func fillSlots[T tensor.Float](slots [][]T, in []*tensor.Tensor) {
	for i, t := range in {
		slots[i] = tensor.Data[T](t)
	}
}
