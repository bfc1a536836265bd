// Package strategy holds the small idea: a strategy is a pure function from a
// training step and a cluster to a plan. One file each, in one shape; the table
// in ARCHITECTURE.md tells them apart.
//
// Each says what holds the parameters, then writes the tasks of a step in the
// order in which one would tell them; the builder finds out what each task
// waits for from the values it touches. All workers share one list. What a
// builder wrote is not taken on trust: package check proves it like any other.
package strategy

import (
	"fmt"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// Cluster is what a strategy may know of the machines. Ranks 0 to Workers-1
// are workers, the Servers ranks after them are servers.
type Cluster struct {
	Workers int
	Servers int
	// Bucket bounds the bytes of gradients that are summed together, where workers
	// sum them: one that is larger goes by itself. 0 is BucketDefault, 1 sums each by
	// itself.
	Bucket int
	// Algorithm is how workers sum dense gradients: one of plan.Algorithms by name, or
	// empty: by cost.
	Algorithm string
	// Micro is into how many micro-batches a worker's part of a step is cut, whose
	// gradient sums are added before they are sent off; 0 is 1. Activations are of one
	// of them at a time.
	Micro int
	// Slices is into how many slices the batch of a step is cut, whose gradients are
	// computed one by one and summed in an order that does not depend on Workers; 0:
	// each worker has one part. It is for serial and allreduce.
	Slices int
	// Hosts are the workers by machine, each once, in ascending order; nil: all are on
	// one. Local is how those of one host talk, by unix sockets if nothing is said;
	// between hosts it is TCP. Costs are what that costs; zero is cost.Default. By
	// these an algorithm is chosen for every all-reduce.
	Hosts [][]int
	Local cost.Path
	Costs cost.Table
	// Compression says how workers compress the buckets of f32 that they sum, of
	// CompressFrom bytes and more; the zero value: not at all. Rows of tables are not
	// compressed: they are few already.
	Compression  compress.Spec
	CompressFrom int
	// Averaging is of the strategies whose workers train copies of their own.
	Averaging Averaging
	// Stage says what zero cuts in shards: 1 the slots, 2 also the gradients, 3 also the
	// parameters; 0 is 1.
	Stage int
}

// BucketDefault is the bytes of a bucket where nothing else is said. What sums one bucket
// while others are computed takes cores and caches from that: where a machine has as many
// ranks as cores, a perceptron of 2.7 MB makes 1.4 times the steps in one bucket that it
// makes in buckets of 1 MiB (shared memory; 1.25 times over tcp). Large models still have
// many buckets to hide behind computing, and a network of 1 GB/s is busy for 8 ms with one.
const BucketDefault = 8 << 20

// Machine is what package cost must know of the cluster.
func (c *Cluster) Machine() cost.Machine {
	return cost.Machine{Costs: c.Costs, Local: c.Local, Hosts: c.Hosts}
}

// codec says how a bucket of so many bytes is compressed, empty if it is not.
func (c *Cluster) codec(bytes int, dtype tensor.DType) string {
	if c.Compression.Kind == "" || dtype != tensor.F32 || bytes < c.CompressFrom {
		return ""
	}
	return c.Compression.String()
}

// checkCompression fails unless there is a codec of that kind and settings.
func (c *Cluster) checkCompression() error {
	if c.Compression.Kind == "" {
		return nil
	}
	return c.Compression.Validate()
}

// checkHosts fails unless every worker is on one host.
func (c *Cluster) checkHosts() error {
	next := 0
	for _, ranks := range c.Hosts {
		for _, r := range ranks {
			if r != next {
				return fmt.Errorf("hosts %v: want workers 0 to %d in order, each once", c.Hosts, c.Workers-1)
			}
			next++
		}
		if len(ranks) == 0 {
			return fmt.Errorf("hosts %v: want at least one worker on each", c.Hosts)
		}
	}
	if len(c.Hosts) > 0 && next != c.Workers {
		return fmt.Errorf("hosts %v are of %d workers, want %d", c.Hosts, next, c.Workers)
	}
	return nil
}

// Strategy makes the program of a run: plans "step" and "eval". It is pure:
// equal arguments give plans of equal digest. It fails if the cluster does not
// suit it (servers without ps, for example), with what to change.
type Strategy func(step *graph.Step, c Cluster) (*plan.Program, error)

// The names of the plans of a program.
const (
	StepPlan = "step"
	EvalPlan = "eval"
	// InitPlan, AveragePlan and SettlePlan are of LocalSGD and SMA only: before the
	// first step, at the end of a cycle, and where a run of steps ends.
	InitPlan    = "init"
	AveragePlan = "average"
	SettlePlan  = "settle"
)

// Names returns the names of the strategies.
func Names() []string { return []string{"serial", "allreduce", "zero", "ps", "localsgd", "sma"} }

// ByName returns a strategy. An unknown name is an error that gives the nearest
// of those there are.
func ByName(kind string) (Strategy, error) {
	switch kind {
	case "serial":
		return Serial, nil
	case "allreduce":
		return AllReduce, nil
	case "zero":
		return Zero, nil
	case "ps":
		return PS, nil
	case "localsgd":
		return LocalSGD, nil
	case "sma":
		return SMA, nil
	}
	return nil, fmt.Errorf("strategy: unknown kind %q%s", kind, nearest.Hint(kind, Names()))
}
