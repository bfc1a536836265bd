// Package gate decides under each consistency model what happens with every push
// and every read of parameters on a shard: which push is applied, dropped or
// pending, and which read is answered when. It knows no data, and is pure: Step
// takes the time and an event, and returns what to do and why. There is no
// goroutine, clock, socket or lock inside. The words are those of package
// consistency; the rules, each as one sentence, and what was refused, are in
// docs/adr/0013-consistency.md.
//
// # How a shard and its server use it
//
// A worker pushes every clock to every shard, to those that hold nothing it
// touched too: a push without data still closes the clock there. The server
// gives the gate an Event for each request, keeps data when told so (ActionKeep)
// and uses or forgets it when told so (ActionApply, ActionSkip, ActionDrop). Each
// request gets one answer, now or in a later Step: ActionReply, ActionServe or
// ActionRefuse, with the request's own number.
//
// Under asp and ssp each shard decides by itself, when a clock closes.
//
// Under bsp and quorum the lead, shard 0, decides for all, so that each version
// is of the same workers everywhere:
//
//  1. The worker pushes to every shard, and waits until all have closed the clock.
//  2. It says EventReady to the lead, with the least of the versions that it had
//     read. It is answered at once. (With one shard, closing is being ready.)
//  3. It reads for its next clock, first from the lead, which answers when it has
//     decided about the worker's contribution, and says its last verdict and its
//     version.
//  4. It gives that verdict to the other shards before it reads from them
//     (EventVerdict), and asks them for that version at least (Event.Version).
//
// No shard is ever ahead of the lead, and none is more than one version behind
// what a worker reads, because each version was made by somebody who had read
// the one before it from all shards.
//
// Before EventEnd every shard gets the lead's last verdict (Gate.Verdict), or what
// the lead has applied would expire there.
//
// A worker whose process was replaced, or who was declared lost and is not, comes
// back with EventJoined on every shard, with one clock for all: the greatest that
// any shard has, or more. What it had not finished is expired by then.
package gate
