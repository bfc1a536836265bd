package stream

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/gangline/gangline/transport"
)

// The shared page of a pair, see the package's comment. Direction 0 and side 0
// are the lower rank's.
const (
	pageSize  = 4096
	tailAfter = 128 // head of the same direction
	sidesAt   = 512
	byeAfter  = 128 // sleeping of the same side
	perPair   = 256 // from direction to direction, from side to side
)

// What a sleeping rank waits for.
const (
	wantBytes uint32 = 1
	wantRoom  uint32 = 2
)

// side is what a rank tells its peer beside bytes.
type side struct {
	sleeping *atomic.Uint32 // wantBytes, wantRoom; 0 while awake
	bye      *atomic.Uint32 // 1 once it has closed in good order
}

// The memory belongs to no Go object, so there is nothing to keep alive; who unmaps
// it forgets these pointers first.
func word64(mem []byte, at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&mem[at])) }
func word32(mem []byte, at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&mem[at])) }

func sideOf(mem []byte, i int) side {
	at := sidesAt + i*perPair
	return side{sleeping: word32(mem, at), bye: word32(mem, at+byeAfter)}
}

// sender is the writing end of a ring. Its own count is kept here, so that what
// the peer does to the shared one is of no matter.
type sender struct {
	head, tail *atomic.Uint64
	data       []byte // a power of two long
	at         uint64 // bytes written so far
	seen       uint64 // of tail, at most len(data) behind at
}

// receiver is the reading end of a ring.
type receiver struct {
	head, tail *atomic.Uint64
	data       []byte
	at         uint64 // bytes read so far
	seen       uint64 // of head, at most len(data) before at
}

// mappedSize is the length of a mapping with two rings.
func mappedSize(ring int) int { return pageSize + 2*ring }

func sendingEnd(mem []byte, ring, direction int) sender {
	head, tail, data := direct(mem, ring, direction)
	return sender{head: head, tail: tail, data: data}
}

func receivingEnd(mem []byte, ring, direction int) receiver {
	head, tail, data := direct(mem, ring, direction)
	return receiver{head: head, tail: tail, data: data}
}

func direct(mem []byte, ring, direction int) (head, tail *atomic.Uint64, data []byte) {
	at, begin := direction*perPair, pageSize+direction*ring
	return word64(mem, at), word64(mem, at+tailAfter), mem[begin : begin+ring : begin+ring]
}

// refresh looks how far the peer has read.
func (s *sender) refresh() error {
	tail := s.tail.Load()
	if s.at-tail > s.at-s.seen {
		return fmt.Errorf("%w: shared memory: the peer read up to %d, before that to %d, of %d", transport.ErrCorrupt, tail, s.seen, s.at)
	}
	s.seen = tail
	return nil
}

// room is where the next bytes go, up to the ring's end.
func (s *sender) room() []byte {
	size := uint64(len(s.data))
	i := s.at & (size - 1)
	return s.data[i:min(size, i+size-(s.at-s.seen))]
}

// plenty reports whether there is no need to look how far the peer has read.
func (s *sender) plenty(n int) bool {
	return uint64(n) <= uint64(len(s.data))-(s.at-s.seen)
}

func (s *sender) commit(n int) {
	s.at += uint64(n)
	s.head.Store(s.at)
}

// full is a look without a change.
func (s *sender) full() bool { return s.at-s.tail.Load() == uint64(len(s.data)) }

// refresh looks how far the peer has written.
func (r *receiver) refresh() error {
	head := r.head.Load()
	if n := head - r.at; n > uint64(len(r.data)) || n < r.seen-r.at {
		return fmt.Errorf("%w: shared memory: the peer wrote up to %d, before that to %d, of which %d were read, in a ring of %d bytes",
			transport.ErrCorrupt, head, r.seen, r.at, len(r.data))
	}
	r.seen = head
	return nil
}

// view is what has arrived, up to the ring's end.
func (r *receiver) view() []byte {
	size := uint64(len(r.data))
	i := r.at & (size - 1)
	return r.data[i:min(size, i+r.seen-r.at)]
}

func (r *receiver) release(n int) {
	r.at += uint64(n)
	r.tail.Store(r.at)
}

// empty is a look without a change.
func (r *receiver) empty() bool { return r.at == r.head.Load() }
