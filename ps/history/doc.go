// Package history judges recorded runs of a job with parameter servers, as
// checkers of histories judge databases: it takes what workers and shards wrote
// down, and finds the first thing that the consistency model of the job forbids.
// It knows the invariants (docs/adr/0013-consistency.md) and not the machine that
// keeps them (package gate): from the records of what came in it works out anew
// what every shard had to do.
//
// # Records
//
// Each worker and each shard is a writer. It writes in the order of what it did;
// between writers no order is needed, so records of several processes need only
// be put together. What one says is held against what others say: a shard that
// lies about its clocks or versions is found by its own earlier records, one that
// loses a push by what the worker was told, and a worker that says it read a newer
// version than it did by its own reads.
package history
