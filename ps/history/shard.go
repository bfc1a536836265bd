package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// standing is whether a worker counts.
type standing uint8

const (
	live standing = iota
	left
	lost
)

// fate is what a shard did with a contribution.
type fate struct {
	base    int64
	weight  float64
	finite  bool
	life    int  // the worker's when it was stored
	whole   bool // all pieces came
	ready   bool
	least   int64               // the base it was ready with
	outcome consistency.Outcome // Pending until it ended
}

// worker is one on a shard.
type worker struct {
	standing standing
	clock    int64
	life     int
	// unsettled: it joined, and no clock of it closed since.
	unsettled bool
	applied   int64 // its last clock that was in a set, -1
	gave      int64 // base of its last contribution in a set in this life, -1
	counts    consistency.Counts
	stale     map[int64]int64
}

// shard replays what one shard wrote.
type shard struct {
	c       *checker
	model   *consistency.Model
	number  int
	version int64
	ended   bool
	workers map[consistency.Worker]*worker
	fates   map[clock]*fate
	pending map[clock]*fate
	held    map[request]int
	decided []int // records; of version job.Version+i under bsp and quorum
	readied []int
}

func newShard(c *checker, number int) *shard {
	s := &shard{
		c: c, model: &c.job.Model, number: number, version: c.job.Version, workers: make(map[consistency.Worker]*worker),
		fates: make(map[clock]*fate), pending: make(map[clock]*fate), held: make(map[request]int),
	}
	for _, w := range c.job.Workers {
		s.workers[w] = &worker{clock: c.job.Clock, applied: -1, gave: -1, stale: make(map[int64]int64)}
	}
	return s
}

func (s *shard) lead() bool { return s.number == 0 && s.model.Synchronous() }

func (s *shard) fail(rule Rule, record int, format string, args ...any) {
	s.c.fail(rule, record, s.version, format, args...)
}

// record replays one record.
func (s *shard) record(i int, r *Record) {
	w := s.workers[r.Worker]
	if s.ended && r.Kind != Dropped && r.Kind != Counted {
		s.fail(RuleForm, i, "%s after the end", r.Kind)
	}
	switch r.Kind { //nolint:exhaustive // workers write the others
	case Joined:
		w.standing, w.unsettled, w.gave = live, true, -1
		w.life++
		w.clock = max(w.clock, r.Clock)
		s.forget(r.Worker)
	case Left:
		w.standing = left
	case Lost:
		w.standing = lost
		s.forget(r.Worker)
	case Stored:
		s.stored(i, r, w)
	case Ready:
		s.ready(i, r)
	case Decided:
		s.decide(i, r)
	case Dropped:
		s.dropped(i, r, w)
	case Held:
		if why := s.forbidden(r, w); why == nil {
			s.fail(RuleReason, i, "read %d waits for nothing", r.Request)
		}
		s.held[request{r.Shard, r.Worker, r.Request}] = i
	case Served:
		s.serve(i, r, w)
	case Counted:
		s.counted(i, r, w)
	case Restarted:
		clear(s.held)
	case Ended:
		s.end(i)
	default:
		s.fail(RuleForm, i, "unknown kind %q", r.Kind)
	}
}

// forget takes the worker's reads back: their process is gone.
func (s *shard) forget(w consistency.Worker) {
	maps.DeleteFunc(s.held, func(r request, _ int) bool { return r.worker == w })
}

func (s *shard) stored(i int, r *Record, w *worker) {
	name := clock{r.Worker, r.Clock}
	sent, ok := s.c.sent[at{r.Shard, r.Worker, r.Clock}]
	switch {
	case !ok:
		s.fail(RuleSent, i, "is stored and was never sent")
	case s.fates[name] != nil:
		s.fail(RuleOnce, i, "is stored a second time")
	case r.Base != sent.base || r.Weight != sent.weight || r.Finite != sent.finite:
		s.fail(RuleSent, i, "was sent with base %d and weight %v (finite: %v), and is stored with %d and %v (%v)",
			sent.base, sent.weight, sent.finite, r.Base, r.Weight, r.Finite)
	case r.Clock != w.clock:
		s.fail(RuleOrder, i, "is stored when the worker's clock is %d", w.clock)
	case s.lead() && s.undecided(r.Worker) != nil:
		s.fail(RuleSet, i, "is stored while an earlier one of its worker is undecided")
	case w.standing != live:
		s.fail(RuleOrder, i, "is stored of a worker that was lost or has left")
	case r.Base > s.version:
		s.fail(RuleBase, i, "is made of version %d", r.Base)
	}
	w.clock++
	w.unsettled = false
	w.counts.Pushed++
	f := &fate{base: r.Base, weight: r.Weight, finite: r.Finite, life: w.life, whole: true, outcome: consistency.Pending}
	s.fates[name], s.pending[name] = f, f
}

