package ps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// The wire form is described, byte by byte, in docs/format/ps.md; the test of
// that page reads these numbers from it.
const (
	requestMagic = 0x31515047 // "GPQ1"
	replyMagic   = 0x31525047 // "GPR1"

	requestHead = 48
	partHead    = 24
	replyHead   = 32

	// nameMax bounds the name of a snapshot, tailMax the text, JSON or receipt
	// of a reply; replyRoom is what a client keeps ready for a reply.
	nameMax   = 1 << 12
	tailMax   = transport.MaxMessage - replyHead
	replyRoom = 1 << 10
)

// errMalformed is wrapped by everything that decoding refuses.
var errMalformed = errors.New("malformed message")

// Tags: above those of plans (below 1<<24), four for each store.
const (
	tagBase      = 1 << 24
	tagRequest   = 0 // worker to server
	tagData      = 1 // worker to server: the data of a push
	tagReply     = 2 // server to worker
	tagReplyData = 3 // server to worker: the data of a pull

	// storesMax keeps the tags of all stores below 1<<25.
	storesMax = 1 << 22
)

// tag returns one of a store's four tags.
func tag(store, kind int) uint32 { return uint32(tagBase | store<<2 | kind) }

// requestKind is the kind of a request on the wire.
type requestKind uint8

const (
	requestPush requestKind = iota + 1
	requestPull
	requestFlush
	requestSnapshot
	requestStats
	requestBye
	requestKinds
)

func (k requestKind) String() string {
	names := [...]string{"request(0)", "push", "pull", "flush", "snapshot", "stats", "bye"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("request(%d)", uint8(k))
}

// wirePart describes one state of a request.
type wirePart struct {
	state int
	table bool
	dtype tensor.DType
	// a and b are the range of a dense state; for a table the number of keys
	// and the dim.
	a, b int
}

// dataBytes is how long the part's data message is; 0 means that none is sent.
func (p *wirePart) dataBytes() int {
	if p.table {
		return p.a * p.b * p.dtype.Size()
	}
	return (p.b - p.a) * p.dtype.Size()
}

// request is a request without its data. Decoded, keys are the raw keys of all
// table parts in order and share the message's memory.
type request struct {
	kind    requestKind
	seq     uint64
	step    int64
	verdict Verdict
	name    string
	parts   []wirePart
	keys    []byte
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// appendRequest appends everything of a request but its keys.
func appendRequest(b []byte, q *request) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, requestMagic)
	b = append(b, byte(q.kind), bit(q.verdict.Given))
	b = le.AppendUint16(b, uint16(len(q.parts)))
	b = le.AppendUint64(b, q.seq)
	b = le.AppendUint64(b, uint64(q.step))
	b = le.AppendUint64(b, uint64(q.verdict.Step))
	b = le.AppendUint64(b, math.Float64bits(q.verdict.Weight))
	b = le.AppendUint32(b, uint32(len(q.name)))
	b = le.AppendUint32(b, 0)
	for _, p := range q.parts {
		b = le.AppendUint32(b, uint32(p.state))
		b = append(b, bit(p.table), byte(p.dtype), 0, 0)
		b = le.AppendUint64(b, uint64(p.a))
		b = le.AppendUint64(b, uint64(p.b))
	}
	return append(b, q.name...)
}

