// Package wire is the form of what crosses between ranks: frames of a fixed
// header and a payload, and what the handshake says.
//
// A header is 32 bytes, numbers are little endian:
//
//	offset  bytes  field
//	     0      4  magic: the letters GNGL
//	     4      1  version
//	     5      1  kind
//	     6      2  flags
//	     8      4  generation
//	    12      4  tag: data, credit, refuse
//	    16      4  length of the payload that follows
//	    20      4  CRC-32C of the payload, with FlagChecksum; else 0
//	    24      4  arg: credit, refuse
//	    28      4  CRC-32C of bytes 0 to 27
//
// What a header may say is narrow (see [Header.Check]), so that every header
// that decodes is one that Encode could have made, bit for bit. The checksum of
// the header is always there: a length that was damaged on its way would
// otherwise take the rest of the stream for payload.
//
// The package is pure: no sockets, no clock, no goroutines, and nothing here
// allocates but errors and the refusal's text.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Constants of the format.
const (
	// Magic begins every frame: GNGL.
	Magic uint32 = 'G' | 'N'<<8 | 'G'<<16 | 'L'<<24
	// Version is the only version this build speaks.
	Version = 1
	// HeaderSize is the length of a header in bytes.
	HeaderSize = 32
	// MaxLength bounds the payload of a data frame in bytes.
	MaxLength = 1 << 30
	// MaxControl bounds the payload of a hello, welcome or refuse in bytes.
	MaxControl = 256
)

// Kind says what a frame is.
type Kind uint8

// Kinds of frames.
const (
	Data    Kind = iota + 1 // a message of Tag
	Credit                  // the receiver has posted for Tag and takes Arg bytes
	Hello                   // handshake: from the rank that dials
	Welcome                 // handshake: from the rank that listens
	Refuse                  // handshake: no, Arg is the Reason; later: Arg bytes were too many for Tag
	Bye                     // the sender closes in good order
	Ping                    // the sender lives
)

