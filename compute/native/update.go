package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// updates returns the kernel of an update, nil for others. Rules act on every
// element alone, so ranges of elements or rows are cut for threads; but LAMB
// reads all of a parameter, and a rule of the user is not ours to call at the
// same time.
func (b *builder[T]) updates(n *graph.Node) compute.Kernel {
	rule := n.Attr.Rule
	if n.Op != graph.Update && n.Op != graph.UpdateRows && n.Op != graph.UpdateScale {
		return nil
	}
	if n.Op == graph.UpdateScale || rule.Kind == optim.LAMB || rule.Custom != nil {
		return compute.UpdateKernel[T](n)
	}
	slots := make([][][]T, b.team.Size()) // of every worker
	for i := range slots {
		slots[i] = make([][]T, len(rule.Slots()))
	}
	if n.Op == graph.Update {
		dense := func(c *compute.Call, grad []T, lo, hi, worker int) {
			for i, t := range c.In[3:] {
				slots[worker][i] = tensor.Data[T](t)[lo:hi]
			}
			optim.Dense(rule, c.Step, c.In[2].Scalar(), tensor.Data[T](c.Out)[lo:hi], grad, slots[worker])
		}
		if h := b.half.Of(n.In[1].DType); h != nil {
			return b.each(4, func(c *compute.Call, lo, hi, worker int) {
				wide := b.work[worker].wide
				for ; lo < hi; lo += widenChunk {
					end := min(hi, lo+widenChunk)
					wide.Resize(end - lo)
					h.Widen(wide.F32(), c.In[1].Halves()[lo:end])
					dense(c, tensor.Data[T](wide), lo, end, worker)
				}
			})
		}
		return b.each(4, func(c *compute.Call, lo, hi, worker int) {
			dense(c, tensor.Data[T](c.In[1])[lo:hi], lo, hi, worker)
		})
	}
	var at []int
	step := b.eachOf(func(c *compute.Call) (int, int) { return len(at), 4*c.Out.Shape()[1] + 128 }, func(c *compute.Call, lo, hi, worker int) {
		for i, t := range c.In[4:] {
			slots[worker][i] = tensor.Data[T](t)
		}
		dim := c.Out.Shape()[1]
		optim.Rows(rule, c.Step, c.In[3].Scalar(), tensor.Data[T](c.Out), at[lo:hi], dim, tensor.Data[T](c.In[2])[lo*dim:hi*dim], slots[worker])
	})
	return func(c *compute.Call) error {
		keys := c.In[1].I64()
		if err := compute.CheckKeys(keys, c.Out.Shape()[0]); err != nil {
			return err
		}
		at = grow(at, len(keys))
		for i, k := range keys {
			at[i] = int(k)
		}
		return step(c)
	}
}