// decodeRequest reads a request into q, whose memory it reuses. It allocates
// no more than the message is long.
func decodeRequest(b []byte, q *request) error {
	le := binary.LittleEndian
	if len(b) < requestHead || le.Uint32(b) != requestMagic {
		return fmt.Errorf("%w: %d bytes that are no request", errMalformed, len(b))
	}
	flags, parts, name := b[5], int(le.Uint16(b[6:])), int(le.Uint32(b[40:]))
	*q = request{kind: requestKind(b[4]), seq: le.Uint64(b[8:]), step: int64(le.Uint64(b[16:])), parts: q.parts[:0]}
	q.verdict = Verdict{Given: flags&1 != 0, Step: int64(le.Uint64(b[24:])), Weight: math.Float64frombits(le.Uint64(b[32:]))}
	switch {
	case q.kind == 0 || q.kind >= requestKinds:
		return fmt.Errorf("%w: request of kind %d", errMalformed, b[4])
	case flags > 1 || le.Uint32(b[44:]) != 0:
		return fmt.Errorf("%w: unknown flags in a %v", errMalformed, q.kind)
	case name > nameMax || parts > statesMax || requestHead+parts*partHead+name > len(b):
		return fmt.Errorf("%w: a %v of %d bytes with %d parts and a name of %d", errMalformed, q.kind, len(b), parts, name)
	case (parts > 0) != (q.kind == requestPush || q.kind == requestPull):
		return fmt.Errorf("%w: a %v with %d parts", errMalformed, q.kind, parts)
	}
	b = b[requestHead:]
	q.parts = slices.Grow(q.parts, parts)
	keys := 0
	for range parts {
		p, err := decodePart(b)
		if err != nil {
			return err
		}
		if p.table {
			keys += p.a
		}
		q.parts = append(q.parts, p)
		b = b[partHead:]
	}
	q.name, q.keys = string(b[:name]), b[name:]
	if len(q.keys) != 8*keys {
		return fmt.Errorf("%w: a %v with %d bytes of keys, its parts have %d keys", errMalformed, q.kind, len(q.keys), keys)
	}
	return nil
}

// decodePart reads a part. Ranges and sizes are bounded so that no product of
// them overflows; whether they fit the store is for the machine to say.
func decodePart(b []byte) (wirePart, error) {
	le := binary.LittleEndian
	lo, hi := le.Uint64(b[8:]), le.Uint64(b[16:])
	p := wirePart{state: int(le.Uint32(b)), table: b[4] == 1, dtype: tensor.DType(b[5]), a: int(lo), b: int(hi)}
	switch {
	case b[4] > 1 || b[6] != 0 || b[7] != 0 || !p.dtype.IsFloat():
		return p, fmt.Errorf("%w: part of state %d has kind %d, dtype %d", errMalformed, p.state, b[4], b[5])
	case p.table && (lo > 1<<31 || hi < 1 || hi > dimMax):
		return p, fmt.Errorf("%w: part of state %d has %d keys of dim %d", errMalformed, p.state, lo, hi)
	case !p.table && (lo >= hi || hi > 1<<48):
		return p, fmt.Errorf("%w: part of state %d has range [%d, %d)", errMalformed, p.state, lo, hi)
	}
	return p, nil
}

// reply is the answer to a request, without the data of a pull.
type reply struct {
	kind    requestKind
	status  Status
	seq     uint64
	version int64
	tail    []byte // an error's text, statistics, a snapshot's receipt
}

// appendReply appends everything of a reply but its tail.
func appendReply(b []byte, r *reply) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, replyMagic)
	b = append(b, byte(r.kind), byte(r.status), 0, 0)
	b = le.AppendUint64(b, r.seq)
	b = le.AppendUint64(b, uint64(r.version))
	return le.AppendUint64(b, uint64(len(r.tail)))
}

// decodeReply reads a reply; its tail shares the message's memory.
func decodeReply(b []byte, r *reply) error {
	le := binary.LittleEndian
	if len(b) < replyHead || le.Uint32(b) != replyMagic {
		return fmt.Errorf("%w: %d bytes that are no reply", errMalformed, len(b))
	}
	*r = reply{
		kind: requestKind(b[4]), status: Status(b[5]), seq: le.Uint64(b[8:]), version: int64(le.Uint64(b[16:])),
		tail: b[replyHead:],
	}
	if r.kind == 0 || r.kind >= requestKinds || r.status > Refused || b[6] != 0 || b[7] != 0 || le.Uint64(b[24:]) != uint64(len(r.tail)) {
		return fmt.Errorf("%w: reply of kind %d, status %d, %d bytes after its head", errMalformed, b[4], b[5], len(r.tail))
	}
	return nil
}
