package history

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// decide checks a set against the model.
func (s *shard) decide(i int, r *Record) {
	v := r.Verdict
	if v.Version != s.version || len(v.Set) == 0 {
		s.fail(RuleVersion, i, "a verdict on version %d with %d members, the shard is at %d", v.Version, len(v.Set), s.version)
	}
	for k, m := range v.Set {
		s.member(i, m)
		if k > 0 && v.Set[k-1].Worker >= m.Worker {
			s.failMember(RuleSet, i, m, "the set is not one contribution a worker, by rank")
		}
	}
	if s.model.Synchronous() {
		s.together(i, v)
	} else {
		s.alone(i, v)
	}
	skip := s.contract(i, v)
	outcome := consistency.Applied
	if skip {
		outcome = consistency.Skipped
	}
	for _, m := range v.Set {
		w := s.workers[m.Worker]
		w.applied = m.Clock
		if f := s.fates[clock{m.Worker, m.Clock}]; f.life == w.life {
			w.gave = f.base
		}
		if !skip {
			w.stale[s.version-m.Base]++
		}
		s.finish(i, clock{m.Worker, m.Clock}, outcome)
	}
	s.decided = append(s.decided, i)
	if !skip || s.model.Synchronous() {
		s.version++
	}
}

func (s *shard) failMember(rule Rule, i int, m consistency.Member, format string, args ...any) {
	panic(&ViolationError{
		Rule: rule, Record: i, Shard: s.number, Worker: m.Worker, Clock: m.Clock, Version: s.version, Text: fmt.Sprintf(format, args...),
	})
}

// member checks that a contribution of a set is there, as it is said to be.
func (s *shard) member(i int, m consistency.Member) {
	f := s.fates[clock{m.Worker, m.Clock}]
	switch {
	case f == nil || !f.whole && !f.outcome.Final():
		s.failMember(RuleSent, i, m, "is in a set and was never stored")
	case f.outcome.Final():
		s.failMember(RuleOnce, i, m, "is in a set, and was %v before", f.outcome)
	case m.Base != f.base || m.Weight != f.weight:
		s.failMember(RuleSent, i, m, "is in a set with base %d and weight %v, and stored with %d and %v", m.Base, m.Weight, f.base, f.weight)
	case m.Clock <= s.workers[m.Worker].applied:
		s.failMember(RuleOrder, i, m, "is applied after clock %d", s.workers[m.Worker].applied)
	}
}

// alone checks a set of asp or ssp.
func (s *shard) alone(i int, v *consistency.Verdict) {
	m := v.Set[0]
	if len(v.Set) != 1 {
		s.failMember(RuleSet, i, m, "a set of %d under %s", len(v.Set), s.model.Kind)
	}
	if lag := s.model.MaxVersionLag; lag != consistency.Unbounded && s.version-m.Base > lag {
		s.failMember(RuleLag, i, m, "is applied %d versions behind, the bound is %d", s.version-m.Base, lag)
	}
}

// together checks a set of bsp or quorum.
func (s *shard) together(i int, v *consistency.Verdict) {
	for _, m := range v.Set {
		f := s.fates[clock{m.Worker, m.Clock}]
		if f.base != s.version {
			s.failMember(RuleSet, i, m, "is made of version %d, in a set of version %d", f.base, s.version)
		}
		if s.lead() && (!f.ready || f.least != s.version) {
			s.failMember(RuleSet, i, m, "is in a set, and not ready with version %d on all shards", s.version)
		}
	}
	if s.lead() {
		if need := s.need(); len(v.Set) != need {
			s.failMember(RuleSet, i, v.Set[0], "%d contributions make the version, want %d", len(v.Set), need)
		}
		return
	}
	at := int(s.version - s.c.job.Version)
	lead := s.c.shards[0].decided
	if at >= len(lead) {
		s.failMember(RuleSet, i, v.Set[0], "the lead never decided version %d", s.version)
	}
	if want := s.c.records[lead[at]].Verdict; !slices.EqualFunc(want.Set, v.Set, func(a, b consistency.Member) bool {
		return a.Worker == b.Worker && a.Clock == b.Clock
	}) {
		s.failMember(RuleSet, i, v.Set[0], "the set is %v here, and %v on the lead", v.Set, want.Set)
	}
}

// need counts who makes the lead's version: all, or k of those that gave a
// contribution to it or still can.
func (s *shard) need() int {
	can := 0
	for _, name := range s.c.job.Workers {
		w := s.workers[name]
		counts := w.standing == live || w.standing == lost && s.model.Waits()
		for n, f := range s.pending {
			counts = counts || n.worker == name && f.ready && f.least == s.version && f.base == s.version
		}
		if counts {
			can++
		}
	}
	if s.model.Kind == consistency.Quorum {
		return min(s.model.K, can)
	}
	return can
}

