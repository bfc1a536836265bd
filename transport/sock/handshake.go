package sock

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/gangline/gangline/wire"
)

// refusal is a handshake that ended with a refuse, sent or received.
type refusal struct {
	reason wire.Reason
	text   string
	theirs uint32 // the generation of who refused, if the peer did
	final  bool   // dialing again cannot help
}

// Error implements error.
func (r *refusal) Error() string {
	if r.text == "" {
		return "refused: " + r.reason.String()
	}
	return fmt.Sprintf("refused: %v: %s", r.reason, r.text)
}

func newNonce() wire.Nonce {
	var n wire.Nonce
	_, _ = rand.Read(n[:]) // never fails: it ends the program instead
	return n
}

func writeFrame(c net.Conn, h wire.Header, payload []byte) error {
	h.Length = uint32(len(payload))
	buf := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	if err := h.Encode((*[wire.HeaderSize]byte)(buf)); err != nil {
		return err
	}
	_, err := c.Write(append(buf, payload...))
	return err
}

// readFrame reads one frame of the handshake; it reads not a byte beyond it.
func readFrame(c net.Conn) (wire.Header, []byte, error) {
	var buf [wire.HeaderSize]byte
	n, err := io.ReadFull(c, buf[:4])
	if err != nil {
		return wire.Header{}, nil, silence(err, n)
	}
	if binary.LittleEndian.Uint32(buf[:]) != wire.Magic { // a browser says little and then waits: do not wait for more
		_, err := wire.Decode(&buf)
		return wire.Header{}, nil, err
	}
	if n, err = io.ReadFull(c, buf[4:]); err != nil {
		return wire.Header{}, nil, silence(err, 4+n)
	}
	h, err := wire.Decode(&buf)
	if err != nil {
		return wire.Header{}, nil, err
	}
	if h.Length > wire.MaxControl {
		return wire.Header{}, nil, fmt.Errorf("%w: %v of %d bytes in the handshake", wire.ErrImpossible, h.Kind, h.Length)
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(c, payload); err != nil {
		return wire.Header{}, nil, silence(err, wire.HeaderSize)
	}
	return h, payload, nil
}

func silence(err error, n int) error {
	var t net.Error
	switch {
	case errors.As(err, &t) && t.Timeout():
		return fmt.Errorf("silent after %d bytes of the handshake: %w", n, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("hung up after %d bytes of the handshake: %w", n, err)
	}
	return err
}

// greet is the handshake of the rank that dials. c has a deadline.
func greet(c net.Conn, cfg Config, peer int) error {
	g := wire.Greeting{From: uint32(cfg.Rank), To: uint32(peer), World: uint32(cfg.World), Nonce: newNonce()}
	var hello [wire.GreetingSize]byte
	g.Encode(&hello)
	if err := writeFrame(c, wire.Header{Kind: wire.Hello, Generation: cfg.Generation}, hello[:]); err != nil {
		return err
	}
	answer, err := readWelcome(c, cfg, wire.NonceSize)
	if err != nil {
		return err
	}
	challenge := wire.Nonce(answer)
	proof := wire.Prove(cfg.Token, wire.Dialer, cfg.Generation, g, challenge)
	if err := writeFrame(c, wire.Header{Kind: wire.Hello, Generation: cfg.Generation}, proof[:]); err != nil {
		return err
	}
	if answer, err = readWelcome(c, cfg, wire.ProofSize); err != nil {
		return err
	}
	if !wire.Proof(answer).Equal(wire.Prove(cfg.Token, wire.Listener, cfg.Generation, g, challenge)) {
		return &refusal{reason: wire.ReasonToken, text: "it did not prove its token to us"}
	}
	return nil
}

// readWelcome reads a welcome of size bytes, or the refusal that came instead.
func readWelcome(c net.Conn, cfg Config, size int) ([]byte, error) {
	h, payload, err := readFrame(c)
	switch {
	case err != nil:
		return nil, err
	case h.Kind == wire.Refuse:
		r := &refusal{reason: wire.Reason(h.Arg), text: wire.CleanText(payload), theirs: h.Generation}
		// One that is still of an older generation may move on; a token or a
		// rank will not become right by asking again.
		r.final = r.reason != wire.ReasonGeneration && r.reason != wire.ReasonFrame || r.reason == wire.ReasonGeneration && h.Generation > cfg.Generation
		return nil, r
	case h.Kind != wire.Welcome || len(payload) != size || h.Generation != cfg.Generation:
		return nil, fmt.Errorf("%w: %v of %d bytes of generation %d, want a welcome of %d bytes", wire.ErrImpossible, h.Kind, len(payload), h.Generation, size)
	}
	return payload, nil
}

// errHungUp marks the end of one who greeted well and left before its proof: a rank
// of ours that failed meanwhile, rather than a stranger.
var errHungUp = errors.New("hung up")

// hungUp marks an error that says the other side closed the connection.
func hungUp(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w: %w", errHungUp, err)
		}
	}
	return err
}

