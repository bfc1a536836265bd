package transport

import "context"

// Stream is an ordered duplex of bytes between this rank and one peer, for one
// user: no tags, no credits, no goroutine. Bytes move only while somebody calls,
// and no call waits; [Streams.Park] does. So who waits for bytes takes them out of
// the wire itself, which saves the two changes of goroutine that a Receive costs.
//
// What is in flight is bounded by the memory of the stream (a ring that both
// processes map, or the buffers of a socket): a writer whose peer does not read
// is told that nothing fits. One goroutine at a time may use a stream.
//
// Errors are of the kinds of an [Endpoint], as *PeerError: ErrPeerLost,
// ErrPeerClosed after all that the peer had written was read, ErrClosed. After an
// error every call returns it.
type Stream interface {
	// Write takes as many bytes of p as fit now, and returns how many: 0 is no
	// error. They are on their way when Write returns.
	Write(p []byte) (n int, err error)
	// Read moves what has arrived into p, and returns how many bytes: 0 is no error.
	Read(p []byte) (n int, err error)
	// Peek returns bytes that have arrived, where they lie, as many as lie in one
	// piece: none is no error. They are valid until Release or Read.
	Peek() ([]byte, error)
	// Release drops the first n bytes of what Peek returned, and gives their
	// place back to the peer.
	Release(n int)
	// Room returns memory for the next bytes to the peer, where the peer will read
	// them: what is computed there is sent without a copy. It is empty where there is
	// no room now, and nil always where bytes must be copied (a socket).
	Room() []byte
	// Commit sends the first n bytes of what Room returned.
	Commit(n int) error
}

// BlockStream is a Stream over which bytes are copied in calls that have a price of their
// own, so that long ones are the better: a socket. What Peek returns is a copy too, so who
// has memory of its own reads to there.
type BlockStream interface {
	Stream
	// Block is how many bytes are best given to a Write or Read.
	Block() int
}

// BlockStreams are Streams some of which are BlockStreams, between whichever members
// of the group.
type BlockStreams interface {
	Streams
	// Block is the largest of all pairs of members, so that all have the same answer; 0
	// if there is none.
	Block() int
}

// Streams are a rank's streams with the members of one group.
type Streams interface {
	// To returns the stream with a peer, nil if there is none.
	To(peer int) Stream
	// Park waits until in has bytes to read or out has room to write (either may
	// be nil), a peer is lost, or ctx ends, whose cause it then returns. It may return
	// nil for nothing: look again. It spins for a few microseconds where a core
	// is to spare, and sleeps then.
	Park(ctx context.Context, in, out Stream) error
	// Stats returns what has crossed so far.
	Stats() Stats
	// Close says bye to the peers, and returns when nothing is left: no goroutine, no
	// file, no memory shared.
	Close() error
}
