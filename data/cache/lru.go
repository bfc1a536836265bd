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
}

// slot is a block that is there, or on its way.
type slot struct {
	block int
	ready chan struct{} // closed when data or err is there
	data  *rows.Block
	err   error
	at    *list.Element
}

// NewPool keeps at most limit bytes of decoded blocks, or one block if that is larger.
func NewPool(f *File, limit int64) *Pool {
	p := &Pool{f: f, limit: limit, order: list.New(), slots: map[int]*slot{}}
	p.bufs.New = func() any { return new([]byte) }
	return p
}

// Get returns a block, which nobody may change. Callers that keep it keep its memory.
func (p *Pool) Get(i int) (*rows.Block, error) {
	p.mu.Lock()
	s := p.slots[i]
	if s == nil {
		s = &slot{block: i, ready: make(chan struct{})}
		p.slots[i] = s
		s.at = p.order.PushFront(s)
		p.mu.Unlock()
		p.read(s)
		return s.data, s.err
	}
	p.order.MoveToFront(s.at)
	p.mu.Unlock()
	<-s.ready // by another caller of Get, which is reading it
	return s.data, s.err
}

// read fills a slot and makes room for it.
func (p *Pool) read(s *slot) {
	buf := p.bufs.Get().(*[]byte)
	data, err := p.f.Block(s.block, buf)
	p.bufs.Put(buf)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.data, s.err = data, err
	defer close(s.ready)
	p.reads++
	if s.err != nil {
		p.order.Remove(s.at)
		delete(p.slots, s.block)
		return
	}
	p.held += s.data.Bytes()
	for e := p.order.Back(); e != nil && p.held > p.limit; {
		old := e.Value.(*slot)
		e = e.Prev()
		if old == s || old.data == nil { // that one is on its way
			continue
		}
		p.held -= old.data.Bytes()
		p.order.Remove(old.at)
		delete(p.slots, old.block)
	}
	p.peak = max(p.peak, p.held)
}

// Stats returns the bytes held at most so far, and how many blocks were read.
func (p *Pool) Stats() (peak int64, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak, p.reads
}
