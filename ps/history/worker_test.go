package history_test

import (
	"time"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/gate"
	"github.com/gangline/gangline/ps/history"
)

// contribution is what a worker sends in a clock.
type contribution struct {
	bases  []int64 // by shard
	pieces []int   // by shard
	ballot gate.Ballot
}

// worker is the worker's side of the protocol: it reads from all shards, first
// from the lead, computes, pushes to all, says that it is ready, and goes on.
// Whatever is not answered is sent again.
type worker struct {
	r     *run
	rank  consistency.Worker
	life  int
	clock int64
	until int64 // clocks of data it has
	slow  time.Duration
	sent  map[int64]*contribution

	phase    int // counts what it did, so that timers of the past do nothing
	dead     bool
	over     bool
	leaving  bool
	rejoins  bool
	dies     int64 // at this clock, -1 never
	pauses   int64
	request  uint64
	version  int64 // the lead's answer
	verdict  consistency.Verdict
	got      map[int]int64  // versions by shard
	asked    map[int]uint64 // requests by shard
	last     []int64        // last version read, by shard
	acks     map[int]map[int]bool
	expired  bool
	pushing  bool
	readying bool
}

func newWorker(r *run, rank consistency.Worker) *worker {
	w := &worker{r: r, rank: rank, clock: r.job.Clock, until: r.clocks, slow: 10 * time.Millisecond, sent: make(map[int64]*contribution), dies: -1, pauses: -1}
	w.last = make([]int64, r.job.Shards)
	for i := range w.last {
		w.last[i] = r.job.Version
	}
	if rank == 0 && r.rng.IntN(2) == 0 {
		w.slow *= 5
	}
	if r.rng.IntN(3) == 0 { // runs out of data before others
		w.until -= int64(r.rng.IntN(3))
	}
	span := int(r.clocks - r.job.Clock)
	if r.rng.IntN(4) == 0 {
		w.dies = r.job.Clock + int64(r.rng.IntN(span))
	}
	if r.rng.IntN(4) == 0 {
		w.pauses = r.job.Clock + int64(r.rng.IntN(span))
	}
	return w
}

// again does something now, and every so often until the phase is over.
func (w *worker) again(do func()) {
	phase, life := w.phase, w.life
	var once func()
	once = func() {
		if w.phase != phase || w.life != life || w.dead || w.over {
			return
		}
		do()
		w.r.after(40*time.Millisecond+w.r.delay(20*time.Millisecond), once)
	}
	once()
}

func (w *worker) start() { w.read() }

// read asks all shards, or the lead before the others.
func (w *worker) read() {
	w.phase++
	w.got, w.asked = make(map[int]int64), make(map[int]uint64)
	w.verdict, w.version, w.pushing, w.readying = consistency.Verdict{}, 0, false, false
	if w.r.rng.IntN(6) == 0 && !w.leaving && w.clock > w.r.job.Clock && !w.r.job.Model.Synchronous() { // it computes from what it has
		w.compute()
		return
	}
	w.again(func() {
		for _, s := range w.r.shards {
			if _, ok := w.got[s.number]; ok {
				continue
			}
			if _, lead := w.got[0]; w.r.job.Model.Synchronous() && s.number > 0 && !lead {
				break
			}
			w.ask(s)
		}
	})
}

func (w *worker) ask(s *shard) {
	w.request++
	ev := gate.Event{Kind: gate.EventRead, Worker: w.rank, Request: w.request, Seq: consistency.Seq{Clock: w.clock}, Version: w.version}
	w.r.record(history.Record{Kind: history.Asked, Shard: s.number, Worker: w.rank, Clock: w.clock, Version: ev.Version, Request: ev.Request})
	if s.number > 0 && w.verdict.Given() {
		w.r.message(w, s, gate.Event{Kind: gate.EventVerdict, Verdict: w.verdict}, ev)
		return
	}
	w.r.message(w, s, ev)
}

func (w *worker) answered(rec history.Record, v consistency.Verdict) {
	if w.pushing || rec.Clock != w.clock { // an answer to an older question
		return
	}
	rec.Kind, rec.Life = history.Answered, w.life
	w.r.record(rec)
	if _, ok := w.got[rec.Shard]; ok {
		return
	}
	w.got[rec.Shard], w.last[rec.Shard] = rec.Version, rec.Version
	if rec.Shard == 0 {
		w.verdict = v
		if w.r.job.Model.Synchronous() {
			w.version = rec.Version
			for _, s := range w.r.shards[1:] {
				w.ask(s)
			}
		}
	}
	if len(w.got) == len(w.r.shards) {
		w.compute()
	}
}

// compute takes its time, or ends.
func (w *worker) compute() {
	w.phase++
	w.pushing = true
	life := w.life
	d := w.r.delay(w.slow)
	if w.clock == w.pauses {
		w.pauses = -1
		d += 500 * time.Millisecond
	}
	w.r.after(d, func() {
		switch {
		case w.life != life || w.dead:
		case w.leaving:
			w.leave()
		default:
			w.push()
		}
	})
	if w.clock == w.dies {
		w.dies = -1
		w.r.after(w.r.delay(w.slow), func() {
			if w.life == life && !w.over {
				w.die()
			}
		})
	}
}

