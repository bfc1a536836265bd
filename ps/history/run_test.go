package history_test

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/gate"
	"github.com/gangline/gangline/ps/history"
)

// run is one random run of gates and workers on one thread, in virtual time:
// messages take random times, overtake each other, are lost and come twice;
// workers are slow, run out of data, die and are replaced; shards are saved and
// restored. What happens is a function of the seed.
type run struct {
	t       *testing.T
	rng     *rand.Rand
	job     history.Job
	shards  []*shard
	workers []*worker
	now     time.Duration
	queue   queue
	count   int
	records []history.Record
	// What the run had of everything, for the test that it had something.
	seen map[string]int
	// clocksMax of a worker.
	clocks int64
}

// item is something that will happen.
type item struct {
	at time.Duration
	n  int
	do func()
}

type queue []item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// shard is a gate with what a server has around it.
type shard struct {
	r      *run
	number int
	gate   *gate.Gate
	lives  map[consistency.Worker]int
	kept   map[clock]int // pieces of which it has the data
	ready  map[clock]bool
	ended  bool
}

type clock struct {
	worker consistency.Worker
	clock  int64
}

// draw makes a run of a model; its numbers of workers, k and slack are random.
func draw(t *testing.T, seed uint64, kind consistency.Kind) *run {
	r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 6)), seen: make(map[string]int)}
	n := 2 + r.rng.IntN(4)
	m := consistency.Model{Kind: kind, MaxVersionLag: consistency.Unbounded}
	m.Scale = []consistency.Scale{"", consistency.Weighted, consistency.Mean, consistency.Sum}[r.rng.IntN(4)]
	switch kind { //nolint:exhaustive // the others come below
	case consistency.Quorum:
		m.K = 1 + r.rng.IntN(n)
	case consistency.BSP:
		m.OnLoss = []consistency.OnLoss{consistency.Wait, consistency.Continue}[r.rng.IntN(2)]
	default:
		if kind == consistency.SSP {
			m.Slack = int64(r.rng.IntN(4))
		}
		if r.rng.IntN(2) == 0 {
			m.MaxVersionLag = int64(r.rng.IntN(4))
		}
		if r.rng.IntN(2) == 0 {
			m.Stale = consistency.Inverse
		}
	}
	if r.rng.IntN(3) == 0 {
		m.Deadline = 300 * time.Millisecond
	}
	r.job = history.Job{Model: m, Shards: 1 + r.rng.IntN(3), Version: int64(r.rng.IntN(2) * 7), Clock: int64(r.rng.IntN(2) * 3)}
	r.clocks = r.job.Clock + 3 + int64(r.rng.IntN(8))
	for w := range n {
		r.job.Workers = append(r.job.Workers, consistency.Worker(w))
	}
	for i := range r.job.Shards {
		g, err := gate.New(r.config(i))
		if err != nil {
			t.Fatal(err)
		}
		r.shards = append(r.shards, &shard{r: r, number: i, gate: g, lives: make(map[consistency.Worker]int), kept: make(map[clock]int), ready: make(map[clock]bool)})
	}
	for w := range n {
		r.workers = append(r.workers, newWorker(r, consistency.Worker(w)))
	}
	return r
}

func (r *run) config(shard int) gate.Config {
	return gate.Config{
		Model: r.job.Model, Workers: r.job.Workers, Shard: shard, Shards: r.job.Shards, Version: r.job.Version, Clock: r.job.Clock,
	}
}

// after does something when a time has passed.
func (r *run) after(d time.Duration, do func()) {
	r.count++
	heap.Push(&r.queue, item{r.now + d, r.count, do})
}

// delay is a random time that is mostly short.
func (r *run) delay(mean time.Duration) time.Duration {
	return time.Duration(r.rng.ExpFloat64() * float64(mean))
}

func (r *run) record(rec history.Record) { r.records = append(r.records, rec) }

// play runs it to its end.
func (r *run) play() []history.Record {
	for _, w := range r.workers {
		w.start()
	}
	r.after(50*time.Millisecond, r.tick)
	for steps := 0; r.queue.Len() > 0 && !r.over(); steps++ {
		if steps > 200_000 {
			r.t.Fatalf("the run does not end: %+v; %s", r.job, r.stands())
		}
		next := heap.Pop(&r.queue).(item)
		r.now = next.at
		next.do()
	}
	if !r.over() {
		r.t.Fatalf("nothing happens any more: %+v; %s", r.job, r.stands())
	}
	for _, s := range r.shards {
		if v := r.shards[0].gate.Verdict(); v.Given() && s.number > 0 {
			s.step(gate.Event{Kind: gate.EventVerdict, Verdict: v})
		}
		s.end()
	}
	return r.records
}

