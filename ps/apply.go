package ps

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gangline/gangline/tensor"
)

// offer decides about a push before its data has come.
func (s *Shard) offer(w int, ev Event) error {
	p := &s.peers[w]
	status, err := s.admit(w, ev)
	if err != nil || status != Continue {
		return err
	}
	p.blocks = p.blocks[:0]
	for _, b := range ev.Blocks {
		at := s.layout.find(b.State)
		b.Data = s.memory(at)
		if b.Keys != nil {
			b.Data.Resize(b.Keys.Elems(), s.layout.States[at].Dim())
		} else {
			b.Data.Resize(b.Hi - b.Lo)
		}
		p.blocks = append(p.blocks, b)
	}
	s.reply(p.rank, Continue, p.blocks, "the push may come")
	return nil
}

// push stores contributions.
func (s *Shard) push(w int, ev Event) error {
	p := &s.peers[w]
	status, err := s.admit(w, ev)
	if err != nil || status != Continue {
		for _, b := range ev.Blocks {
			s.recycle(s.layout.find(b.State), b.Data)
		}
		return err
	}
	r := s.round(ev.Step)
	for _, b := range ev.Blocks {
		c := &r.got[s.layout.find(b.State)*len(s.peers)+w]
		c.stored, c.data = true, b.Data
		if b.Keys != nil {
			if c.keys == nil {
				c.keys = tensor.New(tensor.I64, b.Keys.Elems())
			}
			c.keys.Resize(b.Keys.Elems())
			copy(c.keys.I64(), b.Keys.I64())
		}
	}
	n := len(ev.Blocks)
	r.stored[w] += n
	p.counts.Pushed += int64(n)
	p.lastStep = max(p.lastStep, ev.Step)
	p.remember(ev.Seq, Duplicate)
	s.reply(p.rank, Stored, nil, "stored until the verdict")
	return nil
}

// admit decides what becomes of a push: Continue if it is to be stored;
// otherwise it has replied, or returns why not.
func (s *Shard) admit(w int, ev Event) (Status, error) {
	p := &s.peers[w]
	for _, old := range p.recent {
		if old.seq != ev.Seq || old.status == Done {
			continue
		}
		s.counts.Duplicates++
		s.reply(p.rank, old.status, nil, "a repeated push, answered as before")
		return old.status, nil
	}
	if ev.Step < s.version {
		n := int64(len(ev.Blocks))
		p.counts.Pushed += n
		p.counts.Late += n
		p.remember(ev.Seq, Late)
		s.reply(p.rank, Late, nil, fmt.Sprintf("rank %d pushed for step %d, the store is at version %d: late", p.rank, ev.Step, s.version))
		return Late, nil
	}
	if ev.Step > s.version+1 {
		return Refused, fmt.Errorf("%w: push for step %d, the store is at version %d and takes %d at most",
			ErrUsage, ev.Step, s.version, s.version+1)
	}
	r := s.round(ev.Step)
	for _, b := range ev.Blocks {
		at := s.layout.find(b.State)
		if r.got[at*len(s.peers)+w].stored {
			return Refused, fmt.Errorf("%w: rank %d pushes a second contribution to %s for step %d",
				ErrUsage, p.rank, s.layout.States[at].Name, ev.Step)
		}
	}
	return Continue, nil
}

func (p *peer) remember(seq uint64, status Status) {
	p.recent[p.next] = pushed{seq, status}
	p.next = (p.next + 1) % len(p.recent)
}

// memory takes a buffer for a contribution from the free list, or makes one.
func (s *Shard) memory(at int) *tensor.Tensor {
	n := len(s.free[at])
	if n == 0 {
		return tensor.New(s.layout.States[at].DType, 0)
	}
	t := s.free[at][n-1]
	s.free[at] = s.free[at][:n-1]
	return t
}

// recycle gives a buffer back; at most two for each worker are kept.
func (s *Shard) recycle(at int, t *tensor.Tensor) {
	if t != nil && len(s.free[at]) < 2*len(s.peers) {
		s.free[at] = append(s.free[at], t)
	}
}

