package portion

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newBook(t testing.TB, cfg Config) *Book {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// script runs events and returns the actions as lines.
func script(b *Book, at time.Duration, events ...Event) []string {
	var out []string
	for _, ev := range events {
		actions, _ := b.Step(at, ev)
		for _, a := range actions {
			line := fmt.Sprintf("%v %d", a.Kind, a.Worker)
			if a.Kind == ActionGive {
				line += fmt.Sprintf(": %d/%d", a.Round, a.Portion)
			}
			if a.Copy > 0 {
				line += fmt.Sprintf(" copy %d", a.Copy)
			}
			if a.Kind == ActionOver {
				line = fmt.Sprintf("over %d: %g of %g", a.Round, a.Loss, a.Weight)
			}
			if a.Err != nil {
				line += ": " + a.Err.Error()
			}
			out = append(out, line)
		}
	}
	return out
}

func begin(round uint64, n int) Event { return Event{Kind: EventBegin, Round: round, Portions: n} }
func ask(w int) Event                 { return Event{Kind: EventAsk, Worker: w} }
func lost(w int) Event                { return Event{Kind: EventLost, Worker: w} }
func done(w int, round uint64, p int) Event {
	return Event{Kind: EventDone, Worker: w, Round: round, Portion: p, Loss: loss(round, p), Weight: 2}
}

// loss is what a portion's loss is, whoever computes it: sums of it are exact and
// tell which portions are in them.
func loss(round uint64, p int) float64 { return float64((p+1)*(p+1)) + float64(round) }

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestSlowestTwice: when nothing is left the portion that is out longest is given
// out again, once, and the first answer counts.
func TestSlowestTwice(t *testing.T) {
	b := newBook(t, Config{})
	expect(t, script(b, 0, ask(1), begin(1, 3), ask(2)), "wait 1", "give 1: 1/0", "give 2: 1/1")
	expect(t, script(b, 5, done(2, 1, 1), ask(2)), "counted 2", "give 2: 1/2")
	expect(t, script(b, 6, ask(3), ask(4), ask(5)), "give 3: 1/0 copy 1", "give 4: 1/2 copy 1", "wait 5")
	expect(t, script(b, 7, done(3, 1, 0)), "counted 3")
	expect(t, script(b, 7, done(1, 1, 0), done(1, 1, 0)), "late 1", "late 1")
	expect(t, script(b, 8, done(4, 1, 2)), "counted 4", "over 1: 17 of 6")
	expect(t, script(b, 9, ask(1), begin(2, 1)), "wait 1", "give 5: 2/0", "give 1: 2/0 copy 1")
	expect(t, script(b, 10, done(2, 1, 2), ask(2)), "late 2", "wait 2") // of the last round
	expect(t, script(b, 10, done(1, 2, 0)), "counted 1", "over 2: 3 of 2")
	want := Counts{Given: 7, Counted: 4, Late: 2, Open: 1, Copies: 3, Stray: 1}
	if diff := cmp.Diff(want, b.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestPatience: a copy is given only of what has been out for long.
func TestPatience(t *testing.T) {
	b := newBook(t, Config{Patience: 10})
	expect(t, script(b, 0, begin(1, 1), ask(1)), "give 1: 1/0")
	expect(t, script(b, 3, ask(2)), "wait 2")
	if at, ok := b.Due(); !ok || at != 10 {
		t.Errorf("due at %d, %v, want 10", at, ok)
	}
	expect(t, script(b, 9, Event{Kind: EventTick}))
	expect(t, script(b, 10, Event{Kind: EventTick}), "give 2: 1/0 copy 1")
	if at, ok := b.Due(); ok {
		t.Errorf("due at %d, want never", at)
	}
}

// TestNoCopies: with one copy nothing is computed twice.
func TestNoCopies(t *testing.T) {
	b := newBook(t, Config{Copies: 1, Hold: 2})
	expect(t, script(b, 0, begin(1, 2), ask(1), ask(1), ask(2)), "give 1: 1/0", "give 1: 1/1", "wait 2")
	expect(t, script(b, 1, lost(1)), "give 2: 1/0")
	expect(t, script(b, 1, ask(2)), "give 2: 1/1")
}

// TestDeadline: what is out for too long is given to others, before what is
// fresh, and its worker may still be the first.
func TestDeadline(t *testing.T) {
	b := newBook(t, Config{Deadline: 10, Copies: 1})
	expect(t, script(b, 0, begin(1, 3), ask(1)), "give 1: 1/0")
	expect(t, script(b, 2, ask(2)), "give 2: 1/1")
	if at, ok := b.Due(); !ok || at != 10 {
		t.Errorf("due at %d, %v, want 10", at, ok)
	}
	expect(t, script(b, 10, ask(3)), "give 3: 1/0")
	expect(t, script(b, 11, done(1, 1, 0), ask(1)), "counted 1", "give 1: 1/2")
	expect(t, script(b, 11, done(3, 1, 0), done(2, 1, 1), done(1, 1, 2)), "late 3", "counted 2", "counted 1", "over 1: 17 of 6")
	want := Counts{Given: 4, Counted: 3, Late: 1, Overdue: 1}
	if diff := cmp.Diff(want, b.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	// An answer that comes after the portion came back, and before it is given again.
	expect(t, script(b, 20, begin(2, 1), ask(1)), "give 1: 2/0")
	expect(t, script(b, 30, Event{Kind: EventTick}))
	expect(t, script(b, 31, done(1, 2, 0), ask(2)), "counted 1", "over 2: 3 of 2", "wait 2")
	// A worker that is overdue and then lost gives its portion back once.
	expect(t, script(b, 40, begin(3, 1)), "give 2: 3/0")
	expect(t, script(b, 50, lost(2), ask(1), ask(3)), "give 1: 3/0", "wait 3")
}

// TestLost: a dead worker's portions go back, and its answers count no more.
func TestLost(t *testing.T) {
	b := newBook(t, Config{Copies: 1})
	expect(t, script(b, 0, begin(1, 3), ask(1), ask(2), lost(1)), "give 1: 1/0", "give 2: 1/1")
	expect(t, script(b, 0, done(1, 1, 0), ask(1)), "late 1", "give 1: 1/0") // it is there again
	expect(t, script(b, 0, ask(3), ask(4), lost(4), lost(9)), "give 3: 1/2", "wait 4")
	expect(t, script(b, 0, lost(2))) // 4 must not get it: it is gone
	expect(t, script(b, 0, ask(5)), "give 5: 1/1")
}

func TestRefused(t *testing.T) {
	for says, events := range map[string][]Event{
		"unknown event 0": {{}},
		"round 2 begins, but 1 portions of round 1 are missing": {begin(1, 1), begin(2, 1)},
		"round 1 cannot follow round 1":                         {begin(1, 1), ask(1), done(1, 1, 0), begin(1, 1)},
		"1 to 1048576 portions, round 1 has 0":                  {begin(1, 0)},
		"round 1 has 1048577":                                   {begin(1, PortionsMax+1)},
		"worker 1 asks again while it waits":                    {ask(1), ask(1)},
		"worker 1 asks for more and has 1 portions":             {begin(1, 2), ask(1), ask(1)},
		"done round 2, which never began":                       {begin(1, 2), ask(1), done(1, 2, 0)},
		"portion 2 of round 1, which does not exist":            {begin(1, 2), ask(1), done(1, 1, 2)},
		"portion -1 of round 1, which does not exist":           {begin(1, 2), ask(1), done(1, 1, -1)},
		"the weight of portion 0 is NaN":                        {begin(1, 2), ask(1), {Kind: EventDone, Worker: 1, Round: 1, Weight: math.NaN()}},
	} {
		b := newBook(t, Config{})
		script(b, 0, events[:len(events)-1]...)
		before, missing := b.Counts(), b.Missing()
		actions, why := b.Step(0, events[len(events)-1])
		if len(actions) != 1 || actions[0].Kind != ActionRefuse || !errors.Is(actions[0].Err, ErrUsage) ||
			!strings.Contains(actions[0].Err.Error(), says) || !strings.Contains(why, says) {
			t.Errorf("%+v because %s, want a refusal that says %q", actions, why, says)
		}
		if before != b.Counts() || missing != b.Missing() {
			t.Errorf("%s: the refusal changed %+v to %+v", says, before, b.Counts())
		}
	}
	for _, cfg := range []Config{{Copies: -1}, {Hold: HoldMax + 1}, {Patience: -1}, {Deadline: -1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, portions := rapid.IntRange(0, 1000).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "portions")
		at := 0
		for p := range portions {
			lo, hi := Rows(rows, portions, p)
			if lo != at || hi-lo != rows/portions && hi-lo != rows/portions+1 {
				t.Fatalf("portion %d of %d of %d rows is [%d, %d), after %d", p, portions, rows, lo, hi, at)
			}
			at = hi
		}
		if at != rows {
			t.Fatalf("%d of %d rows", at, rows)
		}
	})
}

// TestFastTakeMore: of four workers of which one is three times as slow, each takes
// what its speed allows, and the round ends as if the slow one's last portion had
// been shared.
func TestFastTakeMore(t *testing.T) {
	s := newSim(t, Config{}, 40)
	for w, speed := range []time.Duration{10, 10, 10, 30} {
		s.workers[w] = &simWorker{speed: func() time.Duration { return speed }, alive: true}
	}
	s.round(1)
	if s.now != 120 {
		t.Errorf("the round took %d, want 120", s.now)
	}
	for w, want := range []int64{12, 12, 12, 4} {
		if got := s.book.Of(w).Counted; got != want {
			t.Errorf("worker %d counts for %d portions, want %d", w, got, want)
		}
	}
}

// TestRandomRounds: whatever the speeds, deaths, returns, repeated and late
// answers, every portion counts exactly once a round and none is lost.
func TestRandomRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Copies:   rapid.IntRange(1, 3).Draw(t, "copies"),
			Hold:     rapid.IntRange(1, 3).Draw(t, "hold"),
			Patience: time.Duration(rapid.SampledFrom([]int{0, 0, 5, 50}).Draw(t, "patience")),
			Deadline: time.Duration(rapid.SampledFrom([]int{0, 20, 100}).Draw(t, "deadline")),
		}
		s := newSim(t, cfg, rapid.IntRange(1, 40).Draw(t, "portions"))
		for w := range rapid.IntRange(1, 5).Draw(t, "workers") {
			slow := rapid.IntRange(1, 40).Draw(t, "slowness")
			s.workers[w] = &simWorker{alive: true, speed: func() time.Duration {
				return time.Duration(rapid.IntRange(1, slow).Draw(t, "time"))
			}}
		}
		for range rapid.IntRange(0, 6).Draw(t, "deaths") {
			w := rapid.IntRange(0, len(s.workers)-1).Draw(t, "who")
			at := time.Duration(rapid.IntRange(0, 200).Draw(t, "when"))
			s.push(simEvent{at: at, worker: w, kind: "die"})
			s.push(simEvent{at: at + time.Duration(rapid.IntRange(1, 100).Draw(t, "for")), worker: w, kind: "return"})
		}
		s.zombies = rapid.Bool().Draw(t, "zombies")
		for round := range rapid.IntRange(1, 3).Draw(t, "rounds") {
			s.round(uint64(round + 1))
		}
	})
}

