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
// A rank that dies or whose connection breaks is lost: everything that waits on
// it, and everything later, fails with [ErrPeerLost]. A rank that closes its
// endpoint says so first, and the others see [ErrPeerClosed] instead, after all
// messages it had sent.
//
// Bodies live side by side: mem (in one process, with faults, for virtual
// time), tcp and unix. One conformance suite, transporttest, runs on each.
package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Limits that every body keeps.
const (
	// MaxMessage bounds one message in bytes. Larger values are split by the
	// caller; a larger message fails with ErrLimit on both sides.
	MaxMessage = 1 << 30
	// MaxPosted bounds the receives posted at one time for one (sender, tag).
	// Post fails with ErrLimit above it.
	MaxPosted = 1024
	// MaxSends bounds the sends that wait at one time for one (receiver, tag).
	// Send fails with ErrLimit above it.
	MaxSends = 1024
	// MaxTags bounds the tags of one pair that have something posted or
	// waiting at one time. Post and Send fail with ErrLimit above it.
	MaxTags = 1 << 16
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrPeerLost: the peer's process died or its connection broke.
	ErrPeerLost = errors.New("peer lost")
	// ErrPeerClosed: the peer closed its endpoint in good order.
	ErrPeerClosed = errors.New("peer closed its endpoint")
	// ErrClosed: the endpoint was closed on this side.
	ErrClosed = errors.New("endpoint closed")
	// ErrLimit: a message is larger than the receiver allows.
	ErrLimit = errors.New("limit exceeded")
	// ErrCorrupt: a frame failed its checksum or has an impossible header.
	ErrCorrupt = errors.New("corrupt frame")
	// ErrNoPeer: the rank is this rank itself, none of this generation, or one
	// that this rank is not connected with.
	ErrNoPeer = errors.New("not a peer")
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

// Endpoint is one rank's connection with all others.
type Endpoint interface {
	// Alloc returns n zeroed bytes, aligned to 64, for values that cross: memory
	// that this body moves with the fewest copies. It lives as long as the
	// endpoint.
	Alloc(n int) []byte
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

// Ordinary is Alloc for bodies to which all memory is alike.
func Ordinary(n int) []byte {
	const align = 64
	mem := make([]byte, n+align-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % align)
	return mem[skip : skip+n : skip+n]
}
