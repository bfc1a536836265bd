// Package transport moves bytes between ranks.
//
// One Endpoint connects a rank with all others of its generation. A message
// goes from one rank to another under a tag; messages of one (sender, tag)
// arrive in order, different tags are independent: a receiver that does not
// take one tag never delays another.
//
// Sends are rendezvous: a message leaves only when the receiver has posted a
// Receive for it (a credit), so nothing is ever buffered without limit and no
// proof of a plan rests on an endless mailbox. Whoever wants latency posts
// early.
//
// Bodies live side by side: mem (in one process, with faults, for virtual
// time), tcp and unix. One conformance suite, transporttest, runs on each.
package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxMessage bounds one message in bytes. Larger values are split by the caller.
const MaxMessage = 1 << 30

// Errors that callers tell apart with errors.Is.
var (
	// ErrPeerLost: the peer's process died or its connection broke.
	ErrPeerLost = errors.New("peer lost")
	// ErrClosed: the endpoint was closed on this side.
	ErrClosed = errors.New("endpoint closed")
	// ErrLimit: a message is larger than the receiver allows.
	ErrLimit = errors.New("limit exceeded")
	// ErrCorrupt: a frame failed its checksum or has an impossible header.
	ErrCorrupt = errors.New("corrupt frame")
)

// PeerError says which peer an operation failed with.
type PeerError struct {
	Rank int    // this rank
	Peer int    // the rank the error is about
	Op   string // send, receive, connect
	Tag  uint32
	Err  error
}

// Error implements error.
func (e *PeerError) Error() string {
	return fmt.Sprintf("rank %d: %s rank %d (tag %d): %v", e.Rank, e.Op, e.Peer, e.Tag, e.Err)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Receive is one posted receive. The caller owns it, sets the exported fields
// and may post it again after Wait returned: a warm Receive allocates nothing.
type Receive struct {
	Peer int
	Tag  uint32
	// Buf takes the message. If it is too small and Grow is set, Grow is asked
	// for memory of n bytes; without Grow, a longer message fails with ErrLimit
	// on both sides.
	Buf  []byte
	Grow func(n int) []byte

	// N is the length of the message, valid after Wait returned nil.
	N int

	done chan error
}

// Endpoint is one rank's connection with all others.
type Endpoint interface {
	// Post offers r to the next message of (r.Peer, r.Tag). It does not block.
	Post(r *Receive) error
	// Send gives head and body, as one message, to peer. It returns when both
	// may be reused. It waits until the peer has posted; ctx bounds the wait.
	Send(ctx context.Context, peer int, tag uint32, head, body []byte) error
	// Stats returns what has crossed so far.
	Stats() Stats
	// Close ends all waits with ErrClosed and returns when no goroutine is left.
	Close() error
}

// Stats counts traffic of one endpoint since it was made. Bytes are payload:
// head and body, without frames, credits and handshakes.
type Stats struct {
	BytesSent, BytesReceived       int64
	MessagesSent, MessagesReceived int64
	// LastHeard is, for each rank, when something last arrived from it.
	LastHeard []time.Time
}

// Wait blocks until the message is in r.Buf[:r.N], or the receive failed, or
// ctx ended. After an error of ctx the receive is still posted and must not be
// used again.
func (r *Receive) Wait(ctx context.Context) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return &PeerError{Rank: -1, Peer: r.Peer, Op: "receive from", Tag: r.Tag, Err: context.Cause(ctx)}
	}
}

// Arm readies r for posting; endpoints call it in Post.
func (r *Receive) Arm() {
	if r.done == nil {
		r.done = make(chan error, 1)
	}
	r.N = 0
}

// Complete ends r with n bytes or an error; endpoints call it once a Post.
func (r *Receive) Complete(n int, err error) {
	r.N = n
	r.done <- err
}
