package kernel

import "github.com/gangline/gangline/tensor"

// Runs is rows of a matrix that lie in runs: every run of Per rows, side by side,
// begins Step elements after the one before.
type Runs struct{ Per, Step int }

// Side is rows of dim elements all side by side.
func Side(dim int) Runs { return Runs{1, dim} }

// gather copies the rows that ids name.
func gather[T tensor.Float](out []T, to Runs, rows []T, ids []int64, dim int) {
	if dim == 1 && to == Side(1) {
		out = out[:len(ids)]
		for e, id := range ids {
			out[e] = rows[id]
		}
		return
	}
	for at := 0; len(ids) > 0; at += to.Step {
		n := min(to.Per, len(ids))
		for e, id := range ids[:n] {
			copy(out[at+e*dim:at+(e+1)*dim], rows[int(id)*dim:])
		}
		ids = ids[n:]
	}
}

// addRows adds the rows x, in runs, to those of out that the ids less lo name, as
// far as there are such.
func addRows[T tensor.Float](out, x []T, from Runs, ids []int64, lo, dim int) {
	count := len(out) / max(1, dim)
	for at := 0; len(ids) > 0; at += from.Step {
		n := min(from.Per, len(ids))
		for e, id := range ids[:n] {
			if i := int(id) - lo; i >= 0 && i < count {
				row := out[i*dim : (i+1)*dim]
				for j, v := range x[at+e*dim : at+(e+1)*dim] {
					row[j] += v
				}
			}
		}
		ids = ids[n:]
	}
}

func gatherFast(out []float32, to Runs, rows []float32, ids []int64, dim int) {
	if dim == 0 || dim%8 != 0 || len(ids) == 0 {
		gather(out, to, rows, ids, dim)
		return
	}
	last := len(ids) - 1
	_ = out[last/to.Per*to.Step+(last%to.Per+1)*dim-1]
	for _, id := range ids {
		_ = rows[int(id)*dim : int(id+1)*dim]
	}
	gatherAVX(&out[0], &rows[0], &ids[0], len(ids), dim, to.Per, 4*(to.Step-to.Per*dim))
}

// ahead is how many rows are fetched before they are added.
const ahead = 12

func addRowsFast(out, x []float32, from Runs, ids []int64, lo, dim int) {
	if dim == 0 || dim%8 != 0 || len(ids) == 0 || len(out) == 0 {
		addRows(out, x, from, ids, lo, dim)
		return
	}
	last, next := len(ids)-1, dim
	if from.Per == 1 {
		next = from.Step
	}
	_ = x[last/from.Per*from.Step+(last%from.Per+1)*dim-1]
	addRowsAVX(&out[0], &x[0], &ids[0], len(ids), dim, from.Per, 4*(from.Step-from.Per*dim), 4*ahead*next, lo, len(out)/dim)
}
