package cache

import (
	"container/list"
	"sync"

	"github.com/gangline/gangline/data/rows"
)

// Pool keeps the blocks of a file that were used last, up to a number of bytes. It is
// safe for concurrent use; a block that several ask for at once is read once.
type Pool struct {
	f     *File
	limit int64

	mu    sync.Mutex
	held  int64
	peak  int64
	reads int
	order *list.List // of *slot, the last used first
	slots map[int]*slot
	bufs  sync.Pool
	spare []*rows.Block // of evicted blocks: their memory is used again
}

// spareMax is how many evicted blocks are kept for their memory.
const spareMax = 2

// slot is a block that is there, or on its way.
type slot struct {
	block int
	ready chan struct{} // closed when data or err is there
	data  *rows.Block
	err   error
	at    *list.Element
	users int // Gets without a Put
}

// NewPool keeps at most limit bytes of decoded blocks, or those that are in use if that
// is more.
func NewPool(f *File, limit int64) *Pool {
	p := &Pool{f: f, limit: limit, order: list.New(), slots: map[int]*slot{}}
	p.bufs.New = func() any { return new([]byte) }
	return p
}

// Get returns a block, which nobody may change, and which stays until Put.
func (p *Pool) Get(i int) (*rows.Block, error) {
	p.mu.Lock()
	s := p.slots[i]
	if s == nil {
		s = &slot{block: i, ready: make(chan struct{})}
		p.slots[i] = s
		s.at = p.order.PushFront(s)
		s.users++
		into := new(rows.Block)
		if n := len(p.spare); n > 0 {
			into, p.spare = p.spare[n-1], p.spare[:n-1]
		}
		p.mu.Unlock()
		p.read(s, into)
		return s.data, s.err
	}
	p.order.MoveToFront(s.at)
	s.users++
	p.mu.Unlock()
	<-s.ready // by another caller of Get, which is reading it
	return s.data, s.err
}

// Put says that a block which Get returned is not used any more.
func (p *Pool) Put(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[i]; s != nil {
		s.users--
		p.evict()
	}
}

// evict drops blocks that nobody uses until the rest is within the limit.
func (p *Pool) evict() {
	for e := p.order.Back(); e != nil && p.held > p.limit; {
		s := e.Value.(*slot)
		e = e.Prev()
		if s.users > 0 {
			continue
		}
		p.held -= s.data.Bytes()
		p.order.Remove(s.at)
		delete(p.slots, s.block)
		if len(p.spare) < spareMax {
			p.spare = append(p.spare, s.data)
		}
	}
}

// read fills a slot and makes room for it.
func (p *Pool) read(s *slot, into *rows.Block) {
	buf := p.bufs.Get().(*[]byte)
	err := p.f.read(s.block, buf, into)
	p.bufs.Put(buf)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(s.ready)
	p.reads++
	if s.err = err; err != nil {
		p.order.Remove(s.at)
		delete(p.slots, s.block)
		return
	}
	s.data = into
	p.held += into.Bytes()
	p.evict()
	p.peak = max(p.peak, p.held)
}

// Stats returns the bytes held at most so far, and how many blocks were read.
func (p *Pool) Stats() (peak int64, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak, p.reads
}