// stands says where everybody stands.
func (r *run) stands() (text string) {
	for _, s := range r.shards {
		text += fmt.Sprintf("shard %d: %+v\n", s.number, s.gate.Stats())
	}
	for _, w := range r.workers {
		text += fmt.Sprintf("worker %d: life %d clock %d of %d dead %v over %v leaving %v phase %d got %v acks %v\n",
			w.rank, w.life, w.clock, w.until, w.dead, w.over, w.leaving, w.phase, w.got, w.acks)
	}
	return text
}

func (r *run) over() bool {
	for _, w := range r.workers {
		if !w.over {
			return false
		}
	}
	return true
}

func (r *run) tick() {
	for _, s := range r.shards {
		s.step(gate.Event{Kind: gate.EventTick})
		if r.rng.IntN(8) == 0 {
			s.restore()
		}
	}
	r.after(50*time.Millisecond, r.tick)
}

// message takes something to a shard: late, never, or twice.
func (r *run) message(w *worker, to *shard, ev ...gate.Event) {
	life := w.life
	deliver := func() {
		if to.lives[w.rank] != life || to.ended {
			return
		}
		for _, e := range ev {
			to.step(e)
		}
	}
	if r.rng.IntN(20) > 0 {
		r.after(r.delay(3*time.Millisecond), deliver)
	} else {
		r.seen["lost message"]++
	}
	if r.rng.IntN(20) == 0 {
		r.seen["message twice"]++
		r.after(r.delay(60*time.Millisecond), deliver)
	}
}

// answer takes something back.
func (r *run) answer(w *worker, do func()) {
	life := w.life
	if r.rng.IntN(20) > 0 {
		r.after(r.delay(3*time.Millisecond), func() {
			if w.life == life && !w.dead {
				do()
			}
		})
	}
}

// step gives an event to the gate, and writes down what happens.
func (s *shard) step(ev gate.Event) {
	switch ev.Kind { //nolint:exhaustive // the others change no standing
	case gate.EventLeft:
		s.write(history.Record{Kind: history.Left, Worker: ev.Worker})
	case gate.EventLost:
		s.write(history.Record{Kind: history.Lost, Worker: ev.Worker})
	case gate.EventJoined:
		s.write(history.Record{Kind: history.Joined, Worker: ev.Worker, Clock: ev.Seq.Clock})
	default:
	}
	was, _ := s.gate.Clock(ev.Worker)
	version, open := s.gate.Version(), s.gate.Outcome(ev.Worker, ev.Seq.Clock)
	actions, why := s.gate.Step(s.r.now, ev)
	if why == "" && ev.Kind != gate.EventTick && ev.Kind != gate.EventEnd {
		s.r.t.Fatalf("no word about %+v", ev)
	}
	s.closed(&ev, was, version, open)
	for i := range actions {
		s.carry(&actions[i])
	}
	s.hold(&ev, actions)
	s.balanced()
}

func (s *shard) write(rec history.Record) {
	rec.Shard = s.number
	s.r.record(rec)
}

// closed writes down what a push or ready made whole or ready: from the event and
// from what the worker sent, not from what the gate says of it.
func (s *shard) closed(ev *gate.Event, was, version int64, open consistency.Outcome) {
	name := clock{ev.Worker, ev.Seq.Clock}
	switch now, _ := s.gate.Clock(ev.Worker); {
	case ev.Kind == gate.EventPush && now > was:
		c := s.r.workers[ev.Worker].sent[ev.Seq.Clock]
		s.write(history.Record{
			Kind: history.Stored, Worker: ev.Worker, Clock: ev.Seq.Clock, Base: c.bases[s.number], Weight: c.ballot.Weight, Finite: c.ballot.Finite,
		})
		if s.r.job.Shards == 1 && s.r.job.Model.Synchronous() && c.bases[0] == version {
			s.write(history.Record{Kind: history.Ready, Worker: ev.Worker, Clock: ev.Seq.Clock, Base: c.bases[0]})
		}
	case ev.Kind == gate.EventReady && open == consistency.Pending && !s.ready[name]:
		s.ready[name] = true
		s.write(history.Record{Kind: history.Ready, Worker: ev.Worker, Clock: ev.Seq.Clock, Base: ev.Base})
	}
}

