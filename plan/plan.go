// Package plan holds the seam of the system: for every rank a list of tasks and
// what each waits for. A strategy makes a plan, package check proves it, exec runs it.
//
// A plan is data. It has no pointers into the graph, no sockets, no closures;
// it prints, parses back and has a digest that all ranks compare before the
// first step.
//
// # Order
//
// Tasks of one lane of one rank run one at a time in the order of the list.
// Tasks of different lanes run at the same time unless After orders them. A Dep
// with Lag 0 names an earlier task of the same rank's list; Lag n > 0 names a
// task of n steps before (any position; satisfied in the first n steps).
//
// At most Window steps are in flight: no task of step t starts before all tasks
// of step t-Window have ended. Values of class Act, Grad, Key and Scalar exist
// once per step in flight, Param and Slot once.
package plan

import (
	"slices"

	"github.com/gangline/gangline/tensor"
)

// Kind is what a task does.
type Kind uint8

// The kinds, all of them; there is no way to add one from outside.
const (
	// Feed fills Out with the next batch of this rank.
	Feed Kind = iota + 1
	// Compute runs segment Seg: In and Out follow the segment's.
	Compute
	// Send gives In[0] to rank Peer under Tag. It ends when Peer has posted the
	// matching Recv and the value may be reused (rendezvous).
	Send
	// Recv takes Out[0] from rank Peer under Tag.
	Recv
	// Collective performs Op over Group.
	Collective
	// Pull reads from shard Store of the servers. Out lists dense parameters
	// (class Param) first: of each, the range that the store holds is written
	// and the rest left alone. Then come the rows of tables (any other class);
	// the i-th rows value is of the table in its State, and In[i] holds its
	// keys: the rows whose keys fall on the store are written. Several Pulls of
	// one value from different stores fill it together.
	Pull
	// Push gives gradient sums to shard Store. In is read from the left: a value
	// of class Key begins the pair (keys, rows) of a table's gradient, of which
	// the rows that fall on the store are sent; a value of class Grad alone is a
	// dense gradient, of which the range that the store holds is sent. The
	// parameter is the State of the gradient. Done says what the task waits for.
	Push
	// Add sums In into Out[0] (micro-batches), each times its factor if there are
	// Factors; 16-bit floats add up in float32, and one of them or a float32 may be Out.
	// With two Out, (keys, rows) of a table, In is such pairs, and rows of
	// equal keys are summed in their order.
	Add
	// Commit ends a synchronous step over Group: In is (weight, loss, gradients
	// to be checked for finiteness..., and the loss scale where there is one), Out is
	// (total weight, total loss), the weight multiplied by the scale. If
	// any rank's values are not finite, the total weight is 0 on all ranks and
	// the step changes nothing anywhere. It decides for the stores too: what was
	// pushed in the step is applied, or dropped, when the Commit ends.
	Commit
)

// Op is what a Collective does.
type Op uint8

// The collectives.
const (
	NoOp Op = iota
	// AllReduce sums In[0] over the group into Out[0], which may be the same value.
	// Several values are summed in place, as the one run of bytes that they are in
	// their arena (see Plan.Span).
	AllReduce
	// ReduceScatter leaves each rank its range of the sum. Of sharded values, In is one
	// run of an arena, of which rank i of n gets part i (see Cut), and Out is In, or
	// values outside of it that have the parts.
	ReduceScatter
	// AllGather concatenates the ranges. Of sharded values Out is a run of an arena, and
	// In is Out, or values that have the parts.
	AllGather
	// Broadcast copies the first rank's value to all.
	Broadcast
	// AllGatherRows merges sparse values: In and Out are (keys, rows). Keys
	// come out ascending and distinct; rows of equal keys are summed in rank order.
	AllGatherRows
)

// Order says whether the order of a reduction may follow the algorithm (Any) or
// must be the same tree over the slices of the batch whatever the number of ranks
// (Tree; see Branch). With Tree, the In of an AllReduce is the sums of all branches of
// the rank, from the left, each as long as Out, and the sum goes where the first is.
// In of an AllGatherRows is (keys, rows) of each slice of the rank, and rows of equal
// keys are summed in the order of the slices, as are the (weight, loss) of each
// slice that In of a Commit begins with.
type Order uint8

// The orders.
const (
	Any Order = iota
	Tree
)

// Done says when a Push has ended.
type Done uint8

// What a Push waits for.
const (
	// Stored: the server holds the gradient and will apply it once the step commits.
	Stored Done = iota
	// Queued: the message is on its way.
	Queued
	// Verdict: the server has said applied or dropped.
	Verdict
)

// LaneKind is a kind of thing that a task occupies.
type LaneKind uint8

// The lanes.
const (
	Reader LaneKind = iota + 1 // the input
	Device                     // what computes
	Link                       // to or from one peer: ID is 2*peer, +1 for receiving
	Group                      // a group's collectives: ID is the group
	Store                      // a server shard: ID is the store
)

