// Package chaos tries the whole program from outside: its tests build the binary,
// run it as processes of this machine, and kill, pause, interrupt and mislead
// them. It holds tests only.
//
// What is demanded of a run, whatever happens to it:
//
//   - it ends by itself, with the right exit status and one message that names
//     the cause;
//   - nothing is left of it: no process, no socket, no file in the making;
//   - if it may go on (restart.max, --resume), its parameters end bit-identical
//     to those of a run that nothing happened to;
//   - if it goes on elsewhere, with more or fewer workers or by another strategy,
//     every row has still been used exactly once an epoch.
//
// The same is demanded of programs that make collectives with package gangline, on groups
// that overlap too, and of training jobs: when a rank is killed, stopped or cut off, every
// rank that lives has its error by its deadline, the error names the rank that was hit,
// and nothing is left. A rank that is slow, but not for as long as that, is waited for.
//
// GANGLINE_CHAOS_ROUNDS sets how many ranks TestCollectiveFaults hits (without it 24).
// GANGLINE_CHAOS_KILLS sets how many kills at random moments each test survives that
// kills so (without it, TestKilledAtRandomMoments 6 and TestEveryRowOnce 20), and
// GANGLINE_CHAOS_SEED repeats their choice. The moments themselves are those of real
// processes: a seed repeats what was tried, not what happened.
// GANGLINE_CHAOS_BUILD holds flags for the build of the program, such as -race.
package chaos