// receive is the handshake of the rank that listens, up to the last welcome,
// which the caller sends once it has found a place for the rank. c has a
// deadline. A refusal is returned, not sent.
func receive(c net.Conn, cfg Config) (rank int, proof wire.Proof, err error) {
	h, payload, err := readFrame(c)
	if err != nil {
		return 0, proof, err
	}
	if h.Kind != wire.Hello {
		return 0, proof, &refusal{reason: wire.ReasonFrame, text: fmt.Sprintf("began with %v", h.Kind)}
	}
	if h.Generation != cfg.Generation {
		return 0, proof, &refusal{reason: wire.ReasonGeneration, text: fmt.Sprintf("it is of generation %d, this is %d", h.Generation, cfg.Generation)}
	}
	g, err := wire.DecodeGreeting(payload)
	if err != nil {
		return 0, proof, err
	}
	challenge := newNonce()
	if err := writeFrame(c, wire.Header{Kind: wire.Welcome, Generation: cfg.Generation}, challenge[:]); err != nil {
		return 0, proof, hungUp(err)
	}
	if h, payload, err = readFrame(c); err != nil {
		return 0, proof, hungUp(err)
	}
	if h.Kind != wire.Hello || len(payload) != wire.ProofSize || h.Generation != cfg.Generation {
		return 0, proof, &refusal{reason: wire.ReasonFrame, text: fmt.Sprintf("%v of %d bytes where a proof should be", h.Kind, len(payload))}
	}
	if !wire.Proof(payload).Equal(wire.Prove(cfg.Token, wire.Dialer, cfg.Generation, g, challenge)) {
		return 0, proof, &refusal{reason: wire.ReasonToken}
	}
	// What follows is said by one who knows the token.
	switch {
	case g.World != uint32(cfg.World):
		return 0, proof, &refusal{reason: wire.ReasonWorld, text: fmt.Sprintf("it counts %d ranks, rank %d counts %d", g.World, cfg.Rank, cfg.World)}
	case g.To != uint32(cfg.Rank):
		return 0, proof, &refusal{reason: wire.ReasonRank, text: fmt.Sprintf("rank %d wants rank %d, this is rank %d", g.From, g.To, cfg.Rank)}
	case g.From <= uint32(cfg.Rank) || g.From >= uint32(cfg.World):
		return 0, proof, &refusal{reason: wire.ReasonRank, text: fmt.Sprintf("rank %d does not dial rank %d of %d", g.From, cfg.Rank, cfg.World)}
	}
	return int(g.From), wire.Prove(cfg.Token, wire.Listener, cfg.Generation, g, challenge), nil
}

// refuse tells the other side why; that it may not read it is no matter.
func refuse(c net.Conn, cfg Config, why error) {
	r := new(refusal)
	if !errors.As(why, &r) {
		return // not one of us: nothing to say
	}
	h := wire.Header{Kind: wire.Refuse, Generation: cfg.Generation, Arg: uint32(r.reason)}
	_ = writeFrame(c, h, []byte(wire.RefusalText(r.text)))
}
