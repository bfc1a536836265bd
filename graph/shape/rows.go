package shape

import (
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// Gather is the rows of a matrix that an index names.
func Gather(dst, rows, index Shape) (Shape, error) {
	if err := rank(rows, 2); err != nil {
		return nil, err
	}
	if err := rank(index, 1); err != nil {
		return nil, err
	}
	return append(dst, index[0], rows[1]), nil
}

// GatherGrad is rows, if dy is what Gather made of them.
func GatherGrad(dst, dy, index, rows Shape) (Shape, error) {
	if err := rank(index, 1); err != nil {
		return nil, err
	}
	if len(rows) != 2 || len(dy) != 2 || dy[0] != index[0] || dy[1] != rows[1] {
		return nil, fmt.Errorf("the gradient is %v for %s entries of rows %v", dy, dim(index[0]), rows)
	}
	return append(dst, rows...), nil
}

// Bag is a row a bag, as wide as rows.
func Bag(dst, rows, index, offsets, weights Shape) (Shape, error) {
	if err := rank(rows, 2); err != nil {
		return nil, err
	}
	bags, err := bags(index, offsets, weights)
	return append(dst, bags, rows[1]), err
}

// bags is the number of bags that offsets cut the entries of index into.
func bags(index, offsets, weights Shape) (int, error) {
	if err := rank(index, 1); err != nil {
		return 0, err
	}
	if len(offsets) != 1 || offsets[0] == 0 || !weights.Equal(index) {
		return 0, fmt.Errorf("offsets are %v and weights %v for %s entries", offsets, weights, dim(index[0]))
	}
	if offsets[0] == tensor.Dynamic {
		return tensor.Dynamic, nil
	}
	return offsets[0] - 1, nil
}

// BagGrad is rows, if dy is what Bag made of them.
func BagGrad(dst, dy, index, offsets, weights, rows Shape) (Shape, error) {
	bags, err := bags(index, offsets, weights)
	if err != nil {
		return nil, err
	}
	if len(rows) != 2 || len(dy) != 2 || dy[0] != bags || dy[1] != rows[1] {
		return nil, fmt.Errorf("the gradient is %v for %s bags of rows %v", dy, dim(bags), rows)
	}
	return append(dst, rows...), nil
}

// dim writes one dim, a dynamic one as ?.
func dim(d int) string {
	s := Shape{d}.String()
	return s[1 : len(s)-1]
}

// Loss is a scalar, from predictions [B] or [B 1] and labels [B].
func Loss(dst, z, y Shape) (Shape, error) {
	if len(y) != 1 || len(z) < 1 || z[0] != y[0] || len(z) > 2 || len(z) == 2 && z[1] != 1 {
		return nil, fmt.Errorf("%v against labels %v: want [B] or [B 1] against [B]", z, y)
	}
	return dst, nil
}

// ClassLoss is a scalar, from predictions [B C] and labels [B].
func ClassLoss(dst, z, y Shape) (Shape, error) {
	if len(z) != 2 || len(y) != 1 || z[0] != y[0] || z[1] == tensor.Dynamic {
		return nil, fmt.Errorf("%v against labels %v: want [B C] against [B]", z, y)
	}
	return dst, nil
}

// LossGrad is the shape of the predictions.
func LossGrad(dst, z, y, dy Shape, classes bool) (Shape, error) {
	rule := Loss
	if classes {
		rule = ClassLoss
	}
	if _, err := rule(dst, z, y); err != nil {
		return nil, err
	}
	return append(dst, z...), scalar("the gradient of the loss", dy)
}

// Update is the variable.
func Update(dst, v, grad, total Shape, slots ...Shape) (Shape, error) {
	if !grad.Equal(v) {
		return nil, fmt.Errorf("the gradient is %v for a variable of %v", grad, v)
	}
	return append(dst, v...), updated(v, total, slots)
}

// UpdateRows is the table.
func UpdateRows(dst, v, keys, grad, total Shape, slots ...Shape) (Shape, error) {
	if err := rank(v, 2); err != nil {
		return nil, err
	}
	if err := rank(keys, 1); err != nil {
		return nil, err
	}
	if len(grad) != 2 || grad[0] != keys[0] || grad[1] != v[1] {
		return nil, fmt.Errorf("the gradient is %v for %s rows of %v", grad, dim(keys[0]), v)
	}
	return append(dst, v...), updated(v, total, slots)
}

func updated(v, total Shape, slots []Shape) error {
	for i, s := range slots {
		if !s.Equal(v) {
			return fmt.Errorf("slot %d is %v for a variable of %v", i, s, v)
		}
	}
	return scalar("the total", total)
}
