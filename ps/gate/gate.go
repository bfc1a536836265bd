package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangline/gangline/ps/consistency"
)

// ErrUsage is wrapped by refusals that are a mistake of the worker's program.
var ErrUsage = errors.New("protocol error")

// ErrLost is wrapped by refusals of requests of a worker that counts as lost; it
// has to join first.
var ErrLost = errors.New("counts as lost and has to join again")

// ErrEnded is wrapped by refusals after the end of the run.
var ErrEnded = errors.New("the run has ended")

// Limits of the machine.
const (
	// PiecesMax is the most pieces of a contribution.
	PiecesMax = 1 << 14
	// ReadsMax is the most reads of one worker that wait at a time.
	ReadsMax = 64
	// OutcomesKept is how many of a worker's past clocks have an outcome that it
	// may ask for. A push that is older is still recognised as a repetition.
	OutcomesKept = 1024
	// verdictsKept is how many verdicts a shard remembers to compare later ones
	// with.
	verdictsKept = 8
)

// Config says where a gate stands.
type Config struct {
	Model consistency.Model
	// Workers are all ranks that may ever take part, distinct.
	Workers []consistency.Worker
	// Shard of Shards; shard 0 leads.
	Shard, Shards int
	// Version is where the run begins, and Clock that of its workers.
	Version, Clock int64
}

// Gate is the machine. It is not safe for concurrent use.
//
// Guarantees: (1) the invariants of the model, see docs/adr/0013-consistency.md;
// (2) every contribution of which a piece was kept ends once, as applied, late,
// expired or skipped, or is pending (Stats.Balanced); (3) at most one whole and
// one unfinished contribution of a worker are pending, so memory is bounded; (4)
// what it does is a function of the events and their times alone.
type Gate struct {
	model   consistency.Model
	shard   int
	shards  int
	version int64
	ended   bool
	begun   bool   // a Step came
	peers   []peer // by ascending worker
	at      map[consistency.Worker]int

	verdicts []consistency.Verdict // the last verdictsKept
	counts   totals

	actions []Action
	why     string
}

type totals struct {
	duplicates, refused, reads, applied, skipped int64
}

// standing is whether a worker counts.
type standing uint8

const (
	live standing = iota
	left
	lost
)

// peer is a worker.
type peer struct {
	worker   consistency.Worker
	standing standing
	clock    int64 // closed clocks; those below were closed, or passed over
	seen     int64 // greatest version served to it
	open     open
	whole    contribution
	outcomes []consistency.Outcome // of clock c at c%OutcomesKept
	counts   consistency.Counts
	stale    map[int64]int64
	reads    []read
	heard    time.Duration
}

// open is the contribution that is coming in: pieces is how many have come.
type open struct {
	pieces int
	got    []uint64 // a bit a piece
	last   int      // the last piece's number, -1 if not known
	base   int64
	ballot Ballot
}

// contribution is closed and pending: bsp and quorum only.
type contribution struct {
	there bool
	ready bool
	clock int64
	base  int64
	Ballot
}

type read struct {
	request        uint64
	clock, version int64
}

// New makes the gate of a shard at its first version. All workers are live and
// have seen that version, which is made from the job's seed or a checkpoint.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Model.Validate(len(cfg.Workers)); err != nil {
		return nil, err
	}
	if cfg.Shard < 0 || cfg.Shard >= cfg.Shards || cfg.Version < 0 || cfg.Clock < 0 {
		return nil, fmt.Errorf("gate: shard %d of %d at version %d and clock %d", cfg.Shard, cfg.Shards, cfg.Version, cfg.Clock)
	}
	workers := slices.Sorted(slices.Values(cfg.Workers))
	g := &Gate{model: cfg.Model, shard: cfg.Shard, shards: cfg.Shards, version: cfg.Version, at: make(map[consistency.Worker]int, len(workers))}
	for i, w := range workers {
		if w < 0 || i > 0 && workers[i-1] == w {
			return nil, fmt.Errorf("gate: workers %v, want distinct ranks of at least 0", workers)
		}
		g.at[w] = i
		g.peers = append(g.peers, peer{
			worker: w, clock: cfg.Clock, seen: cfg.Version, open: open{last: -1},
			outcomes: make([]consistency.Outcome, OutcomesKept), stale: make(map[int64]int64),
		})
	}
	return g, nil
}

// Step takes one event at a time that never goes back. The actions are valid
// until the next Step; the sentence says what was decided. The cost is O(workers)
// and the reads that it sets free.
func (g *Gate) Step(now time.Duration, ev Event) (actions []Action, why string) {
	g.actions, g.why = g.actions[:0], ""
	if !g.begun { // nobody was silent before, as nobody could be heard
		g.begun = true
		for i := range g.peers {
			g.peers[i].heard = now
		}
	}
	switch ev.Kind {
	case EventTick:
		g.tick(now)
		return g.actions, g.why
	case EventEnd:
		g.end()
		return g.actions, g.why
	case EventPush, EventReady, EventRead, EventVerdict, EventAlive, EventLeft, EventLost, EventJoined:
	default:
		g.refuse(&ev, fmt.Errorf("%w: unknown %v", ErrUsage, ev.Kind))
		return g.actions, g.why
	}
	if err := g.event(now, &ev); err != nil {
		g.refuse(&ev, err)
	}
	return g.actions, g.why
}

func (g *Gate) event(now time.Duration, ev *Event) error {
	if g.ended {
		return ErrEnded
	}
	if ev.Kind == EventVerdict {
		return g.hear(&ev.Verdict)
	}
	i, ok := g.at[ev.Worker]
	if !ok {
		return fmt.Errorf("%w: rank %d is no worker of shard %d", ErrUsage, ev.Worker, g.shard)
	}
	p := &g.peers[i]
	switch ev.Kind { //nolint:exhaustive // the others need the worker to be heard
	case EventLost:
		g.lose(p, "is lost")
		return nil
	case EventJoined:
		return g.join(now, p, ev)
	case EventLeft: // also of one that was believed lost: nobody has to wait for it
		p.heard = now
		g.leave(p)
		return nil
	default:
	}
	if p.standing == lost {
		return fmt.Errorf("rank %d %w", p.worker, ErrLost)
	}
	p.heard = now
	switch ev.Kind { //nolint:exhaustive // the others came above
	case EventPush:
		return g.push(p, ev)
	case EventReady:
		return g.ready(p, ev)
	case EventRead:
		return g.read(p, ev)
	case EventAlive:
		g.say("rank %d lives", p.worker)
	default:
		panic("gate: not of a worker")
	}
	return nil
}

func (g *Gate) act(a Action) {
	a.Version = g.version
	g.actions = append(g.actions, a)
}

func (g *Gate) refuse(ev *Event, err error) {
	g.counts.refused++
	g.act(Action{Kind: ActionRefuse, Worker: ev.Worker, Request: ev.Request, Clock: ev.Seq.Clock, Err: err})
	g.say("%v", err)
}

// say adds a sentence.
func (g *Gate) say(format string, args ...any) {
	if g.why != "" {
		g.why += "; "
	}
	g.why += fmt.Sprintf(format, args...)
}

// lead reports whether this shard decides for all.
func (g *Gate) lead() bool { return g.model.Synchronous() && g.shard == 0 }
