// Package null is the backend that computes nothing: every result has the
// right shape and is zero, and an update leaves its variable alone. Simulation
// and benchmarks of the executor run on it. It does not read ids or labels, so
// it does not report bad ones.
package null

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
)

// Backend implements compute.Backend. The zero value is ready.
type Backend struct{}

// New returns the backend.
func New() compute.Backend { return Backend{} }

// Name returns "null".
func (Backend) Name() string { return "null" }

// Compile makes a program whose results are zeros. Inner values cost the
// memory of their shapes at most, which is never touched; results are cleared
// at every Run, since a caller may have changed them.
func (Backend) Compile(seg *graph.Segment) (compute.Program, error) {
	outs := make(map[string]bool, len(seg.Out)) // by name: the nodes of a program may be others
	for _, n := range seg.Out {
		outs[n.Name] = true
	}
	return compute.Build(seg, compute.Options{Reuse: true, Kernel: func(n *graph.Node) (compute.Kernel, error) {
		if !outs[n.Name] || n.Op == graph.Update || n.Op == graph.UpdateRows {
			return nothing, nil
		}
		return zeros, nil
	}})
}

func nothing(*compute.Call) error { return nil }

func zeros(c *compute.Call) error {
	clear(c.Out.Bytes())
	return nil
}
