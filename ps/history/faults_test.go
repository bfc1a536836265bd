package history_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/history"
)

// fault is a lie that is planted in a true history.
type fault struct {
	name  string
	kinds []consistency.Kind
	// rules are those that find it: the first that is looked at.
	rules []history.Rule
	// plant changes the records or the job; it reports whether there was a place.
	plant func(p *planter) bool
}

// planter has a copy of a history to change.
type planter struct {
	rng     *rand.Rand
	job     history.Job
	records []history.Record
}

// pick returns the index of a random record of those that fit, or -1.
func (p *planter) pick(fits func(r *history.Record) bool) int {
	var all []int
	for i := range p.records {
		if fits(&p.records[i]) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[p.rng.IntN(len(all))]
}

// find returns the first record that fits, or nil.
func (p *planter) find(fits func(r *history.Record) bool) *history.Record {
	for i := range p.records {
		if fits(&p.records[i]) {
			return &p.records[i]
		}
	}
	return nil
}

func (p *planter) insert(at int, r history.Record) { p.records = slices.Insert(p.records, at, r) }

// decided picks a set that was applied.
func (p *planter) decided(fits func(r *history.Record) bool) *history.Record {
	i := p.pick(func(r *history.Record) bool { return r.Kind == history.Decided && !r.Verdict.Skipped && fits(r) })
	if i < 0 {
		return nil
	}
	v := *p.records[i].Verdict
	v.Set = slices.Clone(v.Set)
	p.records[i].Verdict = &v
	return &p.records[i]
}

// rebase says of a contribution, everywhere, that it was made of another version
// on a shard.
func (p *planter) rebase(shard int, m *consistency.Member, base int64) {
	for i := range p.records {
		r := &p.records[i]
		if r.Worker != m.Worker || r.Clock != m.Clock {
			continue
		}
		if (r.Kind == history.Sent || r.Kind == history.Stored) && r.Shard == shard {
			r.Base = base
		}
		if r.Kind == history.Ready {
			r.Base = min(r.Base, base)
		}
	}
	m.Base = base
}

func any1(*history.Record) bool { return true }

// early inserts an answer to a read at record i.
func (p *planter) early(i int, of *history.Record) {
	r := *of
	r.Kind = history.Served
	p.insert(i, r)
}

var (
	async = []consistency.Kind{consistency.ASP, consistency.SSP}
	sync  = []consistency.Kind{consistency.BSP, consistency.Quorum}
)

// faults are functions so that the linter sees no variables that change.
func readFaults() []fault {
	return []fault{
		{"a read is answered from a version too old", kinds, []history.Rule{history.RuleVersion, history.RuleBase}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Served && r.Version > p.job.Version })
			if i < 0 {
				return false
			}
			r := &p.records[i]
			for k := range p.records {
				if a := &p.records[k]; a.Kind == history.Answered && a.Shard == r.Shard && a.Worker == r.Worker && a.Request == r.Request {
					a.Version--
				}
			}
			r.Version--
			return true
		}},
		{"a read is answered from one clock too old", kinds, []history.Rule{history.RuleVersion}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Served })
			r := &p.records[i]
			at := p.rng.IntN(len(r.Clocks))
			for k := range p.records {
				if a := &p.records[k]; k == i || a.Kind == history.Answered && a.Shard == r.Shard && a.Worker == r.Worker && a.Request == r.Request {
					a.Clocks = slices.Clone(a.Clocks)
					a.Clocks[at]--
				}
			}
			return true
		}},
		{"the fastest is not held at slack+1", []consistency.Kind{consistency.SSP}, []history.Rule{history.RuleSlack}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Held })
			if i < 0 {
				return false
			}
			p.records[i].Kind = history.Served
			return true
		}},
		{"reads are judged by one slack less", []consistency.Kind{consistency.SSP}, []history.Rule{history.RuleSlack}, func(p *planter) bool {
			// Somebody was served at exactly clock = slowest + slack.
			p.job.Model.Slack--
			return p.job.Model.Slack >= 0 && p.find(func(r *history.Record) bool { return r.Kind == history.Held }) != nil
		}},
		{"the worker is told another version than was served", kinds, []history.Rule{history.RuleAnswer}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Answered })
			p.records[i].Version++
			return true
		}},
		{"a worker does not read what it has written", kinds, []history.Rule{history.RuleOwn}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Stored })
			s := p.records[i]
			asked := p.find(func(r *history.Record) bool {
				return r.Kind == history.Asked && r.Shard == s.Shard && r.Worker == s.Worker && r.Clock == s.Clock+1 && r.Version == 0
			})
			if asked == nil {
				return false
			}
			p.early(i, asked)
			return true
		}},
		{"a read waits for nothing", kinds, []history.Rule{history.RuleReason}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Served })
			r := p.records[i]
			r.Kind = history.Held
			p.insert(i, r)
			return true
		}},
		{"a read is never answered", kinds, []history.Rule{history.RuleReason}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Ended })
			shard := p.records[i].Shard
			for _, w := range p.job.Workers { // held for a version that came
				asked := history.Record{Kind: history.Asked, Shard: shard, Worker: w, Request: 1 << 40, Version: p.job.Version + 1}
				held := asked
				held.Kind = history.Held
				gone := p.find(func(r *history.Record) bool { return r.Worker == w && r.Kind == history.Lost }) != nil
				left := slices.IndexFunc(p.records, func(r history.Record) bool {
					return r.Kind == history.Decided && r.Shard == shard && !r.Verdict.Skipped
				})
				restarts := p.find(func(r *history.Record) bool { return r.Kind == history.Restarted && r.Shard == shard }) != nil
				if gone || restarts || left < 0 {
					continue
				}
				p.insert(left, held)
				p.insert(0, asked)
				return true
			}
			return false
		}},
	}
}

