// Package strategy holds the small idea: a strategy is a pure function from a
// training step and a cluster to a plan. One file each, in one shape; the table
// in ARCHITECTURE.md tells them apart.
package strategy

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// Cluster is what a strategy may know of the machines. Ranks 0 to Workers-1
// are workers, the Servers ranks after them are servers.
type Cluster struct {
	Workers int
	Servers int
}

// Strategy makes the program of a run: plans "step" and "eval". It is pure:
// equal arguments give plans of equal digest. It fails if the cluster does not
// suit it (servers without ps, for example), with what to change.
type Strategy func(step *graph.Step, c Cluster) (*plan.Program, error)
