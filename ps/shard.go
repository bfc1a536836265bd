package ps

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangline/gangline/tensor"
)

// ErrUsage is wrapped by refusals that are a mistake of the worker's program.
var ErrUsage = errors.New("protocol error")

// Shard is one store as a pure machine: Step takes what happened and returns
// what to do. It is not safe for concurrent use.
//
// Guarantees: (1) version t+1 is version t after the rule was applied to the
// sum, in rank order, of exactly one contribution of every worker to every
// state, or version t itself if the verdict's weight was 0; (2) every
// contribution is counted once (Stats.Balanced); (3) at most two steps are
// pending, the one of the version and the next; (4) values do not depend on
// the order of arrival.
type Shard struct {
	// Patience is how long a pull may wait for a verdict before a tick refuses
	// it with the names of those who are missing; 0 is for ever. Set it before
	// the first Step.
	Patience time.Duration

	layout  Layout
	cells   []cell
	version int64
	rounds  [2]round // of step s at s&1: version and version+1
	peers   []peer   // by ascending rank
	at      map[int]int
	free    [][]*tensor.Tensor // by state: memory for contributions

	verdicts [verdictsKept]given // of step s at s%verdictsKept
	counts   Stats

	requests uint64
	named    []uint64 // by state: the last request that named it

	actions []Action
	why     string
}

// given is a verdict with who gave it first.
type given struct {
	Verdict
	from int
}

// round holds the contributions to one step.
type round struct {
	got    []contribution // [state][worker]
	stored []int          // by worker: states stored
}

// pushed is a push that was answered, to recognise a repetition.
type pushed struct {
	seq    uint64
	status Status // of the answer to a repetition; Done: no entry
}

// peer is a worker.
type peer struct {
	rank      int
	bye, lost bool
	recent    []pushed // a ring
	next      int
	parked    bool
	pull      Event
	since     time.Time
	blocks    []Block          // of the last reply
	scratch   []*tensor.Tensor // by state
	counts    Counts
	lastStep  int64
}

// NewShard makes a store at version 0 with its initial values. workers are the
// ranks that contribute to every step.
func NewShard(layout Layout, workers []int) (*Shard, error) {
	if err := layout.check(); err != nil {
		return nil, err
	}
	workers = slices.Sorted(slices.Values(workers))
	if len(workers) == 0 || len(slices.Compact(slices.Clone(workers))) != len(workers) {
		return nil, fmt.Errorf("ps: store %d needs distinct workers, got %v", layout.Store, workers)
	}
	n := len(layout.States)
	s := &Shard{layout: layout, at: make(map[int]int, len(workers)), free: make([][]*tensor.Tensor, n), named: make([]uint64, n)}
	s.layout.States = slices.Clone(layout.States)
	for i := range s.layout.States {
		s.cells = append(s.cells, newCell(&s.layout.States[i], &s.layout))
	}
	for i := range s.rounds {
		s.rounds[i] = round{got: make([]contribution, n*len(workers)), stored: make([]int, len(workers))}
	}
	for i, rank := range workers {
		s.at[rank] = i
		s.peers = append(s.peers, peer{
			rank: rank, recent: make([]pushed, max(recentMin, 4*n)), scratch: make([]*tensor.Tensor, n),
			lastStep: -1,
		})
	}
	return s, nil
}

// Version returns the number of steps that the state has behind it.
func (s *Shard) Version() int64 { return s.version }

// Step takes one event. The actions and what they point to are valid until the
// next Step, but for Blocks (see Action). The sentence says what was decided.
// A request gets exactly one reply, refusal or snapshot action, now or from a
// later Step; a worker has one request at a time.
func (s *Shard) Step(now time.Time, ev Event) (actions []Action, why string) {
	s.actions, s.why = s.actions[:0], ""
	if ev.Kind == EventTick {
		s.tick(now)
		return s.actions, s.why
	}
	w, ok := s.at[ev.From]
	if !ok {
		s.refuse(ev.From, fmt.Errorf("%w: rank %d is no worker of store %d", ErrUsage, ev.From, s.layout.Store))
		return s.actions, s.why
	}
	if ev.Kind == EventLost {
		s.lose(w)
		return s.actions, s.why
	}
	if err := s.request(now, w, ev); err != nil {
		s.refuse(ev.From, err)
	}
	return s.actions, s.why
}

