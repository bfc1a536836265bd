package crew

import (
	"errors"
	"fmt"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport"
)

const (
	// VerdictWait is how long before its deadline a call gives up, so that the verdict
	// is there in time. The coordinator takes coord.VerdictGrace of it; the rest is for a
	// busy machine.
	VerdictWait = 1500 * time.Millisecond
	// VerdictLeast is how long the verdict is waited for in any case.
	VerdictLeast = 500 * time.Millisecond
	// VerdictEarly is how long before its deadline a rank that has no verdict speaks for
	// itself, so that it has returned by then.
	VerdictEarly = 100 * time.Millisecond
)

// Patience is how long a call waits that may take so long: it gives up VerdictWait
// before, or half way if that is less.
func Patience(within time.Duration) time.Duration {
	return within - min(VerdictWait, within/2)
}

// VerdictTime is how long a call that has given up waits for the verdict, if so much is
// left until its deadline: until VerdictEarly before that, and VerdictLeast in any case.
func VerdictTime(left time.Duration) time.Duration {
	return min(max(left-VerdictEarly, VerdictLeast), VerdictWait)
}

// KindOf is the kind of trouble that an error of a call is: Mismatch or Failed.
func KindOf(err error) coord.Kind {
	if _, differ := errors.AsType[*collective.MismatchError](err); differ {
		return coord.Mismatch
	}
	return coord.Failed
}

// Blame marks an error from which a peer was lost, so that the cause is looked for there.
func Blame(err error) error {
	if lost, ok := errors.AsType[*transport.PeerError](err); ok {
		return coord.Blame(lost.Peer, err)
	}
	return err
}

// Verdict reports a call in trouble and returns why the job is over: the same on all
// ranks, unless the coordinator does not answer within wait. Then it is what this rank
// knows by itself. t.Calls must be there.
func Verdict(s *coord.Session, cause error, t coord.Trouble, wait time.Duration) *coord.AbortError {
	err := s.FailCall(cause, t, wait)
	if abort, ok := errors.AsType[*coord.AbortError](err); ok {
		return abort
	}
	return alone(s, cause, t)
}

// Outside is Verdict for an error from outside of calls, which coord.Blame has marked: the
// loss of another rank may have caused it.
func Outside(s *coord.Session, cause error, wait time.Duration) *coord.AbortError {
	err := s.FailCall(cause, coord.Trouble{Kind: coord.Failed}, wait)
	if abort, ok := errors.AsType[*coord.AbortError](err); ok {
		return abort
	}
	a := &coord.AbortError{Rank: s.Rank(), Kind: coord.Failed, Text: fmt.Sprintf("rank %d failed: %v; the coordinator does not answer, silent for %v",
		s.Rank(), cause, s.Silence().Round(10*time.Millisecond))}
	if peer := coord.Blamed(cause); peer != coord.NoRank {
		a.Rank, a.Missing = peer, []coord.Absent{{Rank: peer, Text: "does not go on"}}
	}
	return charge(s, a)
}

// charge names rank 0 if that is where the coordinator is which does not answer.
func charge(s *coord.Session, a *coord.AbortError) *coord.AbortError {
	if !s.Led() {
		return a
	}
	if a.Rank != 0 {
		a.Rank = 0
		a.Missing = append([]coord.Absent{{Rank: 0, Silent: s.Silence(), Text: "coordinates, and does not answer"}}, a.Missing...)
	}
	a.Text += ": it is in rank 0"
	return a
}

// alone is the verdict where the coordinator does not answer.
func alone(s *coord.Session, cause error, t coord.Trouble) *coord.AbortError {
	a := &coord.AbortError{Rank: coord.NoRank, Kind: coord.Overdue}
	waits, call := "others", coord.Call{Group: t.Group}
	for _, c := range t.Calls {
		if c.Group != t.Group {
			continue
		}
		call = c
		if len(c.Waits) > 0 {
			a.Rank = c.Waits[0]
			waits = fmt.Sprintf("rank %d", a.Rank)
			a.Missing = []coord.Absent{{Rank: a.Rank, Silent: c.Since, Text: "does not go on"}}
		}
	}
	a.Text = fmt.Sprintf("call #%d of group %s (%s) cannot end (%v): rank %d waits for %s, and the coordinator does not answer, silent for %v",
		call.Sequence, call.Group, call.What, cause, s.Rank(), waits, s.Silence().Round(10*time.Millisecond))
	return charge(s, a)
}
