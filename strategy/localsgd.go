package strategy

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// LocalSGD gives every worker a copy of all parameters, which it trains by its own
// gradients and its own total weight: Averaging.Every steps long nothing crosses
// between workers. Then the copies are averaged, by an AllReduce a bucket of
// parameters: w = (1/n)·Σ w_r over the n workers, all counting alike (their rows differ
// by one a step at most). With Every 1 and plain SGD that is allreduce but for rounding,
// as long as the workers have equal shares of the batch.
//
// Bytes on the wire: those of one all-reduce of the parameters (and of the slots, with
// Slots average) every so many steps; nothing else.
//
// With an outer optimizer the average a' is not taken as it is: from the parameters a
// at the start of the cycle a step with momentum is made along their difference,
//
//	m = momentum·m + (a' - a);  a = a + lr·m;  w = a
//
// or, with Nesterov, a = a + lr·((a' - a) + momentum·m). The state m lasts over
// checkpoints.
//
// Zinkevich et al. 2010 average once, McMahan et al. 2017 (FedAvg) again and again;
// Stich 2019, "Local SGD converges fast and communicates little", proves the rate.
// The outer step is the block momentum of Chen and Huo 2016 (BMUF), where m is Δ with
// lr = ζ and momentum = η, and the outer optimizer of Douillard et al. 2023 (DiLoCo).
func LocalSGD(step *graph.Step, c Cluster) (*plan.Program, error) {
	a := c.Averaging
	if a.Every == 0 {
		a.Every = LocalSGDEvery
	}
	if a.Alpha != 0 {
		return nil, fmt.Errorf("strategy localsgd: alpha %g: copies are averaged in full; alpha is of sma", a.Alpha)
	}
	if a.Slots == "" {
		a.Slots = KeepSlots
	}
	if a.Outer.LR == 0 {
		a.Outer.LR = 1
	}
	return localProgram("localsgd", step, c, a, localSGDAverage)
}

// localSGDAverage ends a cycle; settling says that the copies must be equal in every
// slot afterwards.
func localSGDAverage(b *builder, a Averaging, settling bool) {
	slots := a.Slots
	if settling && slots == KeepSlots {
		slots = AverageSlots
	}
	b.declareOuter(a)
	b.holdOnWorkers()
	sums := b.sumCopies(slots == AverageSlots)
	for i := range b.step.Params {
		p := &b.step.Params[i]
		b.fromAverage(p, a, sums[p.Var])
		for _, slot := range p.Slots {
			switch slots {
			case AverageSlots:
				b.combine(slot.Name, b.node(slot), []float64{b.share()}, sums[slot])
			case ResetSlots:
				b.combine(slot.Name, b.node(slot), []float64{slot.Attr.Value})
			case KeepSlots:
			}
		}
	}
}

// outer is the state of the outer optimizer for one parameter.
type outer struct{ momentum, anchor int }

// declareOuter declares what the outer optimizer keeps, if there is one.
func (b *builder) declareOuter(a Averaging) {
	if a.Outer.plain() {
		return
	}
	b.outer = make(map[*graph.Param]outer)
	for i := range b.step.Params {
		p := &b.step.Params[i]
		slot := func(name string) int {
			v := b.like(p.Var.Name+name, b.node(p.Var), b.node(p.Var))
			b.plan.Values[v].Class = plan.Slot
			return v
		}
		b.outer[p] = outer{momentum: slot("/outer"), anchor: slot("/outer.from")}
	}
}

// localSGDInit notes where the outer optimizer starts from.
func localSGDInit(b *builder, a Averaging) {
	b.declareOuter(a)
	b.holdOnWorkers()
	for i := range b.step.Params {
		p := &b.step.Params[i]
		b.combine(p.Var.Name, b.outer[p].anchor, []float64{1}, b.node(p.Var))
	}
}

// fromAverage makes a parameter of the sum over all copies of it.
func (b *builder) fromAverage(p *graph.Param, a Averaging, sum int) {
	w, name := b.node(p.Var), p.Var.Name
	if a.Outer.plain() {
		b.combine(name, w, []float64{b.share()}, sum)
		return
	}
	m, from, lr, momentum := b.outer[p].momentum, b.outer[p].anchor, a.Outer.LR, a.Outer.Momentum
	b.combine(name+".momentum", m, []float64{momentum, b.share(), -1}, m, sum, from)
	if a.Outer.Nesterov {
		b.combine(name+".outer", from, []float64{1 - lr, lr * b.share(), lr * momentum}, from, sum, m)
	} else {
		b.combine(name+".outer", from, []float64{1, lr}, from, m)
	}
	b.combine(name, w, []float64{1}, from)
}
