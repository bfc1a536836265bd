package simtest

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// machine is one rank's side of a collective, step after step.
type machine interface {
	// begin takes part on copy c of the values.
	begin(step int64, c int)
	// arrived is called when something has come for it.
	arrived()
}

// place is what machines share: a rank's place in a group.
type place struct {
	w     *worker
	d     *deck
	task  int
	t     *plan.Task
	n, me int
	step  int64
	c     int
	busy  bool
}

func newMachine(w *worker, d *deck, i int, t *plan.Task) (machine, error) {
	group := d.plan.Groups[t.Group]
	p := place{w: w, d: d, task: i, t: t, n: len(group), me: slices.Index(group, w.rank)}
	if p.n > 1 && p.me != w.rank {
		return nil, fmt.Errorf("the simulation has one group of all workers, and each alone, not %v", group)
	}
	exact := t.Order == plan.Any && t.Codec == "" && d.plan.Values[t.In[len(t.In)-1].Value].DType == tensor.F64
	switch {
	case t.Kind == plan.Commit:
		return newCommit(p), nil
	case exact && t.Op == plan.AllReduce:
		return newReduction(p)
	case exact && t.Op == plan.AllGatherRows:
		return &rows{place: p}, nil
	}
	return newBlocking(p)
}

func (p *place) start(step int64, c int) { p.step, p.c, p.busy = step, c, true }

func (p *place) in(i int) *tensor.Tensor  { return p.d.tasks[p.task].in[p.c][i] }
func (p *place) out(i int) *tensor.Tensor { return p.d.tasks[p.task].out[p.c][i] }

// send gives something to a rank of the group, which must not change after.
func (p *place) send(to int, body any) { p.w.send(to, p.t.Tag, body) }

// get takes the next message of a rank, if it is there.
func (p *place) get(from int) (any, bool) {
	in := inlet{from, p.t.Tag}
	q := p.w.inbox[in]
	if len(q) == 0 {
		return nil, false
	}
	p.w.inbox[in] = q[1:]
	return q[0], true
}

// finish ends the task.
func (p *place) finish() {
	p.busy = false
	step := p.step
	p.w.after(p.w.c.work(p.w.rank), func() { p.w.ended(p.task, step) })
}

// reduction follows the schedule of package collective: the same chunks, the same
// order of sums, so the same bits.
type reduction struct {
	place
	schedule *collective.Schedule
	steps    []collective.Step
	k        int
	// run is what is summed, all values together, with the gaps between them.
	run []float64
	at  []int // where each value begins in it
}

func newReduction(p place) (*reduction, error) {
	lo, hi, err := p.d.plan.Span(p.t.In)
	if err != nil {
		return nil, err
	}
	s, err := collective.AllReduceBy(p.t.Algorithm, p.n, p.d.plan.HostsOf(p.d.plan.Groups[p.t.Group]))
	if err != nil {
		return nil, err
	}
	r := &reduction{place: p, schedule: s, steps: s.Ranks[p.me], run: make([]float64, (hi-lo)/8)}
	for _, ref := range p.t.In {
		r.at = append(r.at, (p.d.plan.Values[ref.Value].Offset-lo)/8)
	}
	return r, nil
}

func (r *reduction) begin(step int64, c int) {
	r.start(step, c)
	clear(r.run)
	for i, at := range r.at {
		copy(r.run[at:], r.in(i).F64())
	}
	r.k = 0
	r.give()
	r.arrived()
}

func (r *reduction) chunk(g collective.Range) []float64 {
	n := r.schedule.Chunks
	return r.run[collective.Bound(g.Lo, n, len(r.run)):collective.Bound(g.Hi, n, len(r.run))]
}

// end gives the values their sums.
func (r *reduction) end() {
	for i, at := range r.at {
		copy(r.out(i).F64(), r.run[at:])
	}
	r.finish()
}

// give sends what step k sends; empty chunks are not sent.
func (r *reduction) give() {
	if r.k < len(r.steps) && r.steps[r.k].To != collective.Nobody {
		if v := r.chunk(r.steps[r.k].Send); len(v) > 0 {
			r.send(r.steps[r.k].To, slices.Clone(v))
		}
	}
}

func (r *reduction) arrived() {
	for r.busy && r.k < len(r.steps) {
		s := r.steps[r.k]
		if dst := r.chunk(s.Recv); s.From != collective.Nobody && len(dst) > 0 {
			body, ok := r.get(s.From)
			if !ok {
				return
			}
			for i, v := range body.([]float64) {
				if s.Action == collective.Add {
					v += dst[i]
				}
				dst[i] = v
			}
		}
		r.k++
		r.give()
	}
	if r.busy {
		r.end()
	}
}

// sparse is what one rank gave: ascending keys, and a row for each.
type sparse struct {
	keys []int64
	rows []float64
}

