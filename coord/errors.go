package coord

import (
	"errors"
	"fmt"
)

// NoRank stands where no rank is to blame.
const NoRank = -1

// Errors that callers tell apart with errors.Is.
var (
	// ErrRefused: the coordinator did not let this member join; the error says why.
	ErrRefused = errors.New("the coordinator refused")
	// ErrToken: the coordinator did not accept the token.
	ErrToken = errors.New("wrong token")
	// ErrLimit: a report is larger than MaxReport.
	ErrLimit = errors.New("limit exceeded")
	// ErrClosed: the session or server was closed on this side.
	ErrClosed = errors.New("closed")
)

// Kind says what kind of thing ended a generation.
type Kind uint8

// The kinds.
const (
	// Failed: a rank reported an error.
	Failed Kind = iota + 1
	// StreamLost: a rank's connection to the coordinator broke.
	StreamLost
	// ProcessExited: a rank's process ended before it was done.
	ProcessExited
	// Silent: a rank sent nothing for longer than the heartbeat limit.
	Silent
	// Missing: a rank did not join in time.
	Missing
	// Mismatch: the ranks' plans differ, or their calls. Trying again does not help.
	Mismatch
	// Stopped: the coordinator's owner ended the generation.
	Stopped
	// CoordinatorLost: the member lost the coordinator.
	CoordinatorLost
	// Overdue: a call of a group did not end by its deadline.
	Overdue
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Failed:
		return "failed"
	case StreamLost:
		return "stream lost"
	case ProcessExited:
		return "process exited"
	case Silent:
		return "silent"
	case Missing:
		return "missing"
	case Mismatch:
		return "mismatch"
	case Stopped:
		return "stopped"
	case CoordinatorLost:
		return "coordinator lost"
	case Overdue:
		return "overdue"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// AbortError says why a generation is over before all ranks were done. Every
// rank and the coordinator get the same one.
type AbortError struct {
	// Rank is the one it happened to, NoRank if it was none.
	Rank int
	Kind Kind
	// Text is a whole sentence that names the rank.
	Text string
	// Missing are the ranks that others waited for, ascending: lost, silent, or busy
	// with something else.
	Missing []Absent
	// Differ are the ranks that, in a Mismatch of calls, did not do what most did.
	Differ []int
}

// Error returns the sentence.
func (e *AbortError) Error() string { return e.Text }

// peerError is an error that may be the consequence of a peer's loss.
type peerError interface {
	error
	PeerRank() int
}

type blamed struct {
	err  error
	peer int
}

func (b *blamed) Error() string { return b.err.Error() }
func (b *blamed) Unwrap() error { return b.err }
func (b *blamed) PeerRank() int { return b.peer }

// Blame marks err as a possible consequence of the loss of rank peer. Session.Fail
// passes the mark on; the coordinator then waits up to PeerGrace for evidence at
// first hand before it believes that the rank which reported err is the cause.
// Any error in the chain with a method PeerRank() int has the same effect.
func Blame(peer int, err error) error { return &blamed{err: err, peer: peer} }

// Blamed returns which rank err blames, NoRank if none.
func Blamed(err error) int {
	if p, ok := errors.AsType[peerError](err); ok {
		return p.PeerRank()
	}
	return NoRank
}
