// Package tune finds settings with which a job trains faster on this machine, by short
// real trainings.
//
// Each candidate is some settings that are laid over the job. Search goes through them
// in rounds, so that what disturbs the machine for a while disturbs all: in each, the
// job as it is runs beside the candidates, and what counts is the ratio of the two
// times within the round. After a round the slower half is dropped (successive
// halving). What is left, and the best of each field together, runs in pairs with the
// job as it is, and only these pairs decide: candidates were picked for the others. A change
// is recommended if it was faster in every pair (a sign test: chance does that in one
// of 2^pairs cases) and by at least GainMin in the middle. Search is pure: it starts no
// clock, and asks a Runner for trials.
//
// Source: K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and
// hyperparameter optimization", AISTATS 2016.
package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Candidate is settings (path.to.field=value) that are laid over the job.
type Candidate struct {
	Settings []string
	// Lossy says that they change what is computed, by no more than Config.MaxError.
	Lossy bool
}

// String returns the settings.
func (c *Candidate) String() string {
	if len(c.Settings) == 0 {
		return "the job as it is"
	}
	return strings.Join(c.Settings, " ")
}

// field is what a candidate of one setting sets.
func (c *Candidate) field() string {
	name, _, _ := strings.Cut(c.Settings[0], "=")
	return name
}

// Trial is what a short training took.
type Trial struct {
	// Step is seconds a step, Wall the seconds of the trial with all else in it.
	Step, Wall float64
	// Loss is the mean training loss over the last half of the steps.
	Loss float64
}

// Runner trains so many steps with settings laid over the job.
type Runner func(ctx context.Context, settings []string, steps int) (Trial, error)

// Config says how to search.
type Config struct {
	Candidates []Candidate
	// Budget is about how long the search takes; trials that have begun end.
	Budget time.Duration
	// MaxError is by what share the loss of a lossy candidate may differ from that of
	// the job as it is, after the same steps.
	MaxError float64
	// OnTrial is told of every trial that ends; nil: nobody is.
	OnTrial func(c *Candidate, t Trial, spent time.Duration)
}

// Limits of a search.
const (
	// GainMin is the least gain in the middle that is worth a change.
	GainMin = .02
	// Pairs is how many pairs decide.
	Pairs = 7
	// PairsMin is how many must at the least.
	PairsMin = 5
	// BudgetMin is the shortest Config.Budget.
	BudgetMin = 5 * time.Second
	// BudgetMax is the longest.
	BudgetMax = 24 * time.Hour

	stepsFirst = 10   // of the first trial
	stepsMax   = 5000 // of a trial
	finalists  = 2
	finalShare = .5   // of the budget is for the pairs at the end
	worthwhile = 1.01 // from what ratio on a setting is tried together with others
)

// Row is what became of a candidate.
type Row struct {
	Candidate
	Trials int
	// Step is the median seconds a step.
	Step float64
	// Ratio is how many times as fast as the job as it is, the median over rounds; Low
	// and High the least and the most. Of Pairs pairs if that is not 0, else of rounds
	// that only chose what to pair.
	Ratio, Low, High float64
	Pairs            int
	// Dropped says why it is out.
	Dropped string
}

// Result is what a search found.
type Result struct {
	Rows  []*Row // the job as it is first, then the fastest first
	Best  *Row   // nil: no change
	Why   string // what speaks for the best, or for none
	Steps int    // of a trial
	Spent time.Duration
}

