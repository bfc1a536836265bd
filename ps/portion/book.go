package portion

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// lease is a portion that a worker has.
type lease struct {
	worker, portion int
	round           uint64
	since           time.Duration
	overdue         bool
}

// Book is the machine. It is not safe for concurrent use.
//
// Guarantees: (1) each portion of a round counts exactly once, and the round is
// over when all do; (2) at most Copies workers that are not overdue work on a
// portion, all of them different; (3) no portion waits while a worker does, unless
// that very worker is overdue with it; (4) the sums of a round do not depend on
// who answered, nor on the order; (5) every lease is counted once (Counts.Balanced).
type Book struct {
	cfg Config
	now time.Duration

	round    uint64
	answered []bool
	loss     []float64
	weight   []float64
	missing  int
	fresh    int   // portions from here on were never given
	back     []int // portions that came back, to be given first
	working  []int // by portion: leases of this round that are open and not overdue

	leases  []*lease // open ones, the oldest first
	parked  []int    // workers that wait, the longest first
	workers map[int]*Counts
	total   Counts

	actions []Action
	why     string
}

// New makes a book without a round.
func New(cfg Config) (*Book, error) {
	if cfg.Copies == 0 {
		cfg.Copies = 2
	}
	if cfg.Hold == 0 {
		cfg.Hold = 1
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Book{cfg: cfg, workers: map[int]*Counts{}}, nil
}

// Counts returns the leases of all workers.
func (b *Book) Counts() Counts { return b.total }

// Of returns the leases of a worker; of one that never asked, none.
func (b *Book) Of(worker int) Counts {
	if c := b.workers[worker]; c != nil {
		return *c
	}
	return Counts{}
}

// Missing returns how many portions of the round were not answered yet.
func (b *Book) Missing() int { return b.missing }

// Due returns when a tick may change something, unless other events come before;
// ok is false if none can.
func (b *Book) Due() (at time.Duration, ok bool) {
	if b.missing == 0 {
		return 0, false
	}
	first := time.Duration(math.MaxInt64)
	for _, l := range b.leases {
		if l.round != b.round || l.overdue || b.answered[l.portion] {
			continue
		}
		if b.cfg.Deadline > 0 {
			first = min(first, l.since+b.cfg.Deadline)
		}
		if at := l.since + b.cfg.Patience; at > b.now && len(b.parked) > 0 && b.working[l.portion] < b.cfg.Copies {
			first = min(first, at)
		}
	}
	return first, first < math.MaxInt64
}

// Step takes one event. now is the time since the machine began; it never goes
// back. The actions are valid until the next Step, the sentence says what was
// decided. It costs O(open leases + waiting workers).
func (b *Book) Step(now time.Duration, ev Event) (actions []Action, why string) {
	b.actions, b.why = b.actions[:0], "nothing to do"
	b.now = max(b.now, now)
	b.expire()
	switch ev.Kind {
	case EventBegin:
		b.begin(ev)
	case EventAsk:
		b.ask(ev.Worker)
	case EventDone:
		b.done(ev)
	case EventLost:
		b.lost(ev.Worker)
	case EventTick:
	default:
		b.refuse(ev, "unknown event %d", ev.Kind)
	}
	b.serve()
	return b.actions, b.why
}

func (b *Book) say(format string, args ...any) { b.why = fmt.Sprintf(format, args...) }

func (b *Book) refuse(ev Event, format string, args ...any) {
	err := fmt.Errorf("ps/portion: %w: %s", ErrUsage, fmt.Sprintf(format, args...))
	b.actions = append(b.actions, Action{Kind: ActionRefuse, Worker: ev.Worker, Round: ev.Round, Portion: ev.Portion, Err: err})
	b.say("refused: %v", err)
}

func (b *Book) begin(ev Event) {
	switch {
	case b.missing > 0:
		b.refuse(ev, "round %d begins, but %d portions of round %d are missing", ev.Round, b.missing, b.round)
		return
	case ev.Round <= b.round:
		b.refuse(ev, "round %d cannot follow round %d", ev.Round, b.round)
		return
	case ev.Portions < 1 || ev.Portions > PortionsMax:
		b.refuse(ev, "a round has 1 to %d portions, round %d has %d", PortionsMax, ev.Round, ev.Portions)
		return
	}
	n := ev.Portions
	b.round, b.missing, b.fresh, b.back = ev.Round, n, 0, b.back[:0]
	b.answered, b.working = make([]bool, n), make([]int, n)
	b.loss, b.weight = make([]float64, n), make([]float64, n)
	b.say("round %d begins with %d portions", b.round, n)
}

func (b *Book) ask(worker int) {
	ev := Event{Worker: worker}
	c := b.workers[worker]
	switch {
	case c == nil && len(b.workers) == WorkersMax:
		b.refuse(ev, "worker %d is one more than %d", worker, WorkersMax)
		return
	case slices.Contains(b.parked, worker):
		b.refuse(ev, "worker %d asks again while it waits", worker)
		return
	case c != nil && c.Open >= int64(b.cfg.Hold):
		b.refuse(ev, "worker %d asks for more and has %d portions: it must answer them, or be lost, first", worker, c.Open)
		return
	case c == nil:
		b.workers[worker] = &Counts{}
	}
	b.parked = append(b.parked, worker)
	if !b.serve() || slices.Contains(b.parked, worker) {
		b.actions = append(b.actions, Action{Kind: ActionWait, Worker: worker, Round: b.round})
		b.say("worker %d waits: %d portions are missing, all are out", worker, b.missing)
	}
}

func (b *Book) done(ev Event) {
	switch {
	case ev.Round > b.round || ev.Round == 0:
		b.refuse(ev, "worker %d has done round %d, which never began", ev.Worker, ev.Round)
		return
	case ev.Portion < 0 || ev.Round == b.round && ev.Portion >= len(b.answered):
		b.refuse(ev, "worker %d has done portion %d of round %d, which does not exist", ev.Worker, ev.Portion, ev.Round)
		return
	case math.IsNaN(ev.Weight) || math.IsInf(ev.Weight, 0) || ev.Weight < 0:
		b.refuse(ev, "worker %d: the weight of portion %d is %g", ev.Worker, ev.Portion, ev.Weight)
		return
	}
	at := slices.IndexFunc(b.leases, func(l *lease) bool {
		return l.worker == ev.Worker && l.round == ev.Round && l.portion == ev.Portion
	})
	if at < 0 {
		b.count(ev.Worker, func(c *Counts) { c.Stray++ })
		b.actions = append(b.actions, Action{Kind: ActionLate, Worker: ev.Worker, Round: ev.Round, Portion: ev.Portion})
		b.say("worker %d has no lease on portion %d of round %d: ignored", ev.Worker, ev.Portion, ev.Round)
		return
	}
	b.close(at)
	if ev.Round != b.round || b.answered[ev.Portion] {
		b.count(ev.Worker, func(c *Counts) { c.Open--; c.Late++ })
		b.actions = append(b.actions, Action{Kind: ActionLate, Worker: ev.Worker, Round: ev.Round, Portion: ev.Portion})
		b.say("portion %d of round %d by worker %d comes late: ignored", ev.Portion, ev.Round, ev.Worker)
		return
	}
	b.count(ev.Worker, func(c *Counts) { c.Open--; c.Counted++ })
	b.answered[ev.Portion], b.loss[ev.Portion], b.weight[ev.Portion] = true, ev.Loss, ev.Weight
	b.missing--
	b.actions = append(b.actions, Action{Kind: ActionCounted, Worker: ev.Worker, Round: ev.Round, Portion: ev.Portion})
	b.say("portion %d of round %d by worker %d counts, %d are missing", ev.Portion, ev.Round, ev.Worker, b.missing)
	if b.missing == 0 {
		b.over()
	}
}

// over adds up a round.
func (b *Book) over() {
	o := Action{Kind: ActionOver, Round: b.round}
	for p, l := range b.loss {
		o.Loss += l
		o.Weight += b.weight[p]
	}
	b.actions = append(b.actions, o)
	b.say("round %d is over: loss %g, weight %g", o.Round, o.Loss, o.Weight)
}

func (b *Book) lost(worker int) {
	b.parked = slices.DeleteFunc(b.parked, func(w int) bool { return w == worker })
	gone := 0
	for i := 0; i < len(b.leases); {
		if b.leases[i].worker != worker {
			i++
			continue
		}
		l := b.close(i)
		b.count(worker, func(c *Counts) { c.Open--; c.Gone++ })
		b.unstaff(l)
		gone++
	}
	b.say("worker %d is lost, and %d portions with it", worker, gone)
}

// expire lets leases become overdue.
func (b *Book) expire() {
	if b.cfg.Deadline == 0 {
		return
	}
	for _, l := range b.leases {
		if l.overdue || b.now-l.since < b.cfg.Deadline {
			continue
		}
		if l.round == b.round {
			b.working[l.portion]--
		}
		l.overdue = true
		b.count(l.worker, func(c *Counts) { c.Overdue++ })
		b.unstaff(l)
		b.say("worker %d is overdue with portion %d of round %d", l.worker, l.portion, l.round)
	}
}

// close takes an open lease out of the book's lists.
func (b *Book) close(at int) *lease {
	l := b.leases[at]
	b.leases = slices.Delete(b.leases, at, at+1)
	if l.round == b.round && !l.overdue {
		b.working[l.portion]--
	}
	return l
}

// unstaff gives back the portion of a lease that has failed, if nobody else works
// on it.
func (b *Book) unstaff(l *lease) {
	p := l.portion
	if l.round == b.round && !b.answered[p] && b.working[p] == 0 && !slices.Contains(b.back, p) {
		b.back = append(b.back, p)
	}
}

// serve gives portions to those who wait, as far as there are any, and says
// whether it gave one.
func (b *Book) serve() bool {
	given := false
	b.parked = slices.DeleteFunc(b.parked, func(w int) bool {
		p, ok := b.choose(w)
		if ok {
			b.give(w, p)
			given = true
		}
		return ok
	})
	return given
}

// choose picks a portion for a worker: one that came back, a fresh one, or the one
// that is out longest.
func (b *Book) choose(worker int) (portion int, ok bool) {
	for i, p := range b.back {
		if !b.has(worker, p) {
			b.back = slices.Delete(b.back, i, i+1)
			if b.answered[p] { // by one that was overdue
				return b.choose(worker)
			}
			return p, true
		}
	}
	if b.fresh < len(b.answered) {
		b.fresh++
		return b.fresh - 1, true
	}
	for _, l := range b.leases {
		if l.round == b.round && !l.overdue && !b.answered[l.portion] && b.working[l.portion] < b.cfg.Copies &&
			b.now-l.since >= b.cfg.Patience && !b.has(worker, l.portion) {
			return l.portion, true
		}
	}
	return 0, false
}

// has says whether a worker has a lease on a portion of this round.
func (b *Book) has(worker, portion int) bool {
	return slices.ContainsFunc(b.leases, func(l *lease) bool {
		return l.worker == worker && l.portion == portion && l.round == b.round
	})
}

func (b *Book) give(worker, portion int) {
	others := b.working[portion]
	b.working[portion]++
	b.leases = append(b.leases, &lease{worker: worker, portion: portion, round: b.round, since: b.now})
	b.count(worker, func(c *Counts) {
		c.Given++
		c.Open++
		if others > 0 {
			c.Copies++
		}
	})
	b.actions = append(b.actions, Action{Kind: ActionGive, Worker: worker, Round: b.round, Portion: portion, Copy: others})
	b.say("worker %d gets portion %d of round %d, on which %d others work", worker, portion, b.round, others)
}

// count counts something for a worker and for all.
func (b *Book) count(worker int, f func(*Counts)) {
	f(&b.total)
	if c := b.workers[worker]; c != nil {
		f(c)
	}
}