// judge takes a verdict: the first on a step carries it out.
func (s *Shard) judge(from int, v Verdict) error {
	if v.Step < 0 || v.Weight < 0 || math.IsNaN(v.Weight) || math.IsInf(v.Weight, 0) {
		return fmt.Errorf("%w: verdict of rank %d on step %d with weight %v", ErrUsage, from, v.Step, v.Weight)
	}
	if len(s.cells) == 0 { // nothing is pushed, so verdicts need not come one by one
		s.version = max(s.version, v.Step+1)
		return nil
	}
	if v.Step > s.version {
		return fmt.Errorf("%w: verdict of rank %d on step %d, the store is at version %d", ErrUsage, from, v.Step, s.version)
	}
	old := &s.verdicts[v.Step%verdictsKept]
	if v.Step < s.version {
		switch {
		case !old.Given || old.Step != v.Step:
			return fmt.Errorf("%w: verdict of rank %d on step %d, which is too old to compare: the store is at version %d",
				ErrUsage, from, v.Step, s.version)
		case old.Weight != v.Weight:
			return fmt.Errorf("%w: conflicting verdicts on step %d: weight %v from rank %d, weight %v from rank %d",
				ErrUsage, v.Step, old.Weight, old.from, v.Weight, from)
		}
		return nil
	}
	if missing := s.missing(); missing != "" {
		return fmt.Errorf("%w: verdict of rank %d on step %d, for which contributions are missing: %s", ErrUsage, from, v.Step, missing)
	}
	*old = given{Verdict: v, from: from}
	s.carryOut(*old)
	s.wake()
	return nil
}

// missing names who has not contributed to step version, and to what.
func (s *Shard) missing() string {
	r := s.round(s.version)
	var all []string
	for w := range s.peers {
		if r.stored[w] == len(s.cells) {
			continue
		}
		var names []string
		for i := range s.cells {
			if !r.got[i*len(s.peers)+w].stored {
				names = append(names, s.layout.States[i].Name)
			}
		}
		if n := len(names); n > 4 {
			names = append(names[:3], fmt.Sprintf("and %d more", n-3))
		}
		lost := ""
		if s.peers[w].lost {
			lost = " (lost)"
		}
		all = append(all, fmt.Sprintf("rank %d%s to %s", s.peers[w].rank, lost, strings.Join(names, ", ")))
	}
	return strings.Join(all, "; ")
}

// carryOut applies or drops step version, all of whose contributions are there.
func (s *Shard) carryOut(v given) {
	r, n := s.round(s.version), len(s.peers)
	for i := range s.cells {
		got := r.got[i*n : (i+1)*n]
		if v.Weight > 0 {
			s.cells[i].apply(s.version, v.Weight, got)
		}
		for w := range got {
			s.recycle(i, got[w].data)
			got[w].stored, got[w].data = false, nil
		}
	}
	for w := range s.peers {
		ended := &s.peers[w].counts.Skipped
		if v.Weight > 0 {
			ended = &s.peers[w].counts.Applied
		}
		*ended += int64(r.stored[w])
		r.stored[w] = 0
	}
	s.version++
	if v.Weight > 0 {
		s.counts.StepsApplied++
		s.act(Action{Kind: ActionApplied, Step: v.Step, Version: s.version})
		s.say(fmt.Sprintf("step %d applied: weight %v from %d ranks, first verdict by rank %d", v.Step, v.Weight, n, v.from))
		return
	}
	s.counts.StepsSkipped++
	s.act(Action{Kind: ActionSkipped, Step: v.Step, Version: s.version})
	s.say(fmt.Sprintf("step %d skipped: the verdict, first by rank %d, has weight 0", v.Step, v.from))
}