// lossRules are those that may be the first to find that a shard has lost a push:
// from there on its clocks and versions are others.
func lossRules() []history.Rule {
	return []history.Rule{
		history.RuleVersion, history.RuleOrder, history.RuleAnswer, history.RuleCounts, history.RuleOwn, history.RuleSlack,
	}
}

func pushFaults() []fault {
	return []fault{
		{"a push is applied twice", kinds, []history.Rule{history.RuleOnce}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			at := slices.IndexFunc(p.records, func(o history.Record) bool { return o.Verdict == r.Verdict })
			again := *r
			v := *r.Verdict
			v.Version++
			again.Verdict = &v
			p.insert(at+1, again)
			return true
		}},
		{"a push is stored twice", kinds, []history.Rule{history.RuleOnce}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Stored })
			p.insert(i+1, p.records[i])
			return true
		}},
		{"a dropped push is counted as applied", kinds, []history.Rule{history.RuleCounts}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Counted && r.Counts.Dropped() > 0 })
			if i < 0 {
				return false
			}
			c := *p.records[i].Counts
			c.Applied++
			for _, n := range []*int64{&c.Late, &c.Expired, &c.Skipped} {
				if *n > 0 {
					*n--
					break
				}
			}
			p.records[i].Counts = &c
			return true
		}},
		{"a dropped push is acknowledged as applied", kinds, []history.Rule{history.RuleAnswer}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool {
				return r.Kind == history.Acked && r.Outcome.Final() && r.Outcome != consistency.Applied
			})
			if i < 0 {
				return false
			}
			p.records[i].Outcome = consistency.Applied
			return true
		}},
		{"an applied push is dropped as late", async, []history.Rule{history.RuleReason}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			m := r.Verdict.Set[0]
			*r = history.Record{Kind: history.Dropped, Shard: r.Shard, Worker: m.Worker, Clock: m.Clock, Outcome: consistency.Late}
			return true
		}},
		{"a push expires while its worker is there", kinds, []history.Rule{history.RuleReason}, func(p *planter) bool {
			for i := range p.records {
				if r := p.records[i]; r.Kind == history.Stored {
					p.insert(i+1, history.Record{Kind: history.Dropped, Shard: r.Shard, Worker: r.Worker, Clock: r.Clock, Outcome: consistency.Expired})
					return true
				}
			}
			return false
		}},
		{"an acknowledged push is lost", async, lossRules(), func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			m, shard := r.Verdict.Set[0], r.Shard
			v := r.Verdict
			p.records = slices.DeleteFunc(p.records, func(o history.Record) bool {
				return o.Verdict == v || o.Kind == history.Stored && o.Shard == shard && o.Worker == m.Worker && o.Clock == m.Clock
			})
			return true
		}},
		{"a push is applied that nobody sent", kinds, []history.Rule{history.RuleSent, history.RuleBase, history.RuleAnswer}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			m, shard := r.Verdict.Set[0], r.Shard
			p.records = slices.DeleteFunc(p.records, func(o history.Record) bool {
				return o.Kind == history.Sent && o.Shard == shard && o.Worker == m.Worker && o.Clock == m.Clock
			})
			return true
		}},
		{"a push says that it is newer than it is", kinds, []history.Rule{history.RuleBase}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			m := &r.Verdict.Set[0]
			p.rebase(r.Shard, m, m.Base+1)
			return true
		}},
		{"a push that is too old is applied", async, []history.Rule{history.RuleLag}, func(p *planter) bool {
			r := p.decided(func(r *history.Record) bool { return r.Verdict.Version-r.Verdict.Set[0].Base > 0 })
			if r == nil || p.job.Model.MaxVersionLag != consistency.Unbounded {
				return false
			}
			p.job.Model.MaxVersionLag = r.Verdict.Version - r.Verdict.Set[0].Base - 1 // judged by what it was over
			return true
		}},
		{"staleness is counted one bucket too high", kinds, []history.Rule{history.RuleCounts}, func(p *planter) bool {
			i := p.pick(func(r *history.Record) bool { return r.Kind == history.Counted && len(r.Staleness) > 0 })
			if i < 0 {
				return false
			}
			r := &p.records[i]
			r.Staleness = slices.Clone(r.Staleness)
			r.Staleness[len(r.Staleness)-1].Staleness++
			return true
		}},
	}
}

