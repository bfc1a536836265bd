// Package coord agrees on who is in a generation, starts it when all ranks have
// joined with equal plans, and spreads the first error to all of them.
//
// # Use
//
// One process calls NewServer, Serve and Wait. Every rank calls Join, which
// returns when the generation starts; works under Session.Context; calls Fail
// with its first error, or Done with its report; and calls Close at last.
//
//	s, err := coord.Join(ctx, coord.JoinConfig{Address: a, Token: t, Rank: 1, World: 4, Digest: d})
//	if err != nil { return err }
//	defer s.Close()
//	if err := work(s.Context(), s.Peers); err != nil { return s.Fail(err) }
//	return s.Done(ctx, report)
//
// A rank that cannot know its plan by itself, because only others read the data,
// joins with Follow instead of a digest: it plans by the note that rank 0 joined
// with. The generation starts when its digest, too, is known and equal.
//
// # What it promises
//
// A generation that cannot go on ends on every rank within a second of the
// evidence, with one sentence that names the rank it began with: an error, a
// broken connection, the exit of a process, silence over the heartbeat limit, a
// rank that never joined, plans that differ. No member of another generation
// gets in, provided that every generation has its own token.
//
// # Calls of groups
//
// Ranks that do things together, in groups, give Join a function that says where
// they stand, and report a call that is late, differs or lost a peer with
// FailCall. The coordinator then asks all ranks where they stand, waits for that
// as long as VerdictGrace at most, and gives one verdict to all: who never
// arrived at which call, where it is instead and how long it has been silent, or
// who does what where the others do something else. A rank that is done is told
// of, with where it stood, so that nobody waits for it.
//
// # Inside
//
// Package verdict finds the cause in what the ranks say. Core decides and is pure: scripts in testdata replay it with every sentence.
// Server and Session are thin shells around one gRPC stream a member. The
// server also offers the standard health service (open to everybody) and
// reflection (with the token). The token travels in clear text: put the
// coordinator on loopback or on a network you trust.
package coord
