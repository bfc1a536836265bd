package simtest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/ps"
)

// sight is something that may be seen in one form only: by all ranks, in all
// generations, disturbed or not.
type sight struct {
	what string
	part int // store
	rank int
	step int64
}

// ledger remembers the first sight of everything. The undisturbed run fills it,
// so that the disturbed one is compared with it bit for bit at every step, and
// each rank with all others.
type ledger struct {
	seen map[sight]seen
}

type seen struct {
	digest uint64
	by     string
}

// see compares a sight with the first of its kind.
func (l *ledger) see(m *member, s sight, digest uint64) {
	by := fmt.Sprintf("rank %d, generation %d of the %s run", m.rank, m.gen, m.c.name)
	first, ok := l.seen[s]
	if !ok {
		l.seen[s] = seen{digest, by}
		return
	}
	if first.digest != digest {
		m.c.violate("%s (store %d) of step %d: %s sees other bits than %s", s.what, s.part, s.step, by, first.by)
	}
}

// fold adds up what is seen to one number.
type fold struct{ sum []byte }

func (f *fold) text(s string) { f.sum = append(f.sum, s...) }
func (f *fold) num(n int)     { f.sum = binary.LittleEndian.AppendUint64(f.sum, uint64(n)) }
func (f *fold) digest() uint64 {
	h := fnv.New64a()
	h.Write(f.sum) // a hash never fails to write
	return h.Sum64()
}

func digestState(s params.State) uint64 {
	var f fold
	for _, name := range slices.Sorted(maps.Keys(s)) {
		f.text(name)
		f.sum = append(f.sum, s[name].Bytes()...)
	}
	return f.digest()
}

func digestPieces(pieces []checkpoint.Piece) uint64 {
	var f fold
	for _, p := range pieces {
		f.text(p.Name)
		f.num(p.Lo)
		f.num(p.Hi)
		for _, k := range p.Keys {
			f.num(int(k))
		}
		f.sum = append(f.sum, p.Data.Bytes()...)
	}
	return f.digest()
}

func digestBlocks(blocks []ps.Block) uint64 {
	var f fold
	for _, b := range blocks {
		f.num(b.State)
		f.sum = append(f.sum, b.Data.Bytes()...)
	}
	return f.digest()
}

// checkSaved: a checkpoint that was just published is what the ranks hold at
// its step, bit for bit, and comes through a move to another number of servers.
func (c *cluster) checkSaved(m *member, s *saved) {
	state, err := s.state(c.problem)
	if err != nil {
		c.violate("the checkpoint of step %d cannot be read: %v", s.at, err)
		return
	}
	c.ledger.see(m, sight{what: "checkpoint", step: s.at}, digestState(state))
	if len(c.problem.layouts) == 0 {
		if m.worker.cut == nil {
			c.ledger.see(m, sight{what: "parameters", step: s.at}, digestState(state))
		}
		return
	}
	for _, layouts := range [][]ps.Layout{c.problem.layouts, c.problem.others} {
		var moved [][]checkpoint.Piece
		for i, l := range layouts {
			shard, err := newShard(l, c.s.workers, s)
			if err != nil {
				c.violate("the checkpoint of step %d does not go into store %d of %d: %v", s.at, i, len(layouts), err)
				return
			}
			pieces := shard.Export()
			moved = append(moved, pieces)
			if l.Stores == c.s.servers {
				c.ledger.see(m, sight{what: "store", part: i, step: s.at}, digestPieces(pieces))
			}
		}
		after, err := assemble(c.problem, moved)
		if err != nil {
			c.violate("the checkpoint of step %d cannot be read from %d servers: %v", s.at, len(layouts), err)
			return
		}
		if digestState(after) != digestState(state) {
			c.violate("the checkpoint of step %d changes when it is restored into %d servers", s.at, len(layouts))
		}
	}
}

// far is the largest difference between two states, relative to 1 + magnitude;
// infinite if a number is none.
func far(a, b params.State) (worst float64, where string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		for i, v := range a[name].F64() {
			o := b[name].F64()[i]
			d := math.Abs(v-o) / (1 + math.Abs(v))
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			if d > worst {
				worst, where = d, fmt.Sprintf("%s[%d]: %v and %v", name, i, v, o)
			}
		}
	}
	return worst, where
}