// rows gathers what all ranks gave around a ring and adds rows of equal keys in
// the order of ranks.
type rows struct {
	place
	blocks []sparse
	have   int
}

func (r *rows) begin(step int64, c int) {
	r.start(step, c)
	r.blocks, r.have = make([]sparse, r.n), 1
	r.blocks[r.me] = sparse{slices.Clone(r.in(0).I64()), slices.Clone(r.in(1).F64())}
	r.give()
	r.arrived()
}

// give passes on the block that came last.
func (r *rows) give() {
	if r.have < r.n {
		r.send((r.me+1)%r.n, r.blocks[(r.me-r.have+1+r.n)%r.n])
	}
}

func (r *rows) arrived() {
	for r.busy && r.have < r.n {
		body, ok := r.get((r.me - 1 + r.n) % r.n)
		if !ok {
			return
		}
		r.blocks[(r.me-r.have+r.n)%r.n] = body.(sparse)
		r.have++
		r.give()
	}
	if r.busy {
		r.sum()
		r.finish()
	}
}

func (r *rows) sum() {
	var keys []int64
	for _, b := range r.blocks {
		keys = append(keys, b.keys...)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	dim := r.in(1).Shape()[1]
	r.out(0).Resize(len(keys))
	r.out(1).Resize(len(keys), dim)
	copy(r.out(0).I64(), keys)
	sum := r.out(1).F64()
	clear(sum)
	for _, b := range r.blocks {
		for i, key := range b.keys {
			at, _ := slices.BinarySearch(keys, key)
			for j, v := range b.rows[i*dim : (i+1)*dim] {
				sum[at*dim+j] += v
			}
		}
	}
}

// ballot is what a rank says in a commit: weight and loss, of each of its slices if it
// has any.
type ballot struct {
	pairs []float64
	fault int
}

// What a ballot finds fault with, the worst first.
const (
	faultOwn  = iota // weight or loss
	faultGrad        // a gradient
	faultNone
)

// commit has all ranks say to all what they have, so that each works out the
// same verdict: package exec does the same over an Endpoint.
type commit struct {
	place
	pairs   int
	scaled  bool // the last value is the scale of the loss
	ballots []ballot
	have    []bool
}

func newCommit(p place) *commit {
	v := &commit{place: p, pairs: p.d.plan.Pairs(p.t)}
	if s := p.w.c.problem.step.Scaling; s != nil {
		v.scaled = p.d.plan.Values[p.t.In[len(p.t.In)-1].Value].Name == s.Var.Name
	}
	return v
}

func (v *commit) begin(step int64, c int) {
	v.start(step, c)
	v.ballots, v.have = make([]ballot, v.n), make([]bool, v.n)
	b := ballot{fault: faultNone}
	for i, t := range v.d.tasks[v.task].in[c] {
		if i < 2*v.pairs {
			b.pairs = append(b.pairs, t.Scalar())
		}
		if !finite(t) {
			b.fault = min(b.fault, i/(2*v.pairs), faultGrad)
		}
	}
	v.ballots[v.me], v.have[v.me] = b, true
	for d := 1; d < v.n; d++ {
		v.send((v.me+d)%v.n, b)
	}
	v.arrived()
}

func (v *commit) arrived() {
	if !v.busy {
		return
	}
	for i := range v.n {
		if v.have[i] {
			continue
		}
		body, ok := v.get(i)
		if !ok {
			return
		}
		v.ballots[i], v.have[i] = body.(ballot), true
	}
	weight, loss, worst := 0.0, 0.0, faultNone
	for _, b := range v.ballots {
		worst = min(worst, b.fault)
		for i := 0; i < len(b.pairs); i += 2 {
			if w, l := b.pairs[i], b.pairs[i+1]; w-w == 0 && l-l == 0 { // both are finite
				weight += w
				loss += l
			}
		}
	}
	if worst < faultNone {
		weight = 0
	}
	v.out(0).SetScalar(v.divisor(weight, worst))
	v.out(1).SetScalar(loss)
	if weight == 0 {
		v.revert()
	}
	v.w.c.verdict(v.w.member, v.step, weight, v.n)
	for _, l := range v.w.links {
		l.committed(v.step, weight)
	}
	v.finish()
}

// divisor is what gradients are divided by.
func (v *commit) divisor(weight float64, worst int) float64 {
	switch in := v.d.tasks[v.task].in[v.c]; {
	case !v.scaled:
		return weight
	case worst == faultGrad:
		return optim.Skip()
	default:
		return weight * in[len(in)-1].Scalar()
	}
}

// revert takes back what compression lost in a step that changes nothing.
func (v *commit) revert() {
	for _, b := range v.w.buckets {
		b.Revert()
	}
}
