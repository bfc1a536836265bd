package gangline

import (
	"errors"
	"fmt"
	"time"

	"github.com/gangline/gangline/coord"
)

// What an *Error is about, for errors.Is.
var (
	// ErrOverdue: a call did not end by its deadline.
	ErrOverdue = errors.New("overdue")
	// ErrMismatch: ranks of a group do different things.
	ErrMismatch = errors.New("ranks do different things")
	// ErrLost: a rank was lost: its process ended, it is silent, or its connection broke.
	ErrLost = errors.New("rank lost")
	// ErrClosed: this rank has closed the group.
	ErrClosed = errors.New("group closed")
)

// Missing is a rank that others waited for in vain: Rank in the group of all, how
// long it has been Silent, and a Text that says where it stands instead.
type Missing = coord.Absent

// Error says why the job is over. Rank numbers are those of the group of all; the
// text, Missing and Differ are the same on every rank, unless the coordinator is lost.
type Error struct {
	// Rank is this one, Blamed the one that it began with, -1 if that is none.
	Rank, Blamed int
	// Missing are the ranks that others waited for, ascending.
	Missing []Missing
	// Differ are the ranks that did not do what most did.
	Differ []int
	// Text is the verdict.
	Text string

	kind  error
	cause error
	abort *coord.AbortError
}

// Error returns the verdict.
func (e *Error) Error() string { return "gangline: " + e.Text }

// Is reports whether the error is of one of the kinds above.
func (e *Error) Is(target error) bool { return e.kind != nil && target == e.kind }

// Unwrap returns what this rank ran into itself, if anything: the error of its ctx,
// for example; and the coordinator's verdict.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.abort}
	}
	return []error{e.abort, e.cause}
}

func newError(rank int, abort *coord.AbortError, cause error) *Error {
	e := &Error{Rank: rank, Blamed: abort.Rank, Missing: abort.Missing, Differ: abort.Differ, Text: abort.Text, cause: cause, abort: abort}
	switch abort.Kind {
	case coord.Overdue:
		e.kind = ErrOverdue
	case coord.Mismatch:
		e.kind = ErrMismatch
	case coord.StreamLost, coord.ProcessExited, coord.Silent, coord.Missing, coord.CoordinatorLost:
		e.kind = ErrLost
	case coord.Failed, coord.Stopped:
	}
	return e
}

// overdueError ends a call whose deadline comes.
type overdueError struct{ within time.Duration }

// Error implements error.
func (e *overdueError) Error() string {
	return fmt.Sprintf("not done within %v", e.within.Round(time.Millisecond))
}

// givenUpError ends a call whose ctx has ended.
type givenUpError struct{ cause error }

// Error implements error.
func (e *givenUpError) Error() string { return "the call was given up: " + e.cause.Error() }

// Unwrap returns the cause of the ctx.
func (e *givenUpError) Unwrap() error { return e.cause }

// departedError ends a call that misses a rank which is done.
type departedError struct{ rank int }

// Error implements error.
func (e *departedError) Error() string { return fmt.Sprintf("rank %d has closed its group", e.rank) }
