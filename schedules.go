package gangline

import (
	"github.com/gangline/gangline/collective"
)

// fewSteps is up to how many bytes an all-reduce takes as few steps as it can, rather
// than send as few bytes.
const fewSteps = 32 << 10

// plan returns the schedule of a call, and which member stands at each index of it.
func plan(key runnerKey, n int) (s *collective.Schedule, order []int) {
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	switch key.goal {
	case collective.AllReduce:
		if key.elems*key.dtype.Size() <= fewSteps {
			return collective.DoublingAllReduce(n), order
		}
		return collective.RingAllReduce(n), order
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
	case collective.AllToAll, collective.Barrier: // have runners of their own
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