// contract checks what a set is divided by, and whether it counts.
func (s *shard) contract(i int, v *consistency.Verdict) (skip bool) {
	weights, weighing, finite := 0., 0, true
	for _, m := range v.Set {
		f := s.fates[clock{m.Worker, m.Clock}]
		weights += f.weight
		if f.weight > 0 {
			weighing++
		}
		finite = finite && f.finite
		want := 1.
		if s.model.Scale == consistency.Mean {
			want = 0
			if f.weight > 0 {
				want = 1 / f.weight
			}
		}
		if m.Scale != want {
			s.failMember(RuleContract, i, m, "is multiplied by %v, want %v", m.Scale, want)
		}
	}
	total := weights
	switch s.model.Scale { //nolint:exhaustive // Weighted is above
	case consistency.Mean:
		total = float64(weighing)
	case consistency.Sum:
		total = 1
	default:
	}
	rate := 1.
	skip = weighing == 0 || !finite
	if s.model.Stale == consistency.Inverse && !skip {
		rate = 1 / (1 + float64(s.version-v.Set[0].Base))
	}
	if v.Total != total || v.Rate != rate {
		s.failMember(RuleContract, i, v.Set[0], "the sum is divided by %v at %v of the rate, want %v and %v", v.Total, v.Rate, total, rate)
	}
	if v.Skipped != skip {
		s.failMember(RuleReason, i, v.Set[0], "skipped is %v; weights %v, all finite %v", v.Skipped, weights, finite)
	}
	return skip
}

// broken is a rule that an answer would break.
type broken struct {
	rule Rule
	text string
}

// forbidden says why a read may not be answered now, or nil.
func (s *shard) forbidden(r *Record, w *worker) *broken {
	no := func(rule Rule, format string, args ...any) *broken {
		return &broken{rule, fmt.Sprintf(format, args...)}
	}
	asked := s.c.asked[request{r.Shard, r.Worker, r.Request}]
	if least := s.c.records[asked].Version; s.version < least {
		return no(RuleVersion, "asked for version %d at least", least)
	}
	switch {
	case w.standing == lost:
		return no(RuleOrder, "its worker was lost")
	case w.standing == left:
		return nil
	case w.clock < r.Clock:
		return no(RuleOwn, "the read is for clock %d, and of its own worker it has %d", r.Clock, w.clock)
	}
	if own := s.undecided(r.Worker); own != nil && s.lead() {
		return no(RuleOwn, "its own clock %d is undecided", own.clock)
	}
	if s.model.Kind == consistency.SSP {
		for _, name := range s.c.job.Workers {
			if u := s.workers[name]; u.standing == live && u.clock < r.Clock-s.model.Slack {
				return no(RuleSlack, "a read at clock %d has only %d clocks of worker %d, the slack is %d", r.Clock, u.clock, name, s.model.Slack)
			}
		}
	}
	return nil
}

// serve checks an answer to a read.
func (s *shard) serve(i int, r *Record, w *worker) {
	name := request{r.Shard, r.Worker, r.Request}
	if k, ok := s.c.asked[name]; !ok || s.c.records[k].Clock != r.Clock {
		s.fail(RuleAnswer, i, "answers read %d, which nobody asked for clock %d", r.Request, r.Clock)
	}
	if b := s.forbidden(r, w); b != nil {
		s.fail(b.rule, i, "%s", b.text)
	}
	if r.Version != s.version {
		s.fail(RuleVersion, i, "read %d is answered from version %d", r.Request, r.Version)
	}
	for k, u := range s.c.job.Workers {
		if len(r.Clocks) != len(s.c.job.Workers) || r.Clocks[k] != s.workers[u].clock {
			s.fail(RuleVersion, i, "read %d is answered with clocks %v; worker %d is at %d", r.Request, r.Clocks, u, s.workers[u].clock)
		}
	}
	for n, f := range s.pending {
		if !s.model.Synchronous() || f.base < s.version {
			s.fail(RulePending, i, "clock %d of worker %d, made of version %d, is still pending", n.clock, n.worker, f.base)
		}
	}
	if s.model.Kind == consistency.BSP && w.standing == live && w.gave >= 0 && r.Version != w.gave+1 {
		s.fail(RuleVersion, i, "the worker gave to version %d and reads version %d", w.gave, r.Version)
	}
	s.abreast(i, r)
	delete(s.held, name)
	s.c.served[name] = append(s.c.served[name], i)
}

// abreast checks that no shard serves an older version than the lead did for the
// same clock.
func (s *shard) abreast(i int, r *Record) {
	if !s.model.Synchronous() || s.workers[r.Worker].standing != live {
		return
	}
	of := clock{r.Worker, r.Clock}
	least, ok := s.c.leadRead[of]
	switch {
	case s.lead():
		if !ok || r.Version < least {
			s.c.leadRead[of] = r.Version
		}
	case ok && r.Version < least:
		s.fail(RuleVersion, i, "read %d is answered from version %d, the lead answered from %d", r.Request, r.Version, least)
	}
}
