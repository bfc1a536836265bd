package collective

import (
	"fmt"

	"github.com/gangline/gangline/plan"
)

// AllReduceBy returns the schedule of an algorithm over n ranks. hosts are their
// indices by host, each once; only ByHosts looks at them.
func AllReduceBy(a plan.Algorithm, n int, hosts [][]int) (*Schedule, error) {
	switch a {
	case plan.ByRing:
		return RingAllReduce(n), nil
	case plan.ByHalving:
		return HalvingAllReduce(n), nil
	case plan.ByDoubling:
		return DoublingAllReduce(n), nil
	case plan.ByTree:
		return TreeAllReduce(n), nil
	case plan.ByHosts:
		s, err := HierarchicalAllReduce(hosts)
		if err == nil && s.N != n {
			return nil, fmt.Errorf("collective: hosts %v have %d ranks, want %d", hosts, s.N, n)
		}
		return s, err
	case plan.ByExchange: // of sums in the order of a tree: package collective/tree
	}
	return nil, fmt.Errorf("collective: %v is no algorithm of an all-reduce", a)
}
