package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// Check returns nil if the model allows the history, else a *ViolationError: the first
// in the order of workers, then of shards, each in its own order. The error is
// another one if the job itself is none. It takes O(records · workers) time.
func Check(job Job, records []Record) error {
	if err := job.Model.Validate(len(job.Workers)); err != nil {
		return err
	}
	if job.Shards < 1 || !slices.IsSorted(job.Workers) || len(slices.Compact(slices.Clone(job.Workers))) != len(job.Workers) {
		return fmt.Errorf("history: %d shards and workers %v, want at least one, and distinct workers, ascending", job.Shards, job.Workers)
	}
	c := &checker{
		job: job, records: records, sent: make(map[at]sent), asked: make(map[request]int), told: make(map[request][]int),
		served: make(map[request][]int), leadRead: make(map[clock]int64),
	}
	// A violation travels up as a panic of its own type, from wherever it is found.
	var v *ViolationError
	if err := catch(c.run); errors.As(err, &v) {
		return v
	}
	return nil
}

// catch returns the violation that f ends with.
func catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ViolationError:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// at names a contribution on a shard.
type at struct {
	shard  int
	worker consistency.Worker
	clock  int64
}

// clock names a contribution.
type clock struct {
	worker consistency.Worker
	clock  int64
}

// request names a read.
type request struct {
	shard   int
	worker  consistency.Worker
	request uint64
}

// sent is what a worker sent.
type sent struct {
	base   int64
	weight float64
	finite bool
	life   int
	acked  bool
}

type checker struct {
	job     Job
	records []Record

	sent  map[at]sent
	acked []int // records
	asked map[request]int
	told  map[request][]int // records of answers

	served   map[request][]int
	leadRead map[clock]int64 // the least version that the lead served
	shards   []*shard
}

func (c *checker) run() {
	byWorker := make([][]int, len(c.job.Workers))
	byShard := make([][]int, c.job.Shards)
	for i := range c.records {
		r := &c.records[i]
		w, known := slices.BinarySearch(c.job.Workers, r.Worker)
		ofShard := r.Kind == Decided || r.Kind == Restarted || r.Kind == Ended
		if r.Shard < 0 || r.Shard >= c.job.Shards || !known && !ofShard || r.Kind == Decided && r.Verdict == nil || r.Kind == Counted && r.Counts == nil {
			c.fail(RuleForm, i, 0, "the record is of no shard or worker of the job, or lacks what it is about")
		}
		if r.ofWorker() {
			byWorker[w] = append(byWorker[w], i)
		} else {
			byShard[r.Shard] = append(byShard[r.Shard], i)
		}
	}
	for _, of := range byWorker {
		c.worker(of)
	}
	for n, of := range byShard {
		s := newShard(c, n)
		c.shards = append(c.shards, s) // the lead first: others are held against it
		for _, i := range of {
			s.record(i, &c.records[i])
		}
	}
	c.answers()
	c.together()
}

// fail ends the check.
func (c *checker) fail(rule Rule, record int, version int64, format string, args ...any) {
	v := &ViolationError{Rule: rule, Record: record, Version: version, Text: fmt.Sprintf(format, args...)}
	if record >= 0 {
		r := &c.records[record]
		v.Shard, v.Worker, v.Clock = r.Shard, r.Worker, r.Clock
	}
	panic(v)
}

// worker reads what one worker wrote: what it sent, and whether its bases are
// what it had read.
func (c *checker) worker(of []int) {
	type lived struct {
		at
		life int
	}
	read := make(map[lived]int64) // least version answered for a clock
	last := make(map[int]int64)
	for _, i := range of {
		r := &c.records[i]
		name, req := at{r.Shard, r.Worker, r.Clock}, request{r.Shard, r.Worker, r.Request}
		switch r.Kind { //nolint:exhaustive // a worker writes no others
		case Sent:
			if old, again := c.sent[name]; again && (r.Life <= old.life || old.acked) {
				c.fail(RuleForm, i, r.Version, "sent anew in life %d, after life %d; a shard had heard of it: %v", r.Life, old.life, old.acked)
			}
			had, ok := read[lived{name, r.Life}]
			if !ok { // it computes from what it read for an earlier clock
				had = c.job.Version
				if v, some := last[r.Shard]; some {
					had = v
				}
			}
			if r.Base > had {
				c.fail(RuleBase, i, had, "says that it is made of version %d, and had read version %d", r.Base, had)
			}
			c.sent[name] = sent{base: r.Base, weight: r.Weight, finite: r.Finite, life: r.Life}
		case Acked:
			of, ok := c.sent[name]
			if !ok {
				c.fail(RuleAnswer, i, r.Version, "answered before it was sent")
			}
			of.acked = true
			c.sent[name] = of
			c.acked = append(c.acked, i)
		case Asked:
			if _, again := c.asked[req]; again {
				c.fail(RuleForm, i, r.Version, "request %d is asked twice", r.Request)
			}
			c.asked[req] = i
		default: // Answered
			c.told[req] = append(c.told[req], i)
			last[r.Shard] = r.Version
			if had, ok := read[lived{name, r.Life}]; !ok || r.Version < had {
				read[lived{name, r.Life}] = r.Version
			}
		}
	}
}

// answers holds what workers were told against what shards did.
func (c *checker) answers() {
	for _, i := range c.acked {
		r := &c.records[i]
		s := c.shards[r.Shard]
		fate, known := s.fates[clock{r.Worker, r.Clock}]
		switch {
		case !known && !s.ended: // its pieces may be there
		case !known:
			c.fail(RuleAnswer, i, s.version, "was answered %v and is nowhere on the shard: an acknowledged push is lost", r.Outcome)
		case !r.Outcome.Final() || fate.outcome == r.Outcome:
			continue
		default:
			c.fail(RuleAnswer, i, s.version, "was answered %v, the shard says %v", r.Outcome, fate.outcome)
		}
		if r.Outcome.Final() {
			c.fail(RuleAnswer, i, s.version, "was answered %v, the shard has decided nothing", r.Outcome)
		}
	}
	for i := range c.records {
		r := &c.records[i]
		if r.Kind != Answered {
			continue
		}
		_, asked := c.asked[request{r.Shard, r.Worker, r.Request}]
		found := slices.ContainsFunc(c.served[request{r.Shard, r.Worker, r.Request}], func(k int) bool {
			s := &c.records[k]
			return s.Version == r.Version && s.Clock == r.Clock && slices.Equal(s.Clocks, r.Clocks)
		})
		if !asked || !found {
			c.fail(RuleAnswer, i, r.Version, "read %d was answered from version %d and clocks %v; the shard served no such thing", r.Request, r.Version, r.Clocks)
		}
	}
}

// together compares shards of one lead.
func (c *checker) together() {
	lead := c.shards[0]
	if !c.job.Model.Synchronous() {
		return
	}
	for _, s := range c.shards[1:] {
		if s.ended && lead.ended && s.version != lead.version {
			panic(&ViolationError{
				Rule: RuleSet, Record: -1, Shard: s.number, Version: s.version,
				Text: fmt.Sprintf("the run ended at version %d here, and at version %d on the lead", s.version, lead.version),
			})
		}
	}
	for _, k := range lead.readied {
		r := &c.records[k]
		for _, s := range c.shards {
			name := clock{r.Worker, r.Clock}
			if _, ok := s.fates[name]; !ok {
				c.fail(RuleAnswer, k, lead.version, "the lead heard that all shards have it, and shard %d has not", s.number)
			}
		}
	}
}
