package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// vectors returns how many vectors the last dim of s makes, and their size.
func vectors(s tensor.Shape) (n, size int) {
	last := len(s) - 1
	return s[:last].Elems(), s[last]
}

// softmax is exp(z)/Σexp(z) a row, with the row's maximum taken off first so
// that no exponential overflows.
func softmax[T tensor.Float](c *compute.Call) error {
	z, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
	rows, classes := vectors(c.Out.Shape())
	for i := range rows {
		row := z[i*classes : (i+1)*classes]
		logSum := logSumExp(row)
		for j, v := range row {
			out[i*classes+j] = T(math.Exp(float64(v) - logSum))
		}
	}
	return nil
}

// softmaxGrad is y·(dy - Σ y·dy) a row.
func softmaxGrad[T tensor.Float](c *compute.Call) error {
	y, dy, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	rows, classes := vectors(c.Out.Shape())
	for i := range rows {
		dot := 0.0
		for j := i * classes; j < (i+1)*classes; j++ {
			dot += float64(y[j]) * float64(dy[j])
		}
		for j := i * classes; j < (i+1)*classes; j++ {
			out[j] = y[j] * (dy[j] - T(dot))
		}
	}
	return nil
}

func logSumExp[T tensor.Float](z []T) float64 {
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, float64(v))
	}
	s := 0.0
	for _, v := range z {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}

// moments returns what a normalisation takes off the elements of a vector and
// what it multiplies them by: the mean and 1/sqrt(variance + eps) or, of
// RMSNorm, 0 and 1/sqrt(mean square + eps).
func moments[T tensor.Float](x []T, a *graph.Attr, layer bool) (mean, scale float64) {
	n := float64(len(x))
	if layer {
		for _, v := range x {
			mean += float64(v) / n
		}
	}
	square := 0.0
	for _, v := range x {
		d := float64(v) - mean
		square += d * d / n
	}
	return mean, 1 / math.Sqrt(square+a.Eps)
}

// norm is (x - mean)·scale·gain + bias, without mean and bias for RMSNorm.
func norm[T tensor.Float](c *compute.Call) error {
	x, gain, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	layer := c.Node.Op == graph.LayerNorm
	rows, size := vectors(c.Out.Shape())
	for r := range rows {
		row := x[r*size : (r+1)*size]
		mean, scale := moments(row, &c.Node.Attr, layer)
		for j, v := range row {
			y := (float64(v) - mean) * scale * float64(gain[j])
			if layer {
				y += float64(tensor.Data[T](c.In[2])[j])
			}
			out[r*size+j] = T(y)
		}
	}
	return nil
}

// normGrad is, with x̂ the normalised x and g = gain·dy,
// scale·(g - mean(g) - x̂·mean(g·x̂)), without mean(g) for RMSNorm.
func normGrad[T tensor.Float](c *compute.Call) error {
	x, gain, dy := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.In[2])
	out := tensor.Data[T](c.Out)
	layer := c.Node.Op == graph.LayerNormGrad
	rows, size := vectors(c.Out.Shape())
	for r := range rows {
		row := x[r*size : (r+1)*size]
		mean, scale := moments(row, &c.Node.Attr, layer)
		g := func(j int) float64 { return float64(gain[j]) * float64(dy[r*size+j]) }
		hat := func(j int) float64 { return (float64(row[j]) - mean) * scale }
		meanG, meanGX := 0.0, 0.0
		for j := range size {
			if layer {
				meanG += g(j) / float64(size)
			}
			meanGX += g(j) * hat(j) / float64(size)
		}
		for j := range size {
			out[r*size+j] = T(scale * (g(j) - meanG - hat(j)*meanGX))
		}
	}
	return nil
}

// normGainGrad is Σ x̂·dy over all vectors.
func normGainGrad[T tensor.Float](c *compute.Call) error {
	x, dy, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	layer := c.Node.Op == graph.LayerNormGainGrad
	rows, size := vectors(c.In[0].Shape())
	clear(out)
	for r := range rows {
		row := x[r*size : (r+1)*size]
		mean, scale := moments(row, &c.Node.Attr, layer)
		for j, v := range row {
			out[j] += T((float64(v) - mean) * scale * float64(dy[r*size+j]))
		}
	}
	return nil
}