// pull answers from version Step, or waits for it.
func (s *Shard) pull(now time.Time, w int, ev Event) error {
	p := &s.peers[w]
	switch {
	case ev.Step < s.version || ev.Step > s.version+1:
		return fmt.Errorf("%w: pull for step %d, the store is at version %d", ErrUsage, ev.Step, s.version)
	case ev.Step == s.version:
		s.answer(w, ev.Blocks)
		return nil
	}
	if rank := s.hopeless(); rank >= 0 {
		return fmt.Errorf("pull for step %d: rank %d is lost before it contributed to step %d", ev.Step, rank, s.version)
	}
	p.parked, p.pull, p.since = true, ev, now
	s.say("the pull waits for the verdict on the step before it")
	return nil
}

// answer replies to a pull. Dense values are given as they are, without a copy,
// if they cannot change before the worker's next request: that is so while it
// owes a contribution to step version, for no step is applied without all.
func (s *Shard) answer(w int, blocks []Block) {
	p := &s.peers[w]
	owes := s.round(s.version).stored[w] < len(s.cells)
	p.blocks = p.blocks[:0]
	for _, b := range blocks {
		at := s.layout.find(b.State)
		if p.scratch[at] == nil {
			p.scratch[at] = tensor.New(s.layout.States[at].DType)
		}
		b.Data = p.scratch[at]
		switch {
		case b.Keys != nil:
			s.cells[at].read(b.Keys.I64(), b.Data)
		case owes:
			b.Data = s.cells[at].view()
		default:
			b.Data.Resize(b.Hi - b.Lo)
			copy(b.Data.Bytes(), s.cells[at].view().Bytes())
		}
		p.blocks = append(p.blocks, b)
	}
	s.counts.Pulls++
	s.reply(p.rank, Done, p.blocks, "pulled")
}

// wake answers the pulls that waited for this version, in rank order.
func (s *Shard) wake() {
	for w := range s.peers {
		p := &s.peers[w]
		if p.parked && p.pull.Step == s.version {
			s.answer(w, p.unpark().Blocks)
		}
	}
}

// unpark ends a wait and returns the pull that waited.
func (p *peer) unpark() Event {
	ev := p.pull
	p.parked, p.pull = false, Event{}
	return ev
}

// hopeless returns a lost worker that owes step version something, or -1.
func (s *Shard) hopeless() int {
	for w := range s.peers {
		if s.peers[w].lost && s.round(s.version).stored[w] < len(s.cells) {
			return s.peers[w].rank
		}
	}
	return -1
}

// lose marks a worker as gone, and ends the waits that it makes endless.
func (s *Shard) lose(w int) {
	p := &s.peers[w]
	if p.lost || p.bye {
		return
	}
	p.unpark()
	p.lost = true
	s.say(fmt.Sprintf("rank %d is lost at version %d", p.rank, s.version))
	rank := s.hopeless()
	if rank < 0 {
		return
	}
	for i := range s.peers {
		if o := &s.peers[i]; o.parked {
			s.refuse(o.rank, fmt.Errorf("pull for step %d: rank %d was lost before it contributed to step %d", o.unpark().Step, rank, s.version))
		}
	}
}

// tick refuses pulls that have waited too long.
func (s *Shard) tick(now time.Time) {
	for w := range s.peers {
		p := &s.peers[w]
		if !p.parked || s.Patience <= 0 || now.Sub(p.since) < s.Patience {
			continue
		}
		missing := s.missing()
		if missing == "" {
			missing = "none; the verdict did not come"
		}
		s.refuse(p.rank, fmt.Errorf("pull for step %d waited %v for step %d; contributions missing: %s",
			p.unpark().Step, now.Sub(p.since), s.version, missing))
	}
}

// bye ends a worker's part; after the last one, what is pending has expired.
func (s *Shard) bye(w int) {
	s.peers[w].bye = true
	s.reply(s.peers[w].rank, Done, nil, "good bye")
	if slices.ContainsFunc(s.peers, func(p peer) bool { return !p.bye }) {
		return
	}
	for _, r := range s.rounds {
		for i := range r.got {
			r.got[i].stored, r.got[i].data = false, nil
		}
		for i := range r.stored {
			s.peers[i].counts.Expired += int64(r.stored[i])
			r.stored[i] = 0
		}
	}
}