func setFaults() []fault {
	set := []history.Rule{history.RuleSet}
	return []fault{
		{"one contribution too few", sync, set, func(p *planter) bool {
			r := p.decided(func(r *history.Record) bool { return r.Shard == 0 && len(r.Verdict.Set) > 1 })
			if r == nil {
				return false
			}
			r.Verdict.Set = r.Verdict.Set[1:]
			return true
		}},
		{"k+1 contributions", []consistency.Kind{consistency.Quorum}, set, func(p *planter) bool {
			p.job.Model.K--
			return p.job.Model.K > 0 && p.find(func(r *history.Record) bool {
				return r.Kind == history.Decided && r.Shard == 0 && len(r.Verdict.Set) > p.job.Model.K
			}) != nil
		}},
		{"k-1 contributions", []consistency.Kind{consistency.Quorum}, set, func(p *planter) bool {
			p.job.Model.K++
			first := p.find(func(r *history.Record) bool {
				switch r.Kind { //nolint:exhaustive // the others change no quorum
				case history.Lost, history.Left, history.Decided:
					return true
				default:
					return false
				}
			})
			return p.job.Model.K <= len(p.job.Workers) && first.Kind == history.Decided // when it is decided, all are there
		}},
		{"contributions of two versions are mixed", sync, append(set, history.RulePending), func(p *planter) bool {
			r := p.decided(func(r *history.Record) bool { return r.Verdict.Version > 0 })
			if r == nil {
				return false
			}
			p.rebase(r.Shard, &r.Verdict.Set[p.rng.IntN(len(r.Verdict.Set))], r.Verdict.Version-1)
			return true
		}},
		{"shards disagree about a set", sync, set, func(p *planter) bool {
			r := p.decided(func(r *history.Record) bool { return r.Shard > 0 && len(r.Verdict.Set) > 1 })
			if r == nil {
				return false
			}
			r.Verdict.Set = r.Verdict.Set[1:]
			return true
		}},
		{"one shard never hears the last verdict", sync, append(set, history.RuleReason, history.RuleVersion, history.RuleAnswer), func(p *planter) bool {
			last := -1
			for i := range p.records {
				if p.records[i].Kind == history.Decided && p.records[i].Shard > 0 {
					last = i
				}
			}
			if last < 0 {
				return false
			}
			p.records = slices.Delete(p.records, last, last+1)
			return true
		}},
		{"the sum is divided by something else", kinds, []history.Rule{history.RuleContract}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			r.Verdict.Total *= 2
			return true
		}},
		{"the rate is not scaled as it should", kinds, []history.Rule{history.RuleContract}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			r.Verdict.Rate /= 2
			return true
		}},
		{"a set that counts is skipped", kinds, []history.Rule{history.RuleReason, history.RuleContract}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			r.Verdict.Skipped = true
			return true
		}},
		{"a version is left out", kinds, []history.Rule{history.RuleVersion}, func(p *planter) bool {
			r := p.decided(any1)
			if r == nil {
				return false
			}
			r.Verdict.Version++
			return true
		}},
	}
}

// TestPlantedFaults: each fault, planted in 20 histories of each model that it
// concerns, is found where it was planted, by the rule that it breaks.
func TestPlantedFaults(t *testing.T) {
	for _, f := range slices.Concat(readFaults(), pushFaults(), setFaults()) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range f.kinds {
				planted := 0
				for seed := uint64(0); planted < 20 && seed < 400; seed++ {
					r := draw(t, seed, kind)
					p := &planter{rng: r.rng, job: r.job, records: slices.Clone(r.play())}
					if !f.plant(p) {
						continue
					}
					planted++
					var v *history.ViolationError
					if err := history.Check(p.job, p.records); !errors.As(err, &v) || !slices.Contains(f.rules, v.Rule) {
						t.Fatalf("%s, seed %d: %v, want a violation of %v", kind, seed, err, f.rules)
					}
				}
				if planted < 20 {
					t.Errorf("%s: planted in %d histories only", kind, planted)
				}
			}
		})
	}
}
