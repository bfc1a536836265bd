package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
)

// TestGradientsLieInOneArena: what AllReduce sums in place lies in the order in
// which it is sent off, with no more between than what aligns it; nothing else
// is placed anywhere, and no other strategy places anything.
func TestGradientsLieInOneArena(t *testing.T) {
	for name, step := range steps(t) {
		program, err := strategy.AllReduce(step, strategy.Cluster{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		p := program.Plans[strategy.StepPlan]
		want, end := map[string]int{}, 0
		for _, task := range p.Ranks[0] {
			if task.Op == plan.AllReduce {
				for _, r := range task.In {
					v := &p.Values[r.Value]
					want[v.Name] = end
					for end += v.Shape.Elems() * v.DType.Size(); end%64 != 0; {
						end++
					}
				}
			}
		}
		if d := cmp.Diff(want, placed(t, p)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(map[string]int{}, placed(t, program.Plans[strategy.EvalPlan])); d != "" {
			t.Errorf("%s, evaluation (-want +got):\n%s", name, d)
		}
		servers, err := strategy.PS(step, strategy.Cluster{Workers: 2, Servers: 2})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]int{}, placed(t, servers.Plans[strategy.StepPlan])); d != "" {
			t.Errorf("%s, ps (-want +got):\n%s", name, d)
		}
	}
}

// placed gives the offsets of what is in arena 1, and fails for another.
func placed(t *testing.T, p *plan.Plan) map[string]int {
	t.Helper()
	at := map[string]int{}
	for i := range p.Values {
		switch v := &p.Values[i]; {
		case v.Arena == 1:
			at[v.Name] = v.Offset
		case v.Arena != 0:
			t.Errorf("%s is in arena %d", v.Name, v.Arena)
		}
	}
	return at
}