// String returns the name of k.
func (k Kind) String() string {
	switch k {
	case Data:
		return "data"
	case Credit:
		return "credit"
	case Hello:
		return "hello"
	case Welcome:
		return "welcome"
	case Refuse:
		return "refuse"
	case Bye:
		return "bye"
	case Ping:
		return "ping"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// maxLength is how long the payload of k may be, in bytes.
func (k Kind) maxLength() uint32 {
	switch k {
	case Data:
		return MaxLength
	case Hello, Welcome, Refuse:
		return MaxControl
	case Credit, Bye, Ping:
		return 0
	}
	return 0
}

// Flags change the meaning of a frame.
type Flags uint16

// FlagChecksum says that the header's Checksum is that of the payload.
const FlagChecksum Flags = 1

// Header is what precedes a payload.
type Header struct {
	Kind       Kind
	Flags      Flags
	Generation uint32
	Tag        uint32 // data, credit and refuse; else 0
	Length     uint32 // of the payload, in bytes
	Checksum   uint32 // of the payload, with FlagChecksum; else 0
	Arg        uint32 // credit: bytes of room; refuse: see Refuse; else 0
}

// Errors of Encode and Decode that callers tell apart with errors.Is.
var (
	// ErrStranger: the bytes are not a frame at all.
	ErrStranger = errors.New("not a gangline peer")
	// ErrVersion: the frame is of another version of the format.
	ErrVersion = errors.New("another version of gangline")
	// ErrChecksum: the frame was damaged on its way.
	ErrChecksum = errors.New("checksum does not match")
	// ErrImpossible: the frame says what no frame may say.
	ErrImpossible = errors.New("impossible header")
)

// Check says whether h may be sent: a known kind and flags, a length within
// the kind's limit, and no field set that the kind does not use.
func (h Header) Check() error {
	switch {
	case h.Kind < Data || h.Kind > Ping:
		return fmt.Errorf("%w: %v is unknown", ErrImpossible, h.Kind)
	case h.Flags&^FlagChecksum != 0:
		return fmt.Errorf("%w: flags %#x are unknown", ErrImpossible, uint16(h.Flags))
	case h.Length > h.Kind.maxLength():
		return fmt.Errorf("%w: %v of %d bytes, the limit is %d", ErrImpossible, h.Kind, h.Length, h.Kind.maxLength())
	case h.Flags&FlagChecksum != 0 && h.Kind.maxLength() == 0:
		return fmt.Errorf("%w: %v has no payload to check", ErrImpossible, h.Kind)
	case h.Flags&FlagChecksum == 0 && h.Checksum != 0:
		return fmt.Errorf("%w: checksum %#x without its flag", ErrImpossible, h.Checksum)
	case h.Tag != 0 && h.Kind != Data && h.Kind != Credit && h.Kind != Refuse:
		return fmt.Errorf("%w: %v with tag %d", ErrImpossible, h.Kind, h.Tag)
	case h.Arg != 0 && h.Kind != Credit && h.Kind != Refuse:
		return fmt.Errorf("%w: %v with argument %d", ErrImpossible, h.Kind, h.Arg)
	case h.Kind == Credit && h.Arg > MaxLength:
		return fmt.Errorf("%w: credit for %d bytes, the limit is %d", ErrImpossible, h.Arg, MaxLength)
	}
	return nil
}

// Encode puts h into dst. It fails with ErrImpossible on a header that Check
// refuses. It costs about 30 ns and allocates nothing.
func (h Header) Encode(dst *[HeaderSize]byte) error {
	if err := h.Check(); err != nil {
		return fmt.Errorf("encode %v: %w", h.Kind, err)
	}
	le := binary.LittleEndian
	le.PutUint32(dst[0:], Magic)
	dst[4] = Version
	dst[5] = byte(h.Kind)
	le.PutUint16(dst[6:], uint16(h.Flags))
	le.PutUint32(dst[8:], h.Generation)
	le.PutUint32(dst[12:], h.Tag)
	le.PutUint32(dst[16:], h.Length)
	le.PutUint32(dst[20:], h.Checksum)
	le.PutUint32(dst[24:], h.Arg)
	le.PutUint32(dst[28:], Sum(0, dst[:28]))
	return nil
}

// Decode reads a header. The error names what is wrong, in this order: the
// magic (ErrStranger), the version (ErrVersion), the header's checksum
// (ErrChecksum), then what Check finds (ErrImpossible).
func Decode(src *[HeaderSize]byte) (Header, error) {
	le := binary.LittleEndian
	if m := le.Uint32(src[0:]); m != Magic {
		return Header{}, fmt.Errorf("%w: begins with %q", ErrStranger, src[:4])
	}
	if src[4] != Version {
		return Header{}, fmt.Errorf("%w: frames of version %d, this is version %d", ErrVersion, src[4], Version)
	}
	if got, want := Sum(0, src[:28]), le.Uint32(src[28:]); got != want {
		return Header{}, fmt.Errorf("header: %w: %#08x, the header says %#08x", ErrChecksum, got, want)
	}
	h := Header{
		Kind:       Kind(src[5]),
		Flags:      Flags(le.Uint16(src[6:])),
		Generation: le.Uint32(src[8:]),
		Tag:        le.Uint32(src[12:]),
		Length:     le.Uint32(src[16:]),
		Checksum:   le.Uint32(src[20:]),
		Arg:        le.Uint32(src[24:]),
	}
	if err := h.Check(); err != nil {
		return Header{}, fmt.Errorf("decode: %w", err)
	}
	return h, nil
}

// CheckPayload compares the sum of a payload, as [Sum] made it over all its
// parts, with what h says. Without FlagChecksum it accepts anything.
func (h Header) CheckPayload(sum uint32) error {
	if h.Flags&FlagChecksum != 0 && h.Checksum != sum {
		return fmt.Errorf("payload of %d bytes: %w: %#08x, the header says %#08x", h.Length, ErrChecksum, sum, h.Checksum)
	}
	return nil
}

// Sum returns the CRC-32C of p appended to what sum is the CRC-32C of; begin
// with 0. It runs at memory speed where the processor has the instruction.
func Sum(sum uint32, p []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p) // the table is made once
}
