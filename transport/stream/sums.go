//go:build unix

package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gangline/gangline/transport"
)

// With checksums the bytes of a socket travel in blocks:
//
//	offset  bytes  field
//	     0      4  bytes of the block, at most sumsMost
//	     4      4  CRC-32C of all blocks so far, this one with it
//	     8      4  CRC-32C of the 8 bytes before
//	    12         the block
//
// A sum goes on from that of the block before, so one that is missing, doubled or out of
// place is found as well as one that is damaged; the head has a sum of its own, so that
// nobody waits for bytes of which a damaged length tells. Nothing is given to the reader
// before its block is proved.
const (
	sumsMost = 64 << 10
	sumsHead = 12
)

// sums are what a socket with checksums keeps.
type sums struct {
	table *crc32.Table
	// out is the block under way, with its head, of which gone bytes are with the
	// system. The last owed of them have not been taken from the writer's sight:
	// they are when all have gone, since this rank may not call again soon.
	out        []byte
	gone, owed int
	wrote      uint32
	// The socket's buffer holds a proved block, and after it, up to have, what came
	// after it.
	have int
	read uint32
}

// useSums proves all bytes that cross this socket. A block, all of it, is staged at a time.
func (s *socket) useSums() {
	s.sums = &sums{table: crc32.MakeTable(crc32.Castagnoli), out: make([]byte, 0, sumsHead+sumsMost)}
	s.buf = make([]byte, 2*(sumsHead+sumsMost))
}

// seal makes a block of p.
func (c *sums) seal(p []byte) {
	c.wrote = crc32.Update(c.wrote, c.table, p)
	c.out = binary.LittleEndian.AppendUint32(c.out[:0], uint32(len(p)))
	c.out = binary.LittleEndian.AppendUint32(c.out, c.wrote)
	c.out = binary.LittleEndian.AppendUint32(c.out, crc32.Checksum(c.out, c.table))
	c.out = append(c.out, p...)
	c.gone, c.owed = 0, len(p)
}

// writeSums is Write where there are checksums. What it did not take must be written
// next, unchanged.
func (s *socket) writeSums(p []byte) (int, error) {
	c := s.sums
	if c.owed == 0 {
		c.seal(p[:min(len(p), sumsMost)])
	}
	if c.gone < len(c.out) {
		k, err := again(func() (int, error) { return writeNow(s.sock, c.out[c.gone:]) })
		if err != nil && !wouldBlock(err) {
			s.ended(err)
			return 0, s.errorOf("write to", s.end)
		}
		if c.gone += k; c.gone < len(c.out) {
			return 0, nil
		}
	}
	n := min(len(p), c.owed)
	if at := len(c.out) - c.owed; !bytes.Equal(p[:n], c.out[at:at+n]) {
		return 0, s.fail("write to", errors.New("bytes that did not fit have changed before they were written again"))
	}
	c.owed -= n
	count(&s.sent, n)
	return n, nil
}

// fillSums stages the next block, if all of it has come; nothing is staged.
func (s *socket) fillSums() error {
	c := s.sums
	c.have = copy(s.buf, s.buf[s.to:c.have])
	s.from, s.to = 0, 0
	n, err := s.receive(s.buf[c.have:])
	if err != nil {
		return err
	}
	c.have += n
	s.prove()
	return s.err
}

// prove stages the next block, if all of it is in the buffer and nothing else is staged.
func (s *socket) prove() {
	c := s.sums
	if s.err != nil || s.from < s.to || c.have-s.to < sumsHead {
		return
	}
	head := s.buf[s.to : s.to+sumsHead]
	size, sum := int(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	if crc32.Checksum(head[:8], c.table) != binary.LittleEndian.Uint32(head[8:]) || size == 0 || size > sumsMost {
		s.damaged("the head of a block")
		return
	}
	from := s.to + sumsHead
	if c.have-from < size {
		return
	}
	if c.read = crc32.Update(c.read, c.table, s.buf[from:from+size]); c.read != sum {
		s.damaged(fmt.Sprintf("a block of %d bytes", size))
		return
	}
	s.from, s.to = from, from+size
}

// damaged ends the stream.
func (s *socket) damaged(what string) {
	_ = s.fail("read from", fmt.Errorf("%w: the checksum of %s, after %d bytes, is wrong: they changed on the way",
		transport.ErrCorrupt, what, s.received.Load())) // the next call returns it
}
