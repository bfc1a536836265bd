package strategy_test

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// TestAlgorithmsByCost: the plan says by which algorithm each bucket is summed, as
// the costs have it, and so its digest does.
func TestAlgorithmsByCost(t *testing.T) {
	hosts := [][]int{{0, 1}, {2, 3}}
	digests := map[string]string{}
	for _, c := range []struct {
		name    string
		cluster strategy.Cluster
		want    plan.Algorithm
	}{
		{"few steps", strategy.Cluster{Workers: 4}, plan.ByDoubling},
		{"few bytes", strategy.Cluster{Workers: 4, Costs: cost.Table{cost.Unix: {Alpha: 1e-3, Beta: 1}}}, plan.ByHalving},
		{"few bytes of three", strategy.Cluster{Workers: 3, Costs: cost.Table{cost.Unix: {Alpha: 1e-12, Beta: 1}}}, plan.ByRing},
		{"another path", strategy.Cluster{Workers: 3, Local: cost.TCP, Costs: cost.Table{cost.Unix: {Alpha: 1e-12, Beta: 1}, cost.TCP: {Alpha: 1}}}, plan.ByDoubling},
		{"hosts", strategy.Cluster{Workers: 4, Hosts: hosts, Costs: cost.Table{cost.Unix: {Alpha: 1e-9}, cost.TCP: {Alpha: 1e-9, Beta: 1}}}, plan.ByHosts},
		{"forced", strategy.Cluster{Workers: 4, Algorithm: "tree"}, plan.ByTree},
		{"forced between hosts", strategy.Cluster{Workers: 4, Hosts: [][]int{{0}, {1, 2, 3}}, Algorithm: "hierarchical"}, plan.ByHosts},
	} {
		program, err := strategy.AllReduce(steps(t)["mlp"], c.cluster)
		if err != nil {
			t.Fatal(err)
		}
		p := program.Plans[strategy.StepPlan]
		if err := check.Plan(p); err != nil {
			t.Error(err)
		}
		for _, task := range p.Ranks[len(p.Ranks)-1] {
			if task.Op == plan.AllReduce && task.Algorithm != c.want {
				t.Errorf("%s: by %v, want %v", c.name, task.Algorithm, c.want)
			}
		}
		if other := digests[plan.Digest(p)]; other != "" {
			t.Errorf("%s and %s have the same digest", c.name, other)
		}
		digests[plan.Digest(p)] = c.name
	}
}

func TestWrongHosts(t *testing.T) {
	for want, hosts := range map[string][][]int{
		"in order, each once":  {{0, 2}, {1}},
		"each once":            {{0, 1}, {1, 2}},
		"hosts [[0 1]] are of": {{0, 1}},
		"at least one worker":  {{0, 1, 2}, {}},
	} {
		_, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 3, Hosts: hosts})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", hosts, err, want)
		}
	}
}

func TestWrongAlgorithm(t *testing.T) {
	for want, name := range map[string]string{"several hosts": "hierarchical", "rign": "rign"} {
		_, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 3, Algorithm: name})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