func (s *shard) ready(i int, r *Record) {
	f := s.pending[clock{r.Worker, r.Clock}]
	if !s.lead() || f == nil || f.ready {
		s.fail(RuleForm, i, "ready at a shard that does not lead, or with what is not pending, or twice")
	}
	for n := range s.c.job.Shards {
		sent, ok := s.c.sent[at{n, r.Worker, r.Clock}]
		if !ok || sent.base < r.Base {
			s.fail(RuleBase, i, "is said to be made of version %d everywhere; to shard %d it was sent (%v) with base %d", r.Base, n, ok, sent.base)
		}
	}
	f.ready, f.least = true, r.Base
	s.readied = append(s.readied, i)
}

// finish ends a contribution.
func (s *shard) finish(i int, name clock, outcome consistency.Outcome) {
	f, w := s.fates[name], s.workers[name.worker]
	if f.outcome.Final() {
		panic(&ViolationError{
			Rule: RuleOnce, Record: i, Shard: s.number, Worker: name.worker, Clock: name.clock, Version: s.version,
			Text: fmt.Sprintf("is %v and was %v before", outcome, f.outcome),
		})
	}
	f.outcome = outcome
	delete(s.pending, name)
	w.counts.End(outcome)
}

func (s *shard) dropped(i int, r *Record, w *worker) {
	name := clock{r.Worker, r.Clock}
	f := s.fates[name]
	if f == nil { // pieces of it had come
		if _, ok := s.c.sent[at{r.Shard, r.Worker, r.Clock}]; !ok || r.Outcome != consistency.Expired {
			s.fail(RuleSent, i, "is dropped as %v and was never stored", r.Outcome)
		}
		if r.Clock != w.clock && !w.unsettled {
			s.fail(RuleOrder, i, "is dropped when the worker's clock is %d", w.clock)
		}
		w.clock = max(w.clock, r.Clock+1)
		w.counts.Pushed++
		f = &fate{life: w.life}
		if w.unsettled { // it was of the life before
			f.life, w.unsettled = w.life-1, false
		}
		s.fates[name] = f
	}
	if why := s.undue(r, w, f); why != "" && !f.outcome.Final() {
		s.fail(RuleReason, i, "is dropped as %v: %s", r.Outcome, why)
	}
	s.finish(i, name, r.Outcome)
}

// undue says why a contribution had not to be dropped, or nothing.
func (s *shard) undue(r *Record, w *worker, f *fate) string {
	switch r.Outcome { //nolint:exhaustive // the others are no reasons
	case consistency.Late:
		behind := s.version - f.base
		switch {
		case s.model.Synchronous() && (behind > 0 || f.ready && f.least < s.version || s.overtaken(r)):
		case s.model.Synchronous():
			return "it is made of the version that the shard is at"
		case s.model.MaxVersionLag == consistency.Unbounded:
			return "the model has no bound"
		case behind <= s.model.MaxVersionLag:
			return "it is within the bound"
		}
		return ""
	case consistency.Expired:
		switch {
		case s.ended:
			return ""
		case s.lead() && f.ready:
			return "all shards have it, and the run goes on"
		case f.life < w.life, w.standing != live:
			return ""
		}
		return "its worker is there, and the run goes on"
	default:
		return "that is no reason to drop it"
	}
}

// undecided returns the worker's contribution that is pending, if there is one.
func (s *shard) undecided(w consistency.Worker) *clock {
	for name := range s.pending {
		if name.worker == w {
			return &name
		}
	}
	return nil
}

// overtaken reports whether the worker gave a later contribution to the same
// version, at a shard that does not lead: then the lead had dropped this one.
func (s *shard) overtaken(r *Record) bool {
	for name, f := range s.pending {
		if name.worker == r.Worker && name.clock > r.Clock && f.base == s.version && !s.lead() {
			return true
		}
	}
	return false
}

func (s *shard) counted(i int, r *Record, w *worker) {
	want := w.counts
	for name := range s.pending {
		if name.worker == r.Worker {
			want.Pending++
		}
	}
	got := *r.Counts
	if got != want || !got.Balanced() {
		s.fail(RuleCounts, i, "the shard counts %+v, the records say %+v", got, want)
	}
	var stale []consistency.Bucket
	for n, count := range w.stale {
		stale = append(stale, consistency.Bucket{Staleness: n, Count: count})
	}
	slices.SortFunc(stale, func(a, b consistency.Bucket) int { return cmp.Compare(a.Staleness, b.Staleness) })
	if !slices.Equal(stale, r.Staleness) {
		s.fail(RuleCounts, i, "the shard counts staleness %v, the records say %v", r.Staleness, stale)
	}
}

func (s *shard) end(i int) {
	for _, k := range s.held {
		r := &s.c.records[k]
		if s.forbidden(r, s.workers[r.Worker]) == nil {
			s.fail(RuleReason, k, "read %d was never answered, and waited for nothing in the end (record %d)", r.Request, i)
		}
	}
	s.ended = true
}
