package graph

import (
	"fmt"
	"slices"
)

// Check verifies the guarantees numbered at Segment. Its errors are mistakes of
// whoever made the segment, never of a user.
func (s Segment) Check() error {
	known := map[*Node]bool{}
	for _, n := range s.In {
		if known[n] {
			return fmt.Errorf("graph: segment %q takes %q twice", s.Name, n.Name)
		}
		known[n] = true
	}
	made := map[*Node]bool{}
	updates := false
	for i, n := range s.Nodes {
		if i > 0 && n.ID <= s.Nodes[i-1].ID {
			return fmt.Errorf("graph: segment %q (1): %q comes after %q", s.Name, n.Name, s.Nodes[i-1].Name)
		}
	}
	for _, n := range s.Nodes {
		if n.IsSource() {
			return fmt.Errorf("graph: segment %q (3): computes the %s %q", s.Name, n.Op, n.Name)
		}
		for _, x := range n.In {
			if !known[x] {
				return fmt.Errorf("graph: segment %q (2): %q reads %q, which is neither an input nor an earlier node",
					s.Name, n.Name, x.Name)
			}
		}
		known[n], made[n] = true, true
		if isUpdate(n.Op) {
			updates = true
		}
	}
	for i, n := range s.Out {
		inPlace := updates && slices.Contains(s.In, n) && (n.Op == Variable || n.Op == Table || n.Op == SlotVar)
		if !made[n] && !inPlace {
			return fmt.Errorf("graph: segment %q (4): delivers %q, which it does not make", s.Name, n.Name)
		}
		if slices.Contains(s.Out[:i], n) {
			return fmt.Errorf("graph: segment %q (4): delivers %q twice", s.Name, n.Name)
		}
	}
	return nil
}

// Check verifies every segment and that the segments fit together: run in the
// order gathers, forward, updates, each finds its inputs, and each parameter
// has one gradient and one update of its own.
func (s *Step) Check() error {
	for _, seg := range s.Segments {
		if err := seg.Check(); err != nil {
			return err
		}
	}
	ready := map[*Node]bool{}
	for _, n := range s.Graph.nodes {
		ready[n] = n.IsSource()
	}
	var order []int
	for _, p := range s.Params {
		if p.IsTable() {
			order = append(order, p.Gather)
		}
	}
	gathers := len(order)
	order = append(order, s.Forward...)
	for _, p := range s.Params {
		order = append(order, p.Update)
	}
	if s.Scaling != nil {
		order = append(order, s.Scaling.Update)
	}
	for _, i := range order {
		for _, n := range s.Segments[i].In {
			if !ready[n] {
				return fmt.Errorf("graph: segment %q reads %q before it is made", s.Segments[i].Name, n.Name)
			}
		}
		for _, n := range s.Segments[i].Out {
			if ready[n] && !n.IsSource() {
				return fmt.Errorf("graph: segment %q makes %q again", s.Segments[i].Name, n.Name)
			}
			ready[n] = true
		}
	}
	for _, n := range s.Segments[s.Eval].In {
		if !n.IsSource() && n.Op != GatherRows {
			return fmt.Errorf("graph: segment %q reads %q, which only the step makes", s.Segments[s.Eval].Name, n.Name)
		}
	}
	return s.checkParams(order[gathers : gathers+len(s.Forward)])
}

// checkParams verifies the fields of every Param against the segments.
func (s *Step) checkParams(forward []int) error {
	owner := map[*Node]string{}
	for _, p := range s.Params {
		if o, ok := owner[p.Grad]; ok {
			return fmt.Errorf("graph: %q and %q share the gradient %q", o, p.Var.Name, p.Grad.Name)
		}
		owner[p.Grad] = p.Var.Name
		up := s.Segments[p.Update]
		if !slices.Equal(up.Out, append([]*Node{p.Var}, p.Slots...)) {
			return fmt.Errorf("graph: segment %q does not deliver %q and its slots", up.Name, p.Var.Name)
		}
		readers := 0
		for _, n := range s.Graph.nodes {
			if slices.Contains(n.In, p.Grad) {
				readers++
			}
		}
		if readers != 1 {
			return fmt.Errorf("graph: the gradient %q of %q has %d readers, want its update alone",
				p.Grad.Name, p.Var.Name, readers)
		}
		if !slices.ContainsFunc(forward, func(i int) bool { return slices.Contains(s.Segments[i].Out, p.Grad) }) {
			return fmt.Errorf("graph: no forward segment delivers the gradient of %q", p.Var.Name)
		}
	}
	return nil
}
