package params

import (
	"fmt"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Shard is what a worker answers for of a parameter or slot: elements [Lo, Hi). Whole
// says that it holds all of it nevertheless.
type Shard struct {
	Lo, Hi int
	Whole  bool
}

// Shards are those of a worker by name; of what has none it holds all.
type Shards map[string]Shard

// held is what of a node a worker holds.
func (sh Shards) held(n *graph.Node) (lo, hi int, cut bool) {
	if s, ok := sh[n.Name]; ok && !s.Whole {
		return s.Lo, s.Hi, true
	}
	return 0, n.Shape.Elems(), false
}

// New makes what a worker holds, with initial values; shards are flat.
func (sh Shards) New(step *graph.Step) State {
	s := State{}
	for i := range step.Params {
		p := &step.Params[i]
		for _, n := range append([]*graph.Node{p.Var}, p.Slots...) {
			shape := n.Shape
			lo, hi, cut := sh.held(n)
			if cut {
				shape = tensor.Shape{hi - lo}
			}
			t := tensor.New(n.DType, shape...)
			FillInit(t, n, lo)
			s[n.Name] = t
		}
	}
	return s
}

// Begin replaces initial values by others, which are whole.
func (sh Shards) Begin(s, others State) {
	for name, t := range others {
		from := 0
		if part, ok := sh[name]; ok && !part.Whole {
			from = part.Lo * t.DType().Size()
		}
		copy(s[name].Bytes(), t.Bytes()[from:])
	}
}

// Restore lays a checkpoint over what a worker holds, whoever wrote it. It fails unless
// the checkpoint has all of that. Cost: it reads every file.
func (sh Shards) Restore(s State, step *graph.Step, c *checkpoint.Checkpoint) error {
	nodes, whole, covered := map[string]*graph.Node{}, State{}, map[string]int{}
	for i := range step.Params {
		p := &step.Params[i]
		for _, n := range append([]*graph.Node{p.Var}, p.Slots...) {
			if _, _, cut := sh.held(n); cut {
				nodes[n.Name] = n
			} else {
				whole[n.Name] = s[n.Name]
			}
		}
	}
	err := c.Pieces(func(name string) bool { return nodes[name] != nil }, func(p checkpoint.Piece) error {
		n, t, size := nodes[p.Name], s[p.Name], p.Data.DType().Size()
		if !p.Shape.Equal(n.Shape) || p.Data.DType() != t.DType() || p.Keys != nil {
			return fmt.Errorf("the checkpoint has %v %v, this run %v %v", p.Data.DType(), p.Shape, t.DType(), n.Shape)
		}
		lo, hi := max(p.Lo, sh[p.Name].Lo), min(p.Hi, sh[p.Name].Hi)
		if lo < hi {
			covered[p.Name] += hi - lo
			copy(t.Bytes()[(lo-sh[p.Name].Lo)*size:], p.Data.Bytes()[(lo-p.Lo)*size:(hi-p.Lo)*size])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range nodes {
		if covered[name] != s[name].Elems() {
			return fmt.Errorf("checkpoint: %s: %q: pieces cover %d of %d elements", c.Dir, name, covered[name], s[name].Elems())
		}
	}
	return c.AssembleAll(whole)
}

// Pieces are the shards that a worker answers for, as pieces of a checkpoint; of the
// worker that is first, also what no worker has a shard of.
func (sh Shards) Pieces(s State, step *graph.Step, first bool) []checkpoint.Piece {
	var pieces []checkpoint.Piece
	for i := range step.Params {
		p := &step.Params[i]
		nodes := append([]*graph.Node{p.Var}, p.Slots...)
		if _, cut := sh[p.Var.Name]; !cut && first {
			one := graph.Step{Params: step.Params[i : i+1]}
			pieces = append(pieces, s.Pieces(&one)...)
		}
		for _, n := range nodes {
			part, cut := sh[n.Name]
			if !cut || part.Lo == part.Hi {
				continue
			}
			t := s[n.Name]
			if part.Whole {
				t = t.Part(part.Lo, part.Hi)
			}
			pieces = append(pieces, checkpoint.Piece{Name: n.Name, Shape: n.Shape, Lo: part.Lo, Hi: part.Hi, Data: t})
		}
	}
	return pieces
}
