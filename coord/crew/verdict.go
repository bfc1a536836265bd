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
)

// Patience is how long a call waits that may take so long: it gives up VerdictWait
// before, or half way if that is less.
func Patience(within time.Duration) time.Duration {
	return within - min(VerdictWait, within/2)
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
	if s.Led() && a.Rank != 0 {
		a.Rank = 0
		a.Missing = append([]coord.Absent{{Rank: 0, Silent: s.Silence(), Text: "coordinates, and does not answer"}}, a.Missing...)
	}
	a.Text = fmt.Sprintf("call #%d of group %s (%s) cannot end (%v): rank %d waits for %s, and the coordinator does not answer, silent for %v",
		call.Sequence, call.Group, call.What, cause, s.Rank(), waits, s.Silence().Round(10*time.Millisecond))
	if s.Led() {
		a.Text += ": it is in rank 0"
	}
	return a
}