// hold writes down a read that waits.
func (s *shard) hold(ev *gate.Event, actions []gate.Action) {
	if ev.Kind != gate.EventRead {
		return
	}
	for _, a := range actions {
		if a.Request == ev.Request && (a.Kind == gate.ActionServe || a.Kind == gate.ActionRefuse) {
			return
		}
	}
	s.r.seen["held"]++
	s.write(history.Record{Kind: history.Held, Worker: ev.Worker, Clock: ev.Seq.Clock, Version: ev.Version, Request: ev.Request})
}

// carry does what the gate says.
func (s *shard) carry(a *gate.Action) {
	name := clock{a.Worker, a.Clock}
	switch a.Kind {
	case gate.ActionKeep:
		s.kept[name]++
	case gate.ActionApply, gate.ActionSkip:
		s.r.seen[a.Kind.String()]++
		for _, m := range a.Verdict.Set {
			s.release(clock{m.Worker, m.Clock})
		}
		v := a.Verdict
		s.write(history.Record{Kind: history.Decided, Version: a.Version, Verdict: &v})
	case gate.ActionDrop:
		s.r.seen[a.Outcome.String()]++
		s.release(name)
		s.write(history.Record{Kind: history.Dropped, Worker: a.Worker, Clock: a.Clock, Outcome: a.Outcome})
	case gate.ActionReply:
		if a.Duplicate {
			s.r.seen["duplicate"]++
		}
		w, b := s.r.workers[a.Worker], *a
		s.r.answer(w, func() { w.acked(s.number, &b) })
	case gate.ActionServe:
		rec := history.Record{Kind: history.Served, Shard: s.number, Worker: a.Worker, Clock: a.Clock, Version: a.Version, Request: a.Request}
		for _, u := range s.r.job.Workers {
			c, _ := s.gate.Clock(u)
			rec.Clocks = append(rec.Clocks, c)
		}
		s.write(rec)
		w, v := s.r.workers[a.Worker], a.Verdict
		s.r.answer(w, func() { w.answered(rec, v) })
	case gate.ActionRefuse:
		if !errors.Is(a.Err, gate.ErrLost) {
			s.r.t.Errorf("shard %d refuses worker %d's clock %d: %v", s.number, a.Worker, a.Clock, a.Err)
		}
		w := s.r.workers[a.Worker]
		s.r.answer(w, w.rejoin)
	case gate.ActionLost:
		s.r.seen["silent"]++
		s.write(history.Record{Kind: history.Lost, Worker: a.Worker})
	}
}

// release forgets data; there must be some, so data is used once.
func (s *shard) release(name clock) {
	if s.kept[name] == 0 {
		s.r.t.Errorf("shard %d uses the data of %v, which it does not have", s.number, name)
	}
	delete(s.kept, name)
}

// balanced checks that counts add up and say what is kept.
func (s *shard) balanced() {
	st := s.gate.Stats()
	if !st.Balanced() || st.Pending != int64(len(s.kept)) {
		s.r.t.Fatalf("shard %d keeps %d contributions and counts %+v", s.number, len(s.kept), st)
	}
}

// restore replaces the gate by one made from what it knows, as text. Reads that
// wait are lost with it; their workers ask again.
func (s *shard) restore() {
	s.r.seen["restored"]++
	s.write(history.Record{Kind: history.Restarted})
	text, err := json.Marshal(s.gate.State())
	if err != nil {
		s.r.t.Fatal(err)
	}
	var st gate.State
	if err := json.Unmarshal(text, &st); err != nil {
		s.r.t.Fatal(err)
	}
	if s.gate, err = gate.Restore(s.r.config(s.number), st); err != nil {
		s.r.t.Fatal(err)
	}
}

func (s *shard) end() {
	s.write(history.Record{Kind: history.Ended})
	s.ended = true
	actions, _ := s.gate.Step(s.r.now, gate.Event{Kind: gate.EventEnd})
	for i := range actions {
		if actions[i].Kind == gate.ActionDrop {
			s.carry(&actions[i])
		}
	}
	s.balanced()
	st := s.gate.Stats()
	for i := range st.Workers {
		w := &st.Workers[i]
		s.write(history.Record{Kind: history.Counted, Worker: w.Worker, Counts: &w.Counts, Staleness: w.Staleness})
	}
}
