package gangline

import (
	"math/bits"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/cost"
)

// followedMax is the most ranks whose schedules are followed step by step to choose one;
// larger groups take few steps up to fewSteps bytes, and few bytes beyond.
const (
	followedMax = 256
	fewSteps    = 32 << 10
)

// allReduce returns the schedule that takes least by the costs of the job, which all
// ranks have agreed on in joining. So that a group need not work it out for every
// size, it is chosen for the power of two from there on.
func (g *Group) allReduce(bytes int) (*collective.Schedule, error) {
	n := len(g.members)
	if n > followedMax {
		if bytes <= fewSteps {
			return collective.DoublingAllReduce(n), nil
		}
		return collective.RingAllReduce(n), nil
	}
	if g.chooser == nil {
		machine := g.world.machine(g.members)
		chooser, err := cost.NewChooser(n, machine)
		if err != nil {
			return nil, err
		}
		g.chooser, g.hosts = chooser, machine.Hosts
	}
	by := g.chooser.Choices(1 << bits.Len(uint(max(bytes, 1)-1)))[0].Algorithm
	return collective.AllReduceBy(by, n, g.hosts)
}

// machine is what the choice of algorithms goes by: the costs, and which members are
// on which host. What ranks of one host share does not depend on their system, so that
// ranks on different ones choose alike.
func (w *world) machine(members []int) cost.Machine {
	m := cost.Machine{Costs: w.cfg.Costs, Local: cost.SHM}
	at := map[string]int{}
	for i, rank := range members {
		host := w.hosts[rank]
		if _, known := at[host]; !known {
			at[host] = len(m.Hosts)
			m.Hosts = append(m.Hosts, nil)
		}
		m.Hosts[at[host]] = append(m.Hosts[at[host]], i)
	}
	return m
}

// plan returns the schedule of a call, and which member stands at each index of it.
func (g *Group) plan(key runnerKey) (s *collective.Schedule, order []int, err error) {
	if key.goal == collective.AllReduce {
		s, err = g.allReduce(key.elems * key.dtype.Size())
		return s, from(0, len(g.members)), err
	}
	s, order = planned(key, len(g.members))
	return s, order, nil
}

// planned is plan for what can be done in one way.
func planned(key runnerKey, n int) (s *collective.Schedule, order []int) {
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	switch key.goal {
	case collective.ReduceScatter:
		return collective.RingReduceScatter(n), order
	case collective.AllGather:
		return collective.RingAllGather(n), order
	case collective.Broadcast:
		return collective.BinomialBroadcast(n), from(key.root, n)
	case collective.Reduce:
		return collective.BinomialReduce(n), from(key.root, n)
	case collective.Gather:
		if key.root == 0 {
			return collective.BinomialGather(n), order
		}
		return flat(collective.Gather, n, key.root), order
	case collective.Scatter:
		if key.root == 0 {
			return collective.BinomialScatter(n), order
		}
		return flat(collective.Scatter, n, key.root), order
	case collective.AllReduce, collective.AllToAll, collective.Barrier: // see plan; or they have runners of their own
	}
	panic("gangline: no schedule of a " + key.goal.String())
}

// from is the members in a circle that begins with root.
func from(root, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = (root + i) % n
	}
	return order
}

// flat gathers chunks straight to a root, or scatters them from it: n-1 messages there.
// Chunks stand in the order of the members, so that no other root than the first has
// a tree in which each rank's chunks lie together.
func flat(goal collective.Goal, n, root int) *collective.Schedule {
	s := &collective.Schedule{Goal: goal, Name: "flat", N: n, Chunks: n, Ranks: make([][]collective.Step, n)}
	for i := range n {
		if i == root {
			continue
		}
		give, take := i, root
		if goal == collective.Scatter {
			give, take = root, i
		}
		chunk := collective.Range{Lo: i, Hi: i + 1}
		s.Ranks[give] = append(s.Ranks[give], collective.Step{To: take, Send: chunk, From: collective.Nobody})
		s.Ranks[take] = append(s.Ranks[take], collective.Step{To: collective.Nobody, From: give, Recv: chunk, Action: collective.Copy})
	}
	return s
}