func (w *worker) push() {
	w.phase++
	c := &contribution{ballot: gate.Ballot{Weight: float64(w.r.rng.IntN(8)), Loss: w.r.rng.Float64(), Finite: w.r.rng.IntN(15) > 0}}
	w.acks = make(map[int]map[int]bool)
	w.expired = false
	for i, s := range w.r.shards {
		c.bases = append(c.bases, w.last[i])
		c.pieces = append(c.pieces, 1+w.r.rng.IntN(3))
		w.acks[i] = make(map[int]bool)
		w.r.record(history.Record{
			Kind: history.Sent, Shard: s.number, Worker: w.rank, Clock: w.clock, Life: w.life, Base: c.bases[i],
			Weight: c.ballot.Weight, Finite: c.ballot.Finite,
		})
	}
	w.sent[w.clock] = c
	w.again(func() {
		for i, s := range w.r.shards {
			for n := range c.pieces[i] {
				if w.acks[i][n] {
					continue
				}
				ev := gate.Event{Kind: gate.EventPush, Worker: w.rank, Base: c.bases[i], Seq: consistency.Seq{Clock: w.clock, Piece: uint16(n)}}
				if n == c.pieces[i]-1 {
					ev.Seq.Last, ev.Ballot = true, c.ballot
				}
				w.r.message(w, s, ev)
			}
		}
	})
}

func (w *worker) acked(shard int, a *gate.Action) {
	w.r.record(history.Record{Kind: history.Acked, Shard: shard, Worker: w.rank, Clock: a.Clock, Outcome: a.Outcome})
	if a.Clock != w.clock || w.acks == nil || !w.pushing {
		return
	}
	if w.readying {
		if a.Request == w.request {
			w.next()
		}
		return
	}
	w.acks[shard][int(a.Piece)] = true
	for i := range w.r.shards {
		if len(w.acks[i]) < w.sent[w.clock].pieces[i] {
			return
		}
	}
	if !w.r.job.Model.Synchronous() || len(w.r.shards) == 1 {
		w.next()
		return
	}
	w.phase++
	w.readying = true
	w.request++
	base := w.sent[w.clock].bases[0]
	for _, b := range w.sent[w.clock].bases {
		base = min(base, b)
	}
	w.again(func() {
		w.r.message(w, w.r.shards[0], gate.Event{Kind: gate.EventReady, Worker: w.rank, Request: w.request, Seq: consistency.Seq{Clock: w.clock}, Base: base})
	})
}

func (w *worker) next() {
	w.clock++
	w.leaving = w.clock >= w.until
	w.read()
}

// leave says so to all shards, which hear it for certain: in the end the
// connection tells.
func (w *worker) leave() {
	w.phase++
	w.r.seen["left"]++
	life, to := w.life, len(w.r.shards)
	for _, s := range w.r.shards {
		w.r.after(w.r.delay(5*time.Millisecond), func() {
			if w.life != life || s.ended {
				return
			}
			s.step(gate.Event{Kind: gate.EventLeft, Worker: w.rank})
			if to--; to == 0 {
				w.over = true
			}
		})
	}
}

func (w *worker) die() {
	w.r.seen["died"]++
	w.dead = true
	replaced := w.r.job.Model.Waits() || w.r.rng.IntN(2) == 0
	w.gone(func() {
		if replaced {
			w.join()
			return
		}
		w.over = true
	})
}

// rejoin is what a worker does that hears that it counts as lost.
func (w *worker) rejoin() {
	if w.rejoins || w.over || w.dead {
		return
	}
	w.r.seen["rejoined"]++
	w.rejoins, w.dead = true, true
	w.gone(w.join)
}

// gone tells all shards that the worker is lost, each at its time, and then goes
// on.
func (w *worker) gone(then func()) {
	w.phase++
	w.life++
	to := len(w.r.shards)
	for _, s := range w.r.shards {
		w.r.after(w.r.delay(30*time.Millisecond), func() {
			s.lives[w.rank] = w.life
			s.step(gate.Event{Kind: gate.EventLost, Worker: w.rank})
			if to--; to == 0 {
				then()
			}
		})
	}
}

// join brings the rank back, at the greatest clock of all shards.
func (w *worker) join() {
	at := w.r.job.Clock
	for _, s := range w.r.shards {
		c, _ := s.gate.Clock(w.rank)
		at = max(at, c)
	}
	to := len(w.r.shards)
	for _, s := range w.r.shards {
		w.r.after(w.r.delay(30*time.Millisecond), func() {
			s.step(gate.Event{Kind: gate.EventJoined, Worker: w.rank, Seq: consistency.Seq{Clock: at}})
			if to--; to > 0 {
				return
			}
			w.dead, w.rejoins, w.acks = false, false, nil
			w.clock = at
			w.leaving = w.clock >= w.until
			w.phase++
			w.read()
		})
	}
}
