package kernel

import "github.com/gangline/gangline/tensor"

// gather copies the rows that ids name.
func gather[T tensor.Float](out, rows []T, ids []int64, dim int) {
	if dim == 1 {
		out = out[:len(ids)]
		for e, id := range ids {
			out[e] = rows[id]
		}
		return
	}
	for e, id := range ids {
		copy(out[e*dim:(e+1)*dim], rows[int(id)*dim:])
	}
}

// fetch does nothing: Go has no way to say it.
func fetch[T tensor.Float]([]T, []int64, int) {}

func gatherFast(out, rows []float32, ids []int64, dim int) {
	if dim == 0 || dim%8 != 0 || len(ids) == 0 {
		gather(out, rows, ids, dim)
		return
	}
	_ = out[len(ids)*dim-1]
	for _, id := range ids {
		_ = rows[int(id)*dim : int(id+1)*dim]
	}
	gatherAVX(&out[0], &rows[0], &ids[0], len(ids), dim)
}

func fetchFast(rows []float32, ids []int64, dim int) {
	if len(ids) > 0 && len(rows) > 0 {
		fetchAVX(&rows[0], &ids[0], len(ids), 4*dim)
	}
}
