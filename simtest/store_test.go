package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
)

// patience is how long a pull may wait: longer than any fault lasts.
const patience = 30 * time.Second

// store is a server: ps.Shard, with the conversation around it (ps.Server does
// the same with one loop a worker).
type store struct {
	*member
	layout ps.Layout
	shard  *ps.Shard
	asked  []ps.Event   // by worker: the request that is not answered yet
	offers [][]ps.Block // by worker: the memory for a push that may come
	byes   int
}

// newStore makes the shard, from the checkpoint if there is one.
func newStore(m *member, from *saved) (*store, error) {
	c := m.c
	s := &store{
		member: m, layout: c.problem.layouts[m.rank-c.s.workers],
		asked: make([]ps.Event, c.s.workers), offers: make([][]ps.Block, c.s.workers),
	}
	var err error
	if s.shard, err = newShard(s.layout, c.s.workers, from); err != nil {
		return nil, err
	}
	s.shard.Patience = patience
	s.sight()
	s.after(patience/4, s.tick)
	return s, nil
}

func newShard(l ps.Layout, workers int, from *saved) (*ps.Shard, error) {
	var ranks []int
	for r := range workers {
		ranks = append(ranks, r)
	}
	shard, err := ps.NewShard(l, ranks)
	if err != nil || from == nil {
		return shard, err
	}
	pieces, err := from.pieces()
	if err != nil {
		return nil, err
	}
	if err := shard.Import(pieces); err != nil {
		return nil, err
	}
	shard.SetVersion(from.at)
	return shard, nil
}

func (s *store) tick() {
	s.step(ps.Event{Kind: ps.EventTick})
	s.after(patience/4, s.tick)
}

// take gets a request, or the data of a push that was offered.
func (s *store) take(from int, body any) {
	if s.failed {
		return
	}
	switch body := body.(type) {
	case ps.Event:
		s.asked[from] = body
		s.step(body)
	case []*tensor.Tensor:
		ev := s.asked[from]
		ev.Kind, ev.Blocks, ev.Verdict = ps.EventPush, s.offers[from], ps.Verdict{}
		for i := range ev.Blocks {
			copy(ev.Blocks[i].Data.Bytes(), body[i].Bytes())
		}
		s.step(ev)
	}
}

// step runs the machine, sends what it answers, and looks at it.
func (s *store) step(ev ps.Event) {
	version := s.shard.Version()
	actions, why := s.shard.Step(time.Unix(0, 0).Add(s.c.now), ev)
	if why != "" {
		s.c.note("store %d: rank %d: %s", s.layout.Store, ev.From, why)
	}
	for _, a := range actions {
		switch a.Kind {
		case ps.ActionReply, ps.ActionRefuse:
			s.answer(a)
		case ps.ActionSnapshot:
			s.snapshot(a.To)
		case ps.ActionApplied, ps.ActionSkipped:
			s.c.applied(s, a)
		}
	}
	if s.shard.Version() != version {
		s.sight()
	}
	s.check()
}

// answer replies after the time that sending takes. Blocks are sent as they
// are: until the worker's next request the machine must not change them.
func (s *store) answer(a ps.Action) {
	r := answer{status: a.Status, version: a.Version, err: a.Err}
	switch s.asked[a.To].Kind {
	case ps.EventPull:
		r.blocks = slices.Clone(a.Blocks) // the list is the machine's, the data need not be copied
		r.digest = digestBlocks(r.blocks)
	case ps.EventOffer:
		s.offers[a.To] = append([]ps.Block(nil), a.Blocks...)
	case ps.EventBye:
		s.byes++
	case ps.EventPush, ps.EventFlush, ps.EventSnapshot, ps.EventLost, ps.EventTick: // the status says it all
	}
	s.send(a.To, tagAnswer, r)
	if s.byes == s.c.s.workers {
		s.byes = 0
		s.finish()
	}
}

// snapshot writes what the shard holds now, and answers when it is on disk.
func (s *store) snapshot(to int) {
	pieces, step := s.shard.Export(), s.shard.Version()
	name := fmt.Sprintf("server-%d", s.layout.Store)
	written, err := s.c.disk.write(step, name, pieces)
	if err != nil {
		s.c.violate("%v", err)
		return
	}
	s.after(s.c.work(s.rank), func() {
		written()
		s.send(to, tagAnswer, answer{status: ps.Done, version: step, receipt: name})
	})
}

// lost tells the machine that a worker is gone; it reports whether that matters.
func (s *store) lost(rank int) bool {
	if rank >= s.c.s.workers || s.asked[rank].Kind == ps.EventBye {
		return false
	}
	s.step(ps.Event{Kind: ps.EventLost, From: rank})
	return true
}

// sight notes what the store holds at its version.
func (s *store) sight() {
	s.c.ledger.see(s.member, sight{what: "store", part: s.layout.Store, step: s.shard.Version()}, digestPieces(s.shard.Export()))
}

// check is what must hold after every event: contributions balance, and no
// more than two steps are pending.
func (s *store) check() {
	t := s.shard.Stats()
	if !t.Balanced() {
		s.c.violate("store %d: contributions do not balance: %+v", s.layout.Store, t.Counts)
	}
	for i := range t.Workers {
		w := &t.Workers[i]
		if !w.Balanced() || w.Pending > 2*int64(len(s.layout.States)) || w.Late > 0 {
			s.c.violate("store %d: contributions of rank %d: %+v", s.layout.Store, w.Rank, w.Counts)
		}
	}
	if t.Refused > 0 && len(s.co.guilty) == 0 && s.co.core.Phase() != coord.Ended {
		s.c.violate("store %d refuses a request, and nobody is lost", s.layout.Store)
	}
}