// Lane names what a task occupies.
type Lane struct {
	Kind LaneKind
	ID   int
}

// Dep is a task that must have ended: Task indexes the same rank's list.
type Dep struct {
	Task int
	Lag  int
}

// Ref is a use of a value: Micro is the micro-batch, Use tells apart two
// lives of one value in one step (recomputation, gathering twice).
type Ref struct {
	Value int
	Micro int
	Use   int
}

// Task is one thing one rank does once a step.
type Task struct {
	Kind  Kind
	Name  string
	Op    Op
	Seg   int // Compute
	Peer  int // Send, Recv
	Group int // Collective, Commit
	Store int // Pull, Push
	In    []Ref
	Out   []Ref
	Lane  Lane
	After []Dep
	Tag   uint32
	Order Order
	Done  Done
	// Factors are of an Add with one Out: one for each In, and then perhaps a number
	// to add to every element. None: each In counts once.
	Factors []float64
	// Algorithm is of an AllReduce.
	Algorithm Algorithm
	// Codec is how an AllReduce of f32 is compressed, as compress.Spec writes it; empty:
	// not at all. It then has a way of its own, and Algorithm is the usual.
	Codec string
}

// Class is the role of a value.
type Class uint8

// The classes.
const (
	Param  Class = iota + 1 // a parameter; lasts over steps
	Slot                    // what a rule keeps beside it; lasts over steps
	Grad                    // a gradient sum
	Act                     // an activation or an input
	Key                     // the ids of a sparse value
	Scalar                  // a weight or a loss
)

// NoState marks a value that belongs to no parameter.
const NoState = -1

// Value is one tensor a plan speaks of.
type Value struct {
	Name  string
	DType tensor.DType
	Shape tensor.Shape // Dynamic where the batch decides
	Class Class
	// State is the index of the Param value that this value is the gradient,
	// the pulled rows, the keys or a slot of; its own index for a Param; NoState
	// otherwise. Keys that several tables share name the first of them.
	State int
	// Arena and Offset place the value in memory of the endpoint; Arena 0 is
	// ordinary memory.
	Arena  int
	Offset int
	// Sharded says that of a parameter, a slot or a gradient every rank answers for a
	// part: the elements that it owns by Holdings, a gradient's being those of its
	// parameter (see Plan.Part). An update changes that part, and a Commit looks at
	// it. In an arena a rank has memory for all of the value, elsewhere for its part.
	Sharded bool
	// Once says that the memory is there once and not once per step in flight. Values of
	// one arena are alike in this; but for parameters they may then share memory, if
	// they are in use one after the other.
	Once bool
}

// Holding says who has which part of a parameter or slot.
type Holding struct {
	State int // the Param or Slot value
	// Lo and Hi bound the elements held, [Lo, Hi); for a table held by a store,
	// both are 0 and the rows are those whose hash falls on the store.
	Lo, Hi int
	// Rank holds it, or Store does (the other is -1).
	Rank, Store int
	// Owner holds are authoritative; others are copies.
	Owner bool
}

// Seg is what a plan knows of a segment.
type Seg struct {
	Name string
	// Update is the Param value that the segment updates, or NoState.
	Update int
	// FLOPs is an estimate for one example, for simulation.
	FLOPs int64
}

// StoreInfo is one shard of the parameter servers. It is a logical name: which
// process serves it is routing, and leaves the plan's digest alone.
type StoreInfo struct{ Name string }

// Plan is what every rank does in one step.
type Plan struct {
	Name   string
	Window int
	// Local says that every rank trains a copy of its own on its own batches: no
	// gradient is summed over ranks. Package check then looks at the whole Program,
	// for what lets the copies meet.
	Local bool
	// Slices is how many slices the batch of a step is cut into; 0: each rank has one part.
	Slices int
	// Ranks holds the task list of every worker. Servers follow the workers in
	// rank and have no list: they are what Stores names.
	Ranks  [][]Task
	Values []Value
	Segs   []Seg
	Groups [][]int
	// Hosts are the ranks by machine, each once; empty: all are on one.
	Hosts    [][]int
	Stores   []StoreInfo
	Holdings []Holding
}

// Program is the plans of a run.
type Program struct {
	// Plans by name: "step" and "eval" at least.
	Plans map[string]*Plan
	// Cycle is the order in which the driver runs plans, repeated. Those that feed
	// are one and the same plan, and each of its turns is a step.
	Cycle []string
	// Init, if named, is run once before the first step of a run; Settle wherever a
	// run of steps ends, be it within a cycle: after it all copies of a state are
	// equal. Programs of which no plan is Local need neither.
	Init, Settle string
}

// CloneTasks returns a copy that shares nothing with the list.
func CloneTasks(tasks []Task) []Task {
	c := slices.Clone(tasks)
	for i := range c {
		c[i].In = slices.Clone(c[i].In)
		c[i].Out = slices.Clone(c[i].Out)
		c[i].After = slices.Clone(c[i].After)
		c[i].Factors = slices.Clone(c[i].Factors)
	}
	return c
}