// Search runs trials until one candidate is left or the budget is spent. It fails if
// the job as it is does, or ctx ends.
func Search(ctx context.Context, cfg Config, run Runner) (*Result, error) {
	s := &search{cfg: cfg, run: run, base: &entry{}}
	for _, c := range cfg.Candidates {
		s.all = append(s.all, &entry{Candidate: c})
	}
	first, err := s.trial(ctx, s.base, stepsFirst)
	if err != nil {
		return nil, err
	}
	s.plan(first)
	left := slices.Clone(s.all)
	for len(left) > finalists && s.spent < (1-finalShare)*cfg.Budget.Seconds() {
		if err := s.round(ctx, left, false); err != nil {
			return nil, err
		}
		left = halve(left)
	}
	left = s.together(alive(left))
	for pair := 0; pair < Pairs && len(alive(left)) > 0; pair++ {
		if pair > 0 && s.spent >= cfg.Budget.Seconds() {
			break
		}
		if err := s.round(ctx, alive(left), true); err != nil {
			return nil, err
		}
	}
	return s.result(), nil
}

// entry is a candidate under way.
type entry struct {
	Candidate
	times   []float64 // seconds a step
	rounds  []float64 // ratios
	pairs   []float64 // ratios that decide
	dropped string
}

// score is the ratio by which candidates are dropped: 1 before there is one.
func (e *entry) score() float64 {
	if len(e.rounds)+len(e.pairs) == 0 {
		return 1
	}
	return median(append(slices.Clone(e.rounds), e.pairs...))
}

type search struct {
	cfg   Config
	run   Runner
	base  *entry
	all   []*entry
	steps int
	turn  int
	spent float64 // seconds
}

// trial runs one.
func (s *search) trial(ctx context.Context, e *entry, steps int) (Trial, error) {
	t, err := s.run(ctx, e.Settings, steps)
	if err == nil && !(t.Step > 0) {
		err = fmt.Errorf("a step took %g s", t.Step)
	}
	s.spent += max(t.Wall, 0)
	if err == nil && s.cfg.OnTrial != nil {
		s.cfg.OnTrial(&e.Candidate, t, time.Duration(s.spent*float64(time.Second)))
	}
	if err != nil && e == s.base {
		return t, fmt.Errorf("the job as it is does not run: %w", err)
	}
	return t, err
}

// plan works out how many steps a trial has, from the first one: as many as the budget
// allows for all rounds.
func (s *search) plan(first Trial) {
	trials := (finalists + 1) * Pairs
	for n := len(s.all); n > finalists; n = (n + 1) / 2 {
		trials += n + 1
	}
	outside := max(first.Wall-stepsFirst*first.Step, 0)
	each := (s.cfg.Budget.Seconds()-s.spent)/float64(trials) - outside
	s.steps = int(min(max(each/first.Step, stepsFirst), stepsMax))
}

// round runs the job as it is and some candidates, every other time in the opposite
// order. If it is to choose what to pair, it ends with its part of the budget: then those
// that it did not come to are out.
func (s *search) round(ctx context.Context, some []*entry, paired bool) error {
	order := slices.Clone(some)
	if s.turn++; s.turn%2 == 0 {
		slices.Reverse(order)
	}
	if first := s.turn%2 == 1 || !paired; first {
		order = slices.Insert(order, 0, s.base)
	} else {
		order = append(order, s.base)
	}
	trials := make(map[*entry]Trial)
	for _, e := range order {
		if !paired && len(trials) > 1 && s.spent >= (1-finalShare)*s.cfg.Budget.Seconds() {
			e.dropped = "not tried again: the budget was spent"
			continue
		}
		t, err := s.trial(ctx, e, s.steps)
		switch {
		case err != nil && (e == s.base || ctx.Err() != nil):
			return errors.Join(err, context.Cause(ctx))
		case err != nil:
			e.dropped = "failed: " + oneLine(err)
		default:
			trials[e] = t
			e.times = append(e.times, t.Step)
		}
	}
	for _, e := range some {
		if t, ok := trials[e]; ok {
			s.compare(e, t, trials[s.base], paired)
		}
	}
	return nil
}

// compare notes how a candidate did beside the job as it is.
func (s *search) compare(e *entry, t, base Trial, paired bool) {
	ratio := base.Step / t.Step
	if paired {
		e.pairs = append(e.pairs, ratio)
	} else {
		e.rounds = append(e.rounds, ratio)
	}
	if off := math.Abs(t.Loss-base.Loss) / math.Abs(base.Loss); e.Lossy && !(off <= s.cfg.MaxError) {
		e.dropped = fmt.Sprintf("the loss is off by %.2g, more than %.2g", off, s.cfg.MaxError)
	}
}

