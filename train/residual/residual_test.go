package residual_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/residual"
)

// alone is a bucket of a group of one.
func alone(t *testing.T, codec string) []*compressed.Bucket {
	t.Helper()
	spec, err := compress.ParseSpec(codec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := compressed.NewBucket(collective.Party{Group: []int{0}}, "w..b", spec, []compressed.Part{
		{Name: "w", Shape: tensor.Shape{2, 3}}, {Name: "layer/b", Shape: tensor.Shape{2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return []*compressed.Bucket{b}
}

// saved is a checkpoint of such pieces.
func saved(t *testing.T, pieces ...checkpoint.Piece) *checkpoint.Checkpoint {
	t.Helper()
	text, err := checkpoint.Encode("worker-0", pieces)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.InMemory(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func piece(name string, lo int, shape []int, v ...float32) checkpoint.Piece {
	return checkpoint.Piece{Name: name, Shape: shape, Lo: lo, Hi: lo + len(v), Data: tensor.From(v, len(v))}
}

// Residuals are found by the names of parameters, whatever else a checkpoint has; those of no
// parameter here are named.
func TestRestoreFindsItsOwn(t *testing.T) {
	b := alone(t, "onebit(64)+feedback")
	left, err := residual.Restore(b, saved(t,
		piece("w", 0, []int{2, 3}, 9, 9, 9, 9, 9, 9), piece("w/residual", 0, []int{1}, 9), piece("w/residual.x", 0, []int{1}, 9),
		piece("w/residual.0", 0, []int{2, 3}, 1, 2, 3, 4, 5, 6), piece("w/residual.3", 0, []int{2, 3}, 10, 10, 10, 10, 10, 10),
		piece("w/residual.sum", 2, []int{2, 3}, .5, .25), piece("layer/b/residual.1", 0, []int{2}, 7, 8), piece("old/residual.0", 0, []int{1}, 1),
		piece("old/factor", 0, []int{1}, 1),
	))
	if err != nil || !slices.Equal(left, []string{"old"}) {
		t.Fatalf("left %v: %v", left, err)
	}
	s := b[0].State()
	if !slices.Equal(s.First, []float32{11, 12, 13, 14, 15, 16, 7, 8}) || !slices.Equal(s.Second, []float32{0, 0, .5, .25, 0, 0, 0, 0}) {
		t.Errorf("got %+v", s)
	}
	// Nobody with feedback: all are left.
	if left, err := residual.Restore(alone(t, "f16"), saved(t, residual.Pieces(b)...)); err != nil || !slices.Equal(left, []string{"w", "layer/b"}) {
		t.Errorf("left %v: %v", left, err)
	}
	if p := residual.Pieces(alone(t, "f16")); p != nil {
		t.Errorf("without feedback %d pieces are saved", len(p))
	}
}

// Residuals of another shape or type are damage.
func TestRestoreRefuses(t *testing.T) {
	for _, p := range []checkpoint.Piece{
		piece("w/residual.0", 0, []int{3, 2}, 1, 2, 3, 4, 5, 6),
		piece("w/residual.sum", 5, []int{2, 3}, 1, 2),
		{Name: "w/residual.0", Shape: []int{2, 3}, Hi: 6, Data: tensor.New(tensor.F64, 6)},
	} {
		b := alone(t, "onebit(64)+feedback")
		if _, err := residual.Restore(b, saved(t, p)); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), p.Name) {
			t.Errorf("%s of shape %v from %d on: %v", p.Name, p.Shape, p.Lo, err)
		}
	}
}
