// Package merge merges sorted blocks of sparse rows, which several ranks gave.
package merge

import (
	"fmt"
	"unsafe"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Block is what one rank gave: ascending distinct keys, and as many rows of elements
// aligned to 8 bytes.
type Block struct {
	Keys []int64
	Rows []byte
}

// Merger finds the order in which sorted blocks merge: by key, then by rank. Once it has
// seen as many keys, it allocates nothing.
type Merger struct {
	// heap holds the blocks that have keys left, the least (key, block) first.
	heap []int32
	pos  []int
	// order is the merged sequence: 2*block, +1 where a new key begins.
	order []int32
}

// Plan merges the keys alone, fills order and returns the number of distinct
// keys. Keys of a block that are not ascending and distinct are an error that
// names its rank.
func (m *Merger) Plan(blocks []Block, group []int) (int, error) {
	m.heap, m.pos, m.order = m.heap[:0], m.pos[:0], m.order[:0]
	for i := range blocks {
		m.pos = append(m.pos, 0)
		if len(blocks[i].Keys) > 0 {
			m.heap = append(m.heap, int32(i))
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(blocks, i)
	}
	distinct := 0
	var last int64
	for len(m.heap) > 0 {
		b := m.heap[0]
		keys := blocks[b].Keys
		key := keys[m.pos[b]]
		fresh := int32(0)
		if distinct == 0 || key != last {
			fresh, last = 1, key
			distinct++
		}
		m.order = append(m.order, b<<1|fresh)
		m.pos[b]++
		if at := m.pos[b]; at == len(keys) {
			m.heap[0] = m.heap[len(m.heap)-1]
			m.heap = m.heap[:len(m.heap)-1]
		} else if keys[at] <= key {
			return 0, fmt.Errorf("keys of rank %d are not ascending and distinct: %d after %d at %d: %w",
				group[b], keys[at], key, at, transport.ErrCorrupt)
		}
		m.down(blocks, 0)
	}
	return distinct, nil
}

// less orders blocks by their next key, then by their place in the group.
func (m *Merger) less(blocks []Block, a, b int32) bool {
	x, y := blocks[a].Keys[m.pos[a]], blocks[b].Keys[m.pos[b]]
	return x < y || x == y && a < b
}

// down restores the heap below i.
func (m *Merger) down(blocks []Block, i int) {
	for {
		c := 2*i + 1
		if c >= len(m.heap) {
			return
		}
		if c+1 < len(m.heap) && m.less(blocks, m.heap[c+1], m.heap[c]) {
			c++
		}
		if !m.less(blocks, m.heap[c], m.heap[i]) {
			return
		}
		m.heap[c], m.heap[i] = m.heap[i], m.heap[c]
		i = c
	}
}

// SumRows follows the order of Plan: the first row of a key is copied, the
// others are added to it.
func SumRows[T tensor.Float](m *Merger, blocks []Block, dim int, keys []int64, rows []T) {
	clear(m.pos)
	at := -1
	for _, o := range m.order {
		b := &blocks[o>>1]
		i := m.pos[o>>1]
		m.pos[o>>1]++
		src := floats[T](b.Rows)[i*dim : (i+1)*dim]
		if o&1 == 1 {
			at++
			keys[at] = b.Keys[i]
			copy(rows[at*dim:(at+1)*dim], src)
		} else {
			add(rows[at*dim:(at+1)*dim], src)
		}
	}
}

// add is dst += src.
func add[T tensor.Float](dst, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}

// floats reads memory that is aligned to 8 bytes.
func floats[T tensor.Float](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}
