package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The handshake, in four frames, between the rank that dials and the one that
// listens. Both prove that they know the token, neither ever sends it, and the
// proofs hold for this connection only, since each side chose a nonce:
//
//	dials   hello    Greeting: from, to, world, nonce
//	listens welcome  its nonce
//	dials   hello    Proof as Dialer
//	listens welcome  Proof as Listener
//
// The dialer proves first, so a stranger that connects learns nothing it could
// try tokens against. In place of a welcome the listener may send refuse with a
// Reason and a text. All frames carry the generation.

// Sizes of the handshake's payloads in bytes.
const (
	NonceSize    = 32
	ProofSize    = sha256.Size
	GreetingSize = 12 + NonceSize
)

// Nonce is a random number used once.
type Nonce [NonceSize]byte

// Proof shows knowledge of the token.
type Proof [ProofSize]byte

// Greeting is the payload of the first hello.
type Greeting struct {
	From, To, World uint32 // ranks, and how many there are
	Nonce           Nonce
}

// Encode puts g into dst.
func (g Greeting) Encode(dst *[GreetingSize]byte) {
	le := binary.LittleEndian
	le.PutUint32(dst[0:], g.From)
	le.PutUint32(dst[4:], g.To)
	le.PutUint32(dst[8:], g.World)
	copy(dst[12:], g.Nonce[:])
}

// DecodeGreeting reads the payload of the first hello. Whether the ranks make
// sense is for the caller to say: every value of 44 bytes decodes.
func DecodeGreeting(src []byte) (Greeting, error) {
	if len(src) != GreetingSize {
		return Greeting{}, fmt.Errorf("%w: hello of %d bytes, want %d", ErrImpossible, len(src), GreetingSize)
	}
	le := binary.LittleEndian
	g := Greeting{From: le.Uint32(src[0:]), To: le.Uint32(src[4:]), World: le.Uint32(src[8:])}
	copy(g.Nonce[:], src[12:])
	return g, nil
}

// Side is which end of a connection a proof is for; a proof of one side is
// worthless for the other, so none can be sent back as one's own.
type Side string

// The two sides.
const (
	Dialer   Side = "gangline dialer"
	Listener Side = "gangline listener"
)

// Prove returns HMAC-SHA256 under token over all that both sides have said:
// side, generation, greeting and the listener's nonce.
func Prove(token string, side Side, generation uint32, g Greeting, challenge Nonce) Proof {
	var said [4 + GreetingSize + NonceSize]byte
	binary.LittleEndian.PutUint32(said[0:], generation)
	g.Encode((*[GreetingSize]byte)(said[4:]))
	copy(said[4+GreetingSize:], challenge[:])
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(side)) // a hash never fails to write
	mac.Write(said[:])
	return Proof(mac.Sum(nil))
}

// Equal compares two proofs in constant time.
func (p Proof) Equal(q Proof) bool { return hmac.Equal(p[:], q[:]) }

// Reason is why a handshake was refused, the Arg of a refuse.
type Reason uint32

// Reasons.
const (
	ReasonToken      Reason = iota + 1 // the proof is not of our token
	ReasonGeneration                   // the frame is of another generation
	ReasonWorld                        // another number of ranks
	ReasonRank                         // a rank that cannot call here
	ReasonDuplicate                    // the rank is connected already
	ReasonFrame                        // not what the handshake expects
)

// String returns r in words.
func (r Reason) String() string {
	switch r {
	case ReasonToken:
		return "the token does not match"
	case ReasonGeneration:
		return "another generation"
	case ReasonWorld:
		return "another number of ranks"
	case ReasonRank:
		return "no such rank here"
	case ReasonDuplicate:
		return "the rank is connected already"
	case ReasonFrame:
		return "not a handshake"
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// RefusalText returns text as the payload of a refuse: cut to MaxControl bytes
// at a letter's edge.
func RefusalText(text string) string {
	if len(text) <= MaxControl {
		return text
	}
	n := MaxControl
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// CleanText makes what a stranger sent fit to be shown: valid, one line, no
// control characters.
func CleanText(src []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(src), "?"))
}
