// Package simtest trains on a simulated cluster: the production cores on one
// thread, in virtual time, from a seed, with faults. It is a test and a
// document: who wants to know how the parts of a run play together reads it in
// this order.
//
//	scenario_test.go  what a seed draws: cluster, model, network, faults
//	way_test.go       of the ways to train, the one that it draws
//	clock_test.go     one queue of events, ordered by time, then by sequence
//	network_test.go   delays, reordering, clogs; frames and the fence of generations
//	control_test.go   a generation: coord.Core, joining, heartbeats, death, restart
//	member_test.go    a process: what it hears, how it fails
//	worker_test.go    plan.Cursor, what the tasks do, the loop with its boundaries
//	deck_test.go      a plan of the program: its tasks with their memory
//	add_test.go       sums on one worker
//	group_test.go     collectives in float64, and the commit
//	port_test.go      collectives of the production code, which block
//	link_test.go      a worker's side of a store
//	store_test.go     a server: ps.Shard behind the network
//	holder_test.go    what of the state a worker holds, whole or a slice
//	save_test.go      a checkpoint, of one worker, of all, or of stores
//	disk_test.go      checkpoints that appear whole or not at all
//	ledger_test.go    what may be seen only once: the invariants on state
//	cluster_test.go   one scenario from start to end, the invariants at the end
//
// docs/simulation.md tells what is simulated, what is not, and how to run it.
package simtest
