package bpe

import "container/heap"

// shortWord is the number of bytes up to which looking at all pairs again after
// each joining is faster than a heap.
const shortWord = 32

// merger joins the bytes of words. It keeps its memory from word to word.
type merger struct {
	ids  []int32
	next []int // of a long word: the part after, and before
	prev []int
	todo pairs
}

// join appends the tokens of a word.
func (m *merger) join(t *Tokenizer, to []int32, word []byte) []int32 {
	m.ids = m.ids[:0]
	for _, b := range word {
		m.ids = append(m.ids, t.bytes[b])
	}
	if len(word) > shortWord {
		return m.long(t, to)
	}
	return append(to, m.short(t)...)
}

// short joins the first of the pairs with the lowest rank until there is none.
func (m *merger) short(t *Tokenizer) []int32 {
	ids := m.ids
	for len(ids) > 1 {
		at, best := -1, merge{}
		for i := range len(ids) - 1 {
			if found, ok := t.merges[pair(ids[i], ids[i+1])]; ok && (at < 0 || found.rank < best.rank) {
				at, best = i, found
			}
		}
		if at < 0 {
			break
		}
		ids[at] = best.token
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return ids
}

// long does what short does, in m*log(m) steps: a heap holds the pairs, those
// whose parts were joined to others meanwhile are left out when they come up.
func (m *merger) long(t *Tokenizer, to []int32) []int32 {
	n := len(m.ids)
	m.next, m.prev, m.todo = m.next[:0], m.prev[:0], m.todo[:0]
	for i := range n {
		m.next, m.prev = append(m.next, i+1), append(m.prev, i-1)
	}
	for i := range n - 1 {
		m.offer(t, i)
	}
	for len(m.todo) > 0 {
		p, ok := heap.Pop(&m.todo).(candidate)
		if !ok || m.ids[p.at] != p.left || m.next[p.at] >= n || m.ids[m.next[p.at]] != p.right {
			continue
		}
		gone := m.next[p.at]
		m.ids[p.at], m.ids[gone] = p.token, -1
		m.next[p.at] = m.next[gone]
		if after := m.next[p.at]; after < n {
			m.prev[after] = p.at
			m.offer(t, p.at)
		}
		if before := m.prev[p.at]; before >= 0 {
			m.offer(t, before)
		}
	}
	for i := 0; i < n; i = m.next[i] {
		to = append(to, m.ids[i])
	}
	return to
}

// offer puts the pair at a part into the heap if it can be joined.
func (m *merger) offer(t *Tokenizer, at int) {
	left, right := m.ids[at], m.ids[m.next[at]]
	if found, ok := t.merges[pair(left, right)]; ok {
		heap.Push(&m.todo, candidate{found, at, left, right})
	}
}

// candidate is a pair that may be joined.
type candidate struct {
	merge
	at          int // of the left part
	left, right int32
}

// pairs is a heap of candidates: the lowest rank first, then the leftmost.
type pairs []candidate

func (p pairs) Len() int { return len(p) }

func (p pairs) Less(i, j int) bool {
	if p[i].rank != p[j].rank {
		return p[i].rank < p[j].rank
	}
	return p[i].at < p[j].at
}

func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push implements heap.Interface.
func (p *pairs) Push(x any) {
	if c, ok := x.(candidate); ok {
		*p = append(*p, c)
	}
}

// Pop implements heap.Interface.
func (p *pairs) Pop() any {
	last := len(*p) - 1
	c := (*p)[last]
	*p = (*p)[:last]
	return c
}
