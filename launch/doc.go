// Package launch starts the ranks of a job as processes of this machine, watches
// them and starts all of them again when one dies; and it reads, in a rank's
// process, which place it has.
//
// # The contract
//
// A rank learns its place from four environment variables: GANGLINE_RANK,
// GANGLINE_WORLD_SIZE, GANGLINE_ADDRESS (host:port of the coordinator) and
// GANGLINE_TOKEN. FromEnv reads them, and what Slurm, Open MPI and torchrun-like
// launchers set. Run adds GANGLINE_ATTEMPT, the number of restarts so far, and
// GANGLINE_PARENT, which says that stdin is a lifeline: it reaches its end when
// the launcher is gone.
//
// # A life
//
// Run starts a coordinator and one process a rank. The first evidence that a
// rank is lost (its own error, an exit, a signal, silence) ends the generation
// on all ranks; the lifeline of who has not ended after half of Grace is cut, and who has
// not ended after Grace is killed. Then, if a restart can
// help, the next generation starts with a new token. A restart cannot help if
// the rank to blame ended with ExitRequest (the request was wrong), or if the
// ranks' plans differ.
//
// # Nobody is left behind
//
// Children die with their parent: on Linux by the parent-death signal; anywhere
// because the rank calls WatchParent, and because its session with the
// coordinator ends. Each child has a process group of its own, so a signal from
// the terminal reaches the launcher only, and a kill reaches what the child
// started. When Run returns there is no child, no goroutine and no descriptor.
package launch
