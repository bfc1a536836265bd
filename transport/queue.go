package transport

// Queue is a first-in-first-out queue in a ring that grows and never shrinks:
// once warm it allocates nothing. The zero value is empty. It is not safe for
// concurrent use, and it has no limit of its own: who pushes checks Len.
type Queue[T any] struct {
	ring  []T // length is a power of two, or zero
	first int
	n     int
}

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return q.n }

// Push appends v.
func (q *Queue[T]) Push(v T) {
	q.grow()
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// PushFront puts v before all others.
func (q *Queue[T]) PushFront(v T) {
	q.grow()
	q.first = (q.first - 1) & (len(q.ring) - 1)
	q.ring[q.first] = v
	q.n++
}

// Pop removes and returns the first element; it panics on an empty queue.
func (q *Queue[T]) Pop() T {
	if q.n == 0 {
		panic("transport: pop from an empty queue")
	}
	var zero T
	v := q.ring[q.first]
	q.ring[q.first] = zero // do not keep buffers alive
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

// RemoveFunc removes the first element for which match is true and reports
// whether there was one. It costs the length of the queue.
func (q *Queue[T]) RemoveFunc(match func(T) bool) bool {
	for i := range q.n {
		if !match(q.ring[(q.first+i)&(len(q.ring)-1)]) {
			continue
		}
		for j := i; j < q.n-1; j++ {
			q.ring[(q.first+j)&(len(q.ring)-1)] = q.ring[(q.first+j+1)&(len(q.ring)-1)]
		}
		var zero T
		q.ring[(q.first+q.n-1)&(len(q.ring)-1)] = zero
		q.n--
		return true
	}
	return false
}

func (q *Queue[T]) grow() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]T, max(4, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
	}
	q.ring, q.first = ring, 0
}

// idleTags is how many idle lines a Lines keeps, so that a tag used once a
// step allocates only in the first.
const idleTags = 4096

// Lines holds one line (queues, counters) for each tag in use. Idle lines are
// kept up to a limit and recycled, so any number of tags may pass through in a
// lifetime. The zero value is empty. It is not safe for concurrent use.
type Lines[L any] struct {
	byTag   map[uint32]*L
	free    []*L
	last    *L     // the line of tag, asked for last
	tag     uint32 // tags repeat, so this saves the map
	sweepAt int    // how many lines call for a sweep
}

// Get returns the line of tag and makes it if need be. If more than MaxTags
// lines are busy it returns nil. Idle says whether a line may be recycled: it
// must hold nothing.
func (t *Lines[L]) Get(tag uint32, idle func(*L) bool) *L {
	if t.last != nil && t.tag == tag {
		return t.last
	}
	l, ok := t.byTag[tag]
	if !ok {
		l = t.add(tag, idle)
		if l == nil {
			return nil
		}
	}
	t.last, t.tag = l, tag
	return l
}

func (t *Lines[L]) add(tag uint32, idle func(*L) bool) *L {
	if t.byTag == nil {
		t.byTag = make(map[uint32]*L)
	}
	if len(t.byTag) >= max(idleTags, t.sweepAt) {
		t.sweep(idle)
	}
	if len(t.byTag) >= MaxTags {
		return nil
	}
	var l *L
	if n := len(t.free); n > 0 {
		l, t.free = t.free[n-1], t.free[:n-1]
	} else {
		l = new(L)
	}
	t.byTag[tag] = l
	return l
}

// sweep takes the idle lines away. The next one comes when the table has
// doubled, so its cost is spread over the tags that came in between.
func (t *Lines[L]) sweep(idle func(*L) bool) {
	for tag, l := range t.byTag {
		if idle(l) {
			delete(t.byTag, tag)
			t.free = append(t.free, l)
		}
	}
	t.last = nil
	t.sweepAt = min(2*len(t.byTag), MaxTags)
}

// All calls f for every line there is.
func (t *Lines[L]) All(f func(tag uint32, l *L)) {
	for tag, l := range t.byTag {
		f(tag, l)
	}
}
