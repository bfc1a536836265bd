// Package compute defines what executes a segment of a graph.
//
// A Backend compiles a segment once; the Program then runs it step after step
// on whatever batch sizes come. Three backends stand beside each other: ref
// (one obvious loop an operator, in float32 and float64, the judge of the
// others), native (fast) and null (costs only, for simulation). One
// conformance suite, computetest, runs on all that compute.
package compute

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Backend compiles segments.
type Backend interface {
	// Name is the name a job uses: ref, native, null.
	Name() string
	// Compile makes a program for a segment. It fails with an error that names
	// the node if the backend lacks its operator or dtype.
	Compile(seg *graph.Segment) (Program, error)
}

// Holder is a backend whose programs use threads.
type Holder interface {
	Backend
	// Hold keeps the threads ready from one Run to the next, of any program,
	// until release is called, once. Without it each Run gathers its own.
	Hold() (release func())
}

// Crowd is a backend whose threads may stay awake while they have nothing to do.
type Crowd interface {
	Backend
	// Waiting says that so many more goroutines, fewer if it is below 0, want a
	// processor: threads that have nothing to do make room for them. What is
	// computed does not depend on it.
	Waiting(more int)
}

// Program is a compiled segment. It owns its scratch memory: one Run at a time.
type Program interface {
	// Run computes out from in, in the order of Segment.In and Segment.Out.
	// Outputs of dynamic shape are resized. Outputs of an update are the same
	// tensors as its inputs and change in place. step is the 0-based step of
	// the run, which update rules and counter-based randomness read. Once warm,
	// a Run allocates nothing. An error names the node; inputs were not changed
	// then, unless the segment is an update.
	Run(step int64, in, out []*tensor.Tensor) error
}
