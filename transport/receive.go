package transport

import "context"

// Receive is one posted receive. The caller owns it, sets the exported fields
// and may post it again after Wait returned: a warm Receive allocates nothing.
type Receive struct {
	Peer int
	Tag  uint32
	// Buf takes the message. If it is too small and Grow is set, Grow is asked
	// for memory of n bytes; without Grow, a longer message fails with ErrLimit
	// on both sides. If what Grow returns is shorter still, the receive alone
	// fails with ErrLimit and the message is dropped.
	Buf  []byte
	Grow func(n int) []byte

	// N is the length of the message, valid after Wait returned nil.
	N int

	rank   int
	posted bool
	done   chan error
}

// Wait blocks until the message is in r.Buf[:r.N], or the receive failed, or
// ctx ended. A message that is there already wins over a ctx that has ended.
// After an error of ctx the receive is still posted and must not be used again.
func (r *Receive) Wait(ctx context.Context) error {
	select {
	case err := <-r.done:
		r.posted = false
		return err
	default:
	}
	select {
	case err := <-r.done:
		r.posted = false
		return err
	case <-ctx.Done():
		return &PeerError{Rank: r.rank, Peer: r.Peer, Op: "receive from", Tag: r.Tag, Err: context.Cause(ctx)}
	}
}

// poll reports whether r has ended, and how, without waiting.
func (r *Receive) poll() (ended bool, err error) {
	select {
	case err = <-r.done:
		r.posted = false
		return true, err
	default:
		return false, nil
	}
}

// Arm readies r for posting by rank; endpoints call it in Post once nothing
// can refuse the receive any more. It panics if r is posted already.
func (r *Receive) Arm(rank int) {
	if r.posted {
		panic("transport: receive posted again before Wait returned its message")
	}
	if r.done == nil {
		r.done = make(chan error, 1)
	}
	r.rank, r.posted, r.N = rank, true, 0
}

// Complete ends r with n bytes or an error; endpoints call it once a Post.
func (r *Receive) Complete(n int, err error) {
	r.N = n
	r.done <- err
}

// Room returns how long a message r can take, in bytes.
func (r *Receive) Room() int {
	if r.Grow != nil {
		return MaxMessage
	}
	return min(len(r.Buf), MaxMessage)
}

// Fit makes r.Buf at least n bytes long, by Grow if need be, and reports
// whether it is.
func (r *Receive) Fit(n int) bool {
	if len(r.Buf) < n && r.Grow != nil {
		r.Buf = r.Grow(n)
	}
	return len(r.Buf) >= n
}
