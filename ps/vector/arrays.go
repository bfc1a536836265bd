package vector

import (
	"github.com/gangline/gangline/tensor"
)

// blockElems is how many elements of all vectors of a command are worked on
// together: few enough that those of the vectors of a history stay in a cache.
const blockElems = 1024

// arrays is the arithmetic on vectors of one element type, by their place.
type arrays interface {
	bind(at int, t *tensor.Tensor)
	zero(at int)
	copy(dst, src int)
	scale(dst int, a float64)
	axpy(dst int, a float64, src int)
	combine(dst int, a []float64, of []int)
	dots(pairs [][2]int) []Sum
	add(dst int, data *tensor.Tensor)
}

// of holds vectors of n elements, nil where there is none.
type of[T tensor.Float] struct {
	v [][]T
	n int
}

func (v *of[T]) bind(at int, t *tensor.Tensor) {
	if t == nil {
		v.v[at] = nil
		return
	}
	v.v[at] = tensor.Data[T](t)
}

func (v *of[T]) zero(at int) { clear(v.v[at]) }

func (v *of[T]) copy(dst, src int) { copy(v.v[dst], v.v[src]) }

func (v *of[T]) scale(dst int, a float64) {
	d := v.v[dst]
	for i, x := range d {
		d[i] = T(a * float64(x))
	}
}

func (v *of[T]) axpy(dst int, a float64, src int) {
	d, s := v.v[dst], v.v[src]
	d = d[:len(s)]
	for i, x := range s {
		d[i] = T(float64(d[i]) + a*float64(x))
	}
}

func (v *of[T]) combine(dst int, a []float64, of []int) {
	var block [blockElems]float64
	for lo := 0; lo < v.n; lo += blockElems {
		hi := min(lo+blockElems, v.n)
		sum := block[:hi-lo]
		for i, x := range v.v[of[0]][lo:hi] {
			sum[i] = a[0] * float64(x)
		}
		for k := 1; k < len(of); k++ {
			f := a[k]
			for i, x := range v.v[of[k]][lo:hi] {
				sum[i] += f * float64(x)
			}
		}
		d := v.v[dst][lo:hi]
		for i, x := range sum {
			d[i] = T(x)
		}
	}
}

func (v *of[T]) dots(pairs [][2]int) []Sum {
	sums := make([]Sum, len(pairs))
	for lo := 0; lo < v.n; lo += blockElems {
		hi := min(lo+blockElems, v.n)
		for k, p := range pairs {
			sums[k].add(dot(v.v[p[0]][lo:hi], v.v[p[1]][lo:hi]))
		}
	}
	return sums
}

func dot[T tensor.Float](a, b []T) Sum {
	switch a := any(a).(type) {
	case []float32:
		return dot32(a, any(b).([]float32))
	case []float64:
		return dot64(a, any(b).([]float64))
	}
	panic("ps/vector: elements of another type")
}

func (v *of[T]) add(dst int, data *tensor.Tensor) {
	d, s := v.v[dst], tensor.Data[T](data)
	d = d[:len(s)]
	for i, x := range s {
		d[i] += x
	}
}
