// Package portion hands out many small portions of the data to workers: a pure
// machine. Step takes the time and an event, and returns actions with a sentence
// that says why.
//
// It is the load balancing of Sandblaster (Dean et al., "Large Scale Distributed
// Deep Networks", NIPS 2012, section 4.2): "The coordinator assigns each of the N
// model replicas a small portion of work, much smaller than 1/Nth of the total size
// of a batch, and assigns replicas new portions whenever they are free. With this
// approach, faster model replicas do more work than slower replicas. To further
// manage slow model replicas at the end of a batch, the coordinator schedules
// multiple copies of the outstanding portions and uses the result from whichever
// model replica finishes first."
//
// # Rounds, portions, leases
//
// A round is one pass over the data, as an evaluation of a loss and its gradient
// is. Its portions count from 0. To give a portion to a worker is a lease; it ends
// when the worker answers, or is lost. A round is over when every portion has been
// answered; the first answer counts, and the losses and weights of those that count
// are added up in the order of the portions, whoever computed them and when.
//
// A portion that nobody works on any more, because its worker was lost or is past
// the deadline, is given out before the others. A worker that is past the deadline
// may still answer, and counts if it is the first.
//
// Every lease is accounted for: given = counted + late + gone + open.
//
// # What a worker does
//
// It asks, computes the portion that it is given, brings the gradient to the
// servers (package ps/vector, where too the first that comes counts), and says Done
// only when all of them have it. So when a round is over the gradient is complete.
// Two workers that compute the same portion must compute the same numbers, as each
// server may have taken that of another.
package portion
