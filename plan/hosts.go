package plan

import "slices"

// Algorithm is how an AllReduce is done.
type Algorithm uint8

// The algorithms. Package collective tells what each costs.
const (
	// ByRing is around all ranks, in the order of the group: the usual.
	ByRing Algorithm = iota
	// ByHalving is by recursive halving and doubling.
	ByHalving
	// ByDoubling is by recursive doubling.
	ByDoubling
	// ByTree is up and down a binomial tree.
	ByTree
	// ByHosts is inside each host first, then between hosts (Plan.Hosts).
	ByHosts
	// ByExchange gives all branches to all ranks, which each sum them by themselves
	// (Order Tree only, where the other way is ByRing).
	ByExchange
)

// Algorithms returns all of them that any AllReduce can be done by.
func Algorithms() []Algorithm { return []Algorithm{ByRing, ByHalving, ByDoubling, ByTree, ByHosts} }

// HostsOf returns the indices of a group's members by host, in the order of the
// group; members that Plan.Hosts does not name, all if it is empty, share a host.
func (p *Plan) HostsOf(group []int) [][]int {
	byHost := make([][]int, len(p.Hosts)+1)
	for i, rank := range group {
		h := slices.IndexFunc(p.Hosts, func(ranks []int) bool { return slices.Contains(ranks, rank) })
		if h < 0 {
			h = len(p.Hosts)
		}
		byHost[h] = append(byHost[h], i)
	}
	return slices.DeleteFunc(byHost, func(h []int) bool { return len(h) == 0 })
}