func (s *Shard) request(now time.Time, w int, ev Event) error {
	p := &s.peers[w]
	if p.parked || p.bye || p.lost {
		return fmt.Errorf("%w: a request of rank %d, which waits for a pull (%v), said bye (%v) or is lost (%v)",
			ErrUsage, p.rank, p.parked, p.bye, p.lost)
	}
	if ev.Verdict.Given {
		if err := s.judge(p.rank, ev.Verdict); err != nil {
			return err
		}
	}
	if err := s.checkBlocks(ev); err != nil {
		return err
	}
	switch ev.Kind {
	case EventOffer:
		return s.offer(w, ev)
	case EventPush:
		return s.push(w, ev)
	case EventPull:
		return s.pull(now, w, ev)
	case EventFlush:
		s.reply(p.rank, Done, nil, "flushed")
	case EventSnapshot:
		if ev.Step != s.version {
			return fmt.Errorf("%w: snapshot of step %d, the store is at version %d", ErrUsage, ev.Step, s.version)
		}
		s.act(Action{Kind: ActionSnapshot, To: p.rank, Version: s.version})
		s.say("snapshot")
	case EventBye:
		s.bye(w)
	case EventLost, EventTick:
		panic("ps: not a request")
	}
	return nil
}

func (s *Shard) act(a Action) { s.actions = append(s.actions, a) }

func (s *Shard) reply(to int, status Status, blocks []Block, why string) {
	s.act(Action{Kind: ActionReply, To: to, Status: status, Version: s.version, Blocks: blocks})
	s.say(why)
}

func (s *Shard) refuse(to int, err error) {
	s.counts.Refused++
	s.act(Action{Kind: ActionRefuse, To: to, Status: Refused, Version: s.version, Err: err})
	s.say(err.Error())
}

// say adds a sentence; it allocates only for a second one.
func (s *Shard) say(why string) {
	if s.why == "" {
		s.why = why
		return
	}
	s.why += "; " + why
}

// round returns the contributions to step version or version+1.
func (s *Shard) round(step int64) *round { return &s.rounds[step&1] }

// checkBlocks tests a request's blocks against the layout.
func (s *Shard) checkBlocks(ev Event) error {
	s.requests++
	for i := range ev.Blocks {
		b := &ev.Blocks[i]
		at := s.layout.find(b.State)
		if at < 0 {
			return fmt.Errorf("%w: store %d does not hold state %d", ErrUsage, s.layout.Store, b.State)
		}
		if s.named[at] == s.requests {
			return fmt.Errorf("%w: state %s is named twice", ErrUsage, s.layout.States[at].Name)
		}
		s.named[at] = s.requests
		if err := s.checkBlock(ev.Kind, &s.layout.States[at], b); err != nil {
			return fmt.Errorf("%w: %w", ErrUsage, err)
		}
	}
	return nil
}

func (s *Shard) checkBlock(kind EventKind, st *State, b *Block) error {
	want := st.Hi - st.Lo
	switch {
	case st.Table != (b.Keys != nil):
		return fmt.Errorf("state %s: table is %v, with keys is %v", st.Name, st.Table, b.Keys != nil)
	case !st.Table && (b.Lo != st.Lo || b.Hi != st.Hi):
		return fmt.Errorf("state %s: asked for [%d, %d), the store holds [%d, %d)", st.Name, b.Lo, b.Hi, st.Lo, st.Hi)
	case st.Table:
		if err := checkKeys(st, &s.layout, b.Keys.I64()); err != nil {
			return err
		}
		want = b.Keys.Elems() * st.Dim()
	}
	if kind == EventPush && (b.Data == nil || b.Data.DType() != st.DType || b.Data.Elems() != want) {
		return fmt.Errorf("state %s: the data is not %d elements of %v", st.Name, want, st.DType)
	}
	return nil
}

// SetVersion says how many steps the state has behind it, after an Import. It
// must come before the first Step.
func (s *Shard) SetVersion(version int64) { s.version = version }
