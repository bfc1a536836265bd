package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// attention returns the kernel of CausalAttention. weights are those of one row.
func attention[T tensor.Float]() compute.Kernel {
	var weights []float64
	return func(c *compute.Call) error {
		q, k, v, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.In[2]), tensor.Data[T](c.Out)
		h := headsOf(c)
		for i := range h.count() {
			for s := range h.s {
				weights = attend(weights, h, q, k, i, s, compute.AttentionScale(c.Node.Attr.Alpha, h.d))
				for j := range h.d {
					y := 0.0
					for t, w := range weights {
						y += w * float64(v[h.at(i, t)+j])
					}
					out[h.at(i, s)+j] = T(y)
				}
			}
		}
		return nil
	}
}

// heads is where the rows of all heads lie in a [B S H D].
type heads struct{ b, s, h, d int }

func headsOf(c *compute.Call) heads {
	x := c.In[0].Shape()
	return heads{x[0], x[1], x[2], x[3]}
}

// count is how many heads there are, over the whole batch.
func (h heads) count() int { return h.b * h.h }

// at is where row s of head i begins, i counting through the heads of an example.
func (h heads) at(i, s int) int { return ((i/h.h*h.s+s)*h.h + i%h.h) * h.d }

// attend sets weights to the softmax of scale·q_s·k_t over t <= s, in head i.
func attend[T tensor.Float](weights []float64, h heads, q, k []T, i, s int, scale float64) []float64 {
	weights = weights[:0]
	top := math.Inf(-1)
	for t := range s + 1 {
		weights = append(weights, scale*dot(q[h.at(i, s):][:h.d], k[h.at(i, t):]))
		top = max(top, weights[t])
	}
	sum := 0.0
	for t := range weights {
		weights[t] = math.Exp(weights[t] - top)
		sum += weights[t]
	}
	for t := range weights {
		weights[t] /= sum
	}
	return weights
}

func dot[T tensor.Float](a, b []T) float64 {
	s := 0.0
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}

// attentionGrad returns the kernel of CausalAttentionGrad. With the weights p of
// row i: dv_t += p_t·dy_i; and with dp_t = dy_i·v_t and the gradient of the
// softmax, ds_t = scale·p_t·(dp_t - Σ p·dp): dq_i += ds_t·k_t, dk_t += ds_t·q_i.
func attentionGrad[T tensor.Float]() compute.Kernel {
	var weights []float64
	return func(c *compute.Call) error {
		q, k, v, dy := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.In[2]), tensor.Data[T](c.In[3])
		out := tensor.Data[T](c.Out)
		h := headsOf(c)
		all := heads{h.b, h.s, 3 * h.h, h.d} // the gradients of q, k and v
		scale := compute.AttentionScale(c.Node.Attr.Alpha, h.d)
		clear(out)
		for i := range h.count() {
			row := func(x []T, t int) []T { return x[h.at(i, t):][:h.d] }
			grad := func(part, t int) []T { return out[all.at((3*(i/h.h)+part)*h.h+i%h.h, t):][:h.d] }
			for s := range h.s {
				qs, dys := row(q, s), row(dy, s)
				weights = attend(weights, h, q, k, i, s, scale)
				mean := 0.0
				for t, p := range weights {
					mean += p * dot(dys, row(v, t))
				}
				for t, p := range weights {
					ds := scale * p * (dot(dys, row(v, t)) - mean)
					for j := range h.d {
						grad(0, s)[j] += T(ds * float64(row(k, t)[j]))
						grad(1, t)[j] += T(ds * float64(qs[j]))
						grad(2, t)[j] += T(p * float64(dys[j]))
					}
				}
			}
		}
		return nil
	}
}

// pairs calls op for all i < j of fields, in row order, with their number.
func pairs(fields int, op func(p, i, j int)) {
	p := 0
	for i := range fields {
		for j := i + 1; j < fields; j++ {
			op(p, i, j)
			p++
		}
	}
}

// fm is Σ_{i<j} x_i·x_j a row: (|Σx|² - Σ|x|²)/2.
func fm[T tensor.Float](c *compute.Call) error {
	x, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.In[0].Shape()
	for b := range out {
		y := 0.0
		for d := range s[2] {
			sum, square := 0.0, 0.0
			for f := range s[1] {
				v := float64(x[(b*s[1]+f)*s[2]+d])
				sum += v
				square += v * v
			}
			y += (sum*sum - square) / 2
		}
		out[b] = T(y)
	}
	return nil
}

// fmGrad is dy·(Σx - x_i).
func fmGrad[T tensor.Float](c *compute.Call) error {
	x, dy, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out), c.In[0].Shape()
	for b := range s[0] {
		for d := range s[2] {
			at := func(f int) int { return (b*s[1]+f)*s[2] + d }
			sum := 0.0
			for f := range s[1] {
				sum += float64(x[at(f)])
			}
			for f := range s[1] {
				out[at(f)] = T((sum - float64(x[at(f)])) * float64(dy[b]))
			}
		}
	}
	return nil
}

func dots[T tensor.Float](c *compute.Call) error {
	x, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.In[0].Shape()
	for b := range s[0] {
		row := func(f int) []T { return x[(b*s[1]+f)*s[2] : (b*s[1]+f+1)*s[2]] }
		pairs(s[1], func(p, i, j int) { out[b*c.Out.Shape()[1]+p] = T(dot(row(i), row(j))) })
	}
	return nil
}

// dotsGrad adds dy·x_j to x_i and dy·x_i to x_j for every pair.
func dotsGrad[T tensor.Float](c *compute.Call) error {
	x, dy, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out), c.In[0].Shape()
	clear(out)
	for b := range s[0] {
		pairs(s[1], func(p, i, j int) {
			g := dy[b*c.In[1].Shape()[1]+p]
			for d := range s[2] {
				xi, xj := (b*s[1]+i)*s[2]+d, (b*s[1]+j)*s[2]+d
				out[xi] += g * x[xj]
				out[xj] += g * x[xi]
			}
		})
	}
	return nil
}
