package simtest

import (
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
)

// Tags of messages that no plan has; plans use smaller ones.
const (
	tagRequest = 1<<24 + iota
	tagData
	tagAnswer
	tagSave // between workers
)

// link is a worker's side of one store: one request at a time, and the last
// verdict rides on whatever request comes next (ps.Client does the same).
type link struct {
	w       *worker
	store   int
	rank    int
	seq     uint64
	verdict ps.Verdict

	busy     bool
	request  ps.Event
	data     []*tensor.Tensor // of a push
	attempts int
	then     func(answer)
}

// answer is what a store says.
type answer struct {
	status  ps.Status
	version int64
	blocks  []ps.Block // of a pull: perhaps views of the state
	digest  uint64     // of blocks when the store answered
	receipt string
	err     error
}

// committed takes the verdict on a step. The one before must have left.
func (l *link) committed(step int64, weight float64) {
	if l.verdict.Given && len(l.w.c.problem.layouts[l.store].States) > 0 {
		l.w.c.violate("rank %d never told store %d the verdict on step %d", l.w.rank, l.store, l.verdict.Step)
	}
	l.verdict = ps.Verdict{Given: true, Step: step, Weight: weight}
}

// call makes a request.
func (l *link) call(ev ps.Event, data []*tensor.Tensor, then func(answer)) {
	if l.busy {
		l.w.c.violate("rank %d makes a second request to store %d", l.w.rank, l.store)
		return
	}
	l.seq++
	ev.From, ev.Seq, ev.Verdict = l.w.rank, l.seq, l.verdict
	l.busy, l.request, l.data, l.then, l.attempts = true, ev, data, then, 0
	l.ask()
}

// ask sends the request, with memory of its own.
func (l *link) ask() {
	ev := l.request
	ev.Blocks = nil
	for _, b := range l.request.Blocks {
		ev.Blocks = append(ev.Blocks, ps.Block{State: b.State, Lo: b.Lo, Hi: b.Hi, Keys: clone(b.Keys)})
	}
	l.attempts++
	l.w.send(l.rank, tagRequest, ev)
}

// answered takes the answer. One that was lost on its way is asked for again
// with the same request: the store must do nothing twice.
func (l *link) answered(a answer) {
	if !l.busy {
		l.w.c.violate("store %d answers rank %d, which asked nothing", l.store, l.w.rank)
		return
	}
	if a.status == ps.Refused {
		// A refusal blames nobody else, as in train: the coordinator would
		// believe it at once. No refusal may come of another rank's death.
		l.w.fail(a.err.Error(), coord.NoRank)
		return
	}
	bye := l.request.Kind == ps.EventBye
	if s := l.w.c.s; s.retry > 0 && !bye && l.attempts < 4 && l.w.c.rng.Float64() < s.retry {
		l.w.c.retries++
		l.ask()
		return
	}
	l.verdict = ps.Verdict{}
	if a.status == ps.Continue {
		data := make([]*tensor.Tensor, len(l.data))
		for i, t := range l.data {
			data[i] = t.Clone()
		}
		l.w.send(l.rank, tagData, data)
		return
	}
	if a.status == ps.Late {
		l.w.c.violate("a push of rank %d comes late for store %d at version %d", l.w.rank, l.store, a.version)
	}
	l.busy = false
	l.then(a)
}

// picks are the keys of a table that the store owns, as positions.
func (l *link) picks(p *ps.Part) []int {
	var at []int
	for i, id := range p.Keys.I64() {
		if ps.StoreOf(id, len(l.w.links)) == l.store {
			at = append(at, i)
		}
	}
	return at
}

// blocks says what of the parts is the store's; data takes or gives it.
func (l *link) blocks(parts []ps.Part) (blocks []ps.Block, data []*tensor.Tensor) {
	for i := range parts {
		p := &parts[i]
		if p.Keys == nil {
			blocks = append(blocks, ps.Block{State: p.State, Lo: p.Lo, Hi: p.Hi})
			data = append(data, tensor.From(p.Data.F64()[p.Lo:p.Hi], p.Hi-p.Lo))
			continue
		}
		picks, dim := l.picks(p), p.Data.Shape()[1]
		keys, rows := make([]int64, len(picks)), make([]float64, 0, len(picks)*dim)
		for j, at := range picks {
			keys[j] = p.Keys.I64()[at]
			if p.Data.Shape()[0] > at {
				rows = append(rows, p.Data.F64()[at*dim:(at+1)*dim]...)
			}
		}
		blocks = append(blocks, ps.Block{State: p.State, Keys: tensor.From(keys, len(keys))})
		data = append(data, tensor.From(rows, len(rows)/dim, dim))
	}
	return blocks, data
}

// push gives the gradient sums of a step to the store, and ends when they are
// stored there.
func (l *link) push(step int64, parts []ps.Part, end func()) {
	blocks, data := l.blocks(parts)
	l.call(ps.Event{Kind: ps.EventOffer, Step: step, Blocks: blocks}, data, func(answer) { end() })
}

// pull reads the state as the step must see it.
func (l *link) pull(step int64, parts []ps.Part, end func()) {
	for i := range parts {
		if p := &parts[i]; p.Keys != nil && p.Data.Shape()[0] != p.Keys.Elems() {
			p.Data.Resize(p.Keys.Elems(), p.Data.Shape()[1])
		}
	}
	blocks, _ := l.blocks(parts)
	l.call(ps.Event{Kind: ps.EventPull, Step: step, Blocks: blocks}, nil, func(a answer) {
		if a.version != step {
			l.w.c.violate("rank %d pulls step %d and gets version %d of store %d", l.w.rank, step, a.version, l.store)
		}
		d := digestBlocks(a.blocks)
		if d != a.digest {
			l.w.c.violate("what rank %d pulled for step %d from store %d changed on its way", l.w.rank, step, l.store)
		}
		l.w.c.ledger.see(l.w.member, sight{what: "pull", part: l.store, rank: l.w.rank, step: step}, d)
		for i := range parts {
			p := &parts[i]
			src := a.blocks[i].Data.F64()
			if p.Keys == nil {
				copy(p.Data.F64()[p.Lo:p.Hi], src)
				continue
			}
			dim := p.Data.Shape()[1]
			for j, at := range l.picks(p) {
				copy(p.Data.F64()[at*dim:(at+1)*dim], src[j*dim:])
			}
		}
		end()
	})
}