func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// alive are those that are not dropped.
func alive(all []*entry) []*entry {
	return slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.dropped != "" })
}

// fastest sorts by score, the fastest first.
func fastest(all []*entry) {
	slices.SortStableFunc(all, func(a, b *entry) int {
		switch x, y := a.score(), b.score(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

// halve drops the slower half, but leaves the finalists.
func halve(all []*entry) []*entry {
	all = alive(all)
	fastest(all)
	return all[:min(len(all), max((len(all)+1)/2, finalists))]
}

// together returns who runs in the pairs: the fastest, and the best settings of
// different fields together, if several were faster than the job as it is.
func (s *search) together(left []*entry) []*entry {
	fastest(left)
	var best []*entry
	ranked := alive(s.all)
	fastest(ranked)
	for _, e := range ranked {
		known := slices.ContainsFunc(best, func(b *entry) bool { return b.field() == e.field() })
		if e.score() >= worthwhile && !known {
			best = append(best, e)
		}
	}
	if len(best) < 2 {
		return left[:min(len(left), finalists)]
	}
	all := &entry{}
	for _, e := range best {
		all.Settings = append(all.Settings, e.Settings...)
		all.Lossy = all.Lossy || e.Lossy
	}
	s.all = append(s.all, all)
	return append(left[:min(len(left), finalists-1)], all)
}

// result judges by the pairs.
func (s *search) result() *Result {
	r := &Result{Steps: s.steps, Spent: time.Duration(s.spent * float64(time.Second))}
	fastest(s.all)
	for _, e := range append([]*entry{s.base}, s.all...) {
		row := &Row{Candidate: e.Candidate, Trials: len(e.times), Dropped: e.dropped, Pairs: len(e.pairs), Ratio: 1, Low: 1, High: 1}
		if len(e.times) > 0 {
			row.Step = median(e.times)
		}
		ratios := e.pairs
		if len(ratios) == 0 {
			ratios = e.rounds
		}
		if len(ratios) > 0 {
			row.Ratio, row.Low, row.High = median(ratios), slices.Min(ratios), slices.Max(ratios)
		}
		r.Rows = append(r.Rows, row)
		if row.wins() && (r.Best == nil || row.Ratio > r.Best.Ratio) {
			r.Best = row
		}
	}
	r.Why = r.why()
	return r
}

// wins says whether a row is a change worth recommending.
func (r *Row) wins() bool {
	return r.Dropped == "" && r.Pairs >= PairsMin && r.Low > 1 && r.Ratio >= 1+GainMin
}

// why tells what speaks for the best, or for no change.
func (r *Result) why() string {
	if b := r.Best; b != nil {
		return fmt.Sprintf("%.2f times as fast as the job as it is (%d pairs of %d steps, %.2f to %.2f)", b.Ratio, b.Pairs, r.Steps, b.Low, b.High)
	}
	var best *Row
	few := false
	for _, row := range r.Rows[1:] {
		if row.Dropped != "" || row.Pairs == 0 {
			continue
		}
		few = few || row.Pairs < PairsMin
		if best == nil || row.Ratio > best.Ratio {
			best = row
		}
	}
	switch {
	case best == nil:
		return "no change: no candidate was left to compare with the job as it is"
	case few:
		return fmt.Sprintf("no change: the budget was spent after %d of %d pairs: make it longer", best.Pairs, PairsMin)
	}
	return fmt.Sprintf("no change: nothing is faster than the job as it is beyond the noise (%s: %.2f times as fast in %d pairs, %.2f to %.2f)",
		best, best.Ratio, best.Pairs, best.Low, best.High)
}

// median is the middle of some numbers.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