// sim runs workers in virtual time against a book, beside an oracle that keeps its
// own account.
type sim struct {
	t        rapid.TB
	book     *Book
	cfg      Config
	portions int
	now      time.Duration
	queue    simQueue
	count    int
	workers  map[int]*simWorker
	zombies  bool // the dead still answer

	current uint64
	counted map[int]bool // of this round
	over    bool
	leases  map[simLease]time.Duration
}

type simLease struct {
	worker  int
	round   uint64
	portion int
}

type simWorker struct {
	speed  func() time.Duration
	alive  bool
	life   int
	parked bool
	free   time.Duration // when it has computed what it has
}

type simEvent struct {
	at           time.Duration
	order        int
	kind         string
	worker, life int
	lease        simLease
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any     { x := (*q)[len(*q)-1]; *q = (*q)[:len(*q)-1]; return x }

func newSim(t rapid.TB, cfg Config, portions int) *sim {
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &sim{t: t, book: b, cfg: b.cfg, portions: portions, workers: map[int]*simWorker{}, leases: map[simLease]time.Duration{}}
}

func (s *sim) push(e simEvent) {
	e.order = s.count
	s.count++
	heap.Push(&s.queue, e)
}

// round runs one round to its end.
func (s *sim) round(round uint64) {
	s.current, s.counted, s.over = round, map[int]bool{}, false
	s.step(begin(round, s.portions))
	for w := range len(s.workers) {
		s.asks(w)
	}
	for steps := 0; !s.over; steps++ {
		if steps > 100_000 {
			s.t.Fatalf("round %d does not end: %d of %d portions count", round, len(s.counted), s.portions)
		}
		if at, ok := s.book.Due(); ok && (len(s.queue) == 0 || at <= s.queue[0].at) {
			if at <= s.now {
				s.t.Fatalf("a tick was due at %d, now is %d", at, s.now)
			}
			s.now = at
			s.step(Event{Kind: EventTick})
			continue
		}
		if len(s.queue) == 0 {
			s.t.Fatalf("round %d: nothing will happen any more, and %d of %d portions count", round, len(s.counted), s.portions)
		}
		e := heap.Pop(&s.queue).(simEvent)
		s.now = max(s.now, e.at)
		s.happen(e)
	}
	if len(s.counted) != s.portions {
		s.t.Fatalf("round %d is over with %d of %d portions", round, len(s.counted), s.portions)
	}
}

// asks lets a worker ask for as much as it may have.
func (s *sim) asks(w int) {
	x := s.workers[w]
	for x.alive && !x.parked && s.held(w) < s.cfg.Hold {
		s.step(ask(w))
	}
}

func (s *sim) held(w int) (n int) {
	for l := range s.leases {
		if l.worker == w {
			n++
		}
	}
	return n
}

func (s *sim) happen(e simEvent) {
	x := s.workers[e.worker]
	switch e.kind {
	case "die":
		if x.alive {
			x.alive, x.parked, x.free = false, false, 0
			x.life++
			for l := range s.leases {
				if l.worker == e.worker {
					delete(s.leases, l)
				}
			}
			s.step(lost(e.worker))
		}
	case "return":
		if !x.alive {
			x.alive = true
			s.asks(e.worker)
		}
	case "answer":
		if e.life != x.life && !s.zombies {
			return
		}
		s.step(done(e.worker, e.lease.round, e.lease.portion))
		if e.order%3 == 0 { // the reply was lost: again
			s.step(done(e.worker, e.lease.round, e.lease.portion))
		}
		s.asks(e.worker)
	}
}

// step steps the book, and judges what it does.
func (s *sim) step(ev Event) {
	lease := simLease{ev.Worker, ev.Round, ev.Portion}
	_, had := s.leases[lease]
	first := ev.Kind == EventDone && had && ev.Round == s.current && !s.counted[ev.Portion]
	if ev.Kind == EventDone {
		delete(s.leases, lease)
	}
	actions, why := s.book.Step(s.now, ev)
	for i, a := range actions {
		switch a.Kind {
		case ActionCounted:
			if !first || i > 0 {
				s.t.Fatalf("%+v counts, it must not: %s", ev, why)
			}
			s.counted[a.Portion] = true
		case ActionLate:
			if first || ev.Kind != EventDone {
				s.t.Fatalf("%+v is late, it is not: %s", ev, why)
			}
		case ActionWait:
			s.workers[a.Worker].parked = true
		case ActionGive:
			s.given(a)
		case ActionOver:
			s.judge(a)
		case ActionRefuse:
			s.t.Fatalf("%+v was refused: %v", ev, a.Err)
		}
	}
	if first != (len(actions) > 0 && actions[0].Kind == ActionCounted) {
		s.t.Fatalf("%+v: the first answer to a portion must count: %s", ev, why)
	}
	c := s.book.Counts()
	if !c.Balanced() || c.Open != int64(len(s.leases)) {
		s.t.Fatalf("after %+v: %d leases are open, and counts are %+v", ev, len(s.leases), c)
	}
	s.idle(ev)
}

// working counts who works on a portion and is not overdue.
func (s *sim) working(portion int) (n int) {
	for l, since := range s.leases {
		if l.round == s.current && l.portion == portion && (s.cfg.Deadline == 0 || s.now-since < s.cfg.Deadline) {
			n++
		}
	}
	return n
}

func (s *sim) given(a Action) {
	x := s.workers[a.Worker]
	lease := simLease{a.Worker, a.Round, a.Portion}
	_, has := s.leases[lease]
	switch {
	case !x.alive || a.Round != s.current || has || s.counted[a.Portion]:
		s.t.Fatalf("%+v: must not be given", a)
	case s.held(a.Worker) >= s.cfg.Hold:
		s.t.Fatalf("%+v: the worker has too many already", a)
	case a.Copy != s.working(a.Portion) || a.Copy >= s.cfg.Copies:
		s.t.Fatalf("%+v: %d work on it, %d may", a, s.working(a.Portion), s.cfg.Copies)
	}
	x.parked = false
	s.leases[lease] = s.now
	x.free = max(x.free, s.now) + x.speed()
	s.push(simEvent{at: x.free, kind: "answer", worker: a.Worker, life: x.life, lease: lease})
}

// idle demands that no portion waits while a worker does.
func (s *sim) idle(ev Event) {
	for w, x := range s.workers {
		if !x.parked || s.over {
			continue
		}
		for p := range s.portions {
			_, has := s.leases[simLease{w, s.current, p}]
			if !s.counted[p] && s.working(p) == 0 && !has && s.current > 0 {
				s.t.Fatalf("after %+v worker %d waits, and nobody works on portion %d", ev, w, p)
			}
		}
	}
}

func (s *sim) judge(a Action) {
	sum := 0.
	for p := range s.portions {
		sum += loss(s.current, p)
	}
	if s.over || a.Round != s.current || a.Loss != sum || a.Weight != float64(2*s.portions) {
		s.t.Fatalf("%+v: want loss %g and weight %d of round %d, once", a, sum, 2*s.portions, s.current)
	}
	s.over = true
}
