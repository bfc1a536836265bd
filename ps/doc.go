// Package ps holds parameters on servers: a pure shard machine, a thin server
// around it, and the client that a worker's plan pushes to and pulls from.
//
// # The protocol, synchronous
//
// A store is one shard of the parameters: ranges of dense states and those
// rows of tables whose ids hash to it (StoreOf). Version t of a store is its
// state before step t. A step goes through two phases:
//
//  1. Every worker pushes its gradient sums of step t to every store. The
//     store holds them apart, says "stored", and changes nothing.
//  2. The workers agree among themselves (plan.Commit) on the total weight of
//     step t; 0 means that the step changes nothing anywhere. This verdict
//     rides on whatever requests a worker sends next. The first verdict that
//     reaches a store applies the step there: contributions are summed in the
//     order of the workers' ranks, the rule divides by the weight, and the
//     version becomes t+1. Later verdicts on the step must agree.
//
// No store can apply a step that did not commit, and none can miss one that
// did: the verdict exists only after every store has acknowledged every
// contribution. A pull for step t+1 is answered from version t+1 and no other,
// so nothing is ever stale. A run ends with Flush, which carries the last
// verdict to every store.
//
// # Parts
//
// Shard is the machine: Step takes the time and an event, and returns actions
// with a sentence that says why. It imports no clock, no socket, no lock.
// Server receives, locks, steps, replies. Client is the worker's side. The
// bytes on the wire, and how many a step costs, are in docs/format/ps.md.
//
// Everything counted is a contribution: what one worker gives to one state for
// one step. Always pushed = applied + dropped + pending, and dropped = late +
// expired + skipped.
package ps
