// Package params holds the parameters of a model and the slots of its optimizer by
// name: their initial values, as pieces of a checkpoint, and what tells two models
// apart.
package params

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// State is parameters and slots by name, whole, as a worker of serial or
// allreduce holds them.
type State map[string]*tensor.Tensor

// New makes all parameters and slots of a step with their initial values.
func New(step *graph.Step) State {
	s := State{}
	for i := range step.Params {
		p := &step.Params[i]
		t := tensor.New(p.Var.DType, p.Var.Shape...)
		FillInit(t, p.Var, 0)
		s[p.Var.Name] = t
		for _, slot := range p.Slots {
			t := tensor.New(slot.DType, slot.Shape...)
			FillInit(t, slot, 0)
			s[slot.Name] = t
		}
	}
	for _, n := range scaling(step) {
		t := tensor.New(n.DType, n.Shape...)
		FillInit(t, n, 0)
		s[n.Name] = t
	}
	return s
}

// scaling lists the loss scale and its slot, if there is one.
func scaling(step *graph.Step) []*graph.Node {
	if s := step.Scaling; s != nil {
		return []*graph.Node{s.Var, s.Good}
	}
	return nil
}

// FillInit writes initial values of a variable or slot, from element lo on.
func FillInit(t *tensor.Tensor, v *graph.Node, lo int) {
	switch {
	case v.Op == graph.SlotVar && t.DType() == tensor.F32:
		fillWith(t.F32(), float32(v.Attr.Value))
	case v.Op == graph.SlotVar:
		fillWith(t.F64(), v.Attr.Value)
	case t.DType() == tensor.F32:
		graph.Fill(v.Attr.Init, v.Name, lo, t.F32())
	default:
		graph.Fill(v.Attr.Init, v.Name, lo, t.F64())
	}
}

func fillWith[T tensor.Float](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Restore lays a checkpoint over the state. Arrays that the checkpoint lacks,
// and dense ones that it holds in part only, are errors.
func (s State) Restore(c *checkpoint.Checkpoint) error {
	return c.AssembleAll(s)
}

// Pieces returns the state as pieces of a checkpoint: dense arrays whole, and of
// a table the rows that differ from their initial values, so that a table of a
// server and one of a worker give the same pieces.
func (s State) Pieces(step *graph.Step) []checkpoint.Piece {
	var pieces []checkpoint.Piece
	for i := range step.Params {
		p := &step.Params[i]
		nodes := append([]*graph.Node{p.Var}, p.Slots...)
		if p.IsTable() {
			pieces = append(pieces, s.tablePieces(nodes)...)
			continue
		}
		for _, n := range nodes {
			t := s[n.Name]
			pieces = append(pieces, checkpoint.Piece{Name: n.Name, Shape: n.Shape, Lo: 0, Hi: t.Elems(), Data: t})
		}
	}
	for _, n := range scaling(step) {
		t := s[n.Name]
		pieces = append(pieces, checkpoint.Piece{Name: n.Name, Shape: n.Shape, Lo: 0, Hi: t.Elems(), Data: t})
	}
	return pieces
}

// tablePieces are the changed rows of a table and its slots.
func (s State) tablePieces(nodes []*graph.Node) []checkpoint.Piece {
	rows, dim := nodes[0].Shape[0], nodes[0].Shape[1]
	width := dim * nodes[0].DType.Size()
	fresh := tensor.New(nodes[0].DType, dim)
	keys := []int64{}
	for r := range rows {
		for _, n := range nodes {
			FillInit(fresh, n, r*dim)
			if !bytes.Equal(fresh.Bytes(), s[n.Name].Bytes()[r*width:(r+1)*width]) {
				keys = append(keys, int64(r))
				break
			}
		}
	}
	var pieces []checkpoint.Piece
	for _, n := range nodes {
		data := tensor.New(n.DType, len(keys), dim)
		for i, k := range keys {
			copy(data.Bytes()[i*width:(i+1)*width], s[n.Name].Bytes()[int(k)*width:])
		}
		pieces = append(pieces, checkpoint.Piece{Name: n.Name, Shape: n.Shape, Keys: keys, Data: data})
	}
	return pieces
}

// Only keeps the parameters and leaves the slots.
func (s State) Only(step *graph.Step) State {
	out := State{}
	for i := range step.Params {
		name := step.Params[i].Var.Name
		out[name] = s[name]
	}
	return out
}

// SquareNorm is |p|² over all parameters, added in float64.
func (s State) SquareNorm(step *graph.Step) float64 {
	sum := 0.0
	for i := range step.Params {
		t := s[step.Params[i].Var.Name]
		if t.DType() == tensor.F32 {
			for _, v := range t.F32() {
				sum += float64(v) * float64(v)
			}
			continue
		}
		for _, v := range t.F64() {
			sum += v * v
		}
	}
	return sum
}

// Digest is the SHA-256 of all parameters: their bytes, little-endian, in the
// order of the graph. Two runs with equal digests have bit-identical parameters.
func (s State) Digest(step *graph.Step) (string, error) {
	h := sha256.New()
	for i := range step.Params {
		name := step.Params[i].Var.Name
		t := s[name]
		if t == nil {
			return "", fmt.Errorf("no parameter %q", name)
		}
		h.Write(t.Bytes())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Begin replaces initial values by others, of the parameters that those have.
func (s State) Begin(others State) {
	for name, t := range others {
		copy(s[name].Bytes(), t.Bytes())
	}
}

// Count is the number of elements of all parameters.
func Count(step *graph.Step) int64 {
	var n int64
	for i := range step.Params {
		n += int64(step.Params[i].Var.Shape.Elems())
	}
	return n
}
