package job_test

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
)

func extended() job.Extensions {
	return job.Extensions{
		Models: []*model.Custom{{Name: "mine", Task: graph.Binary, Func: func(g *graph.Graph, c model.Config) graph.Model { return model.Logistic(g, c) }}},
		Rules:  []*optim.Custom{{Name: "plain", Uses: []string{"l2"}, F32: plain[float32], F64: plain[float64]}},
		Strategies: []*strategy.Custom{{Name: "ring", Func: func(s *graph.Step, c strategy.Cluster) (*plan.Program, error) {
			return strategy.AllReduce(s, c)
		}}},
	}
}

func plain[T optim.Float](u optim.Pass[T], p, g []T, _ [][]T) {
	for i := range p {
		p[i] -= u.Rate * u.Mean(g[i], p[i])
	}
}

// A job finds what the program brought by kind, and is refused as ever.
func TestExtensions(t *testing.T) {
	text := strings.NewReplacer("logistic", "mine", "adam", "plain").Replace(adult)
	j, err := extended().Parse("a", []byte(text), []string{"strategy.kind=ring", "strategy.workers=3", "optimizer.l2=0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if j.Optimizer.Custom == nil || j.Extensions.Model("mine") == nil || j.Extensions.Model("logistic") != nil {
		t.Errorf("got %+v", j)
	}
	for kind, want := range map[string]bool{"ring": true, "serial": true, "rung": false} {
		if s, err := j.Extensions.Strategy(kind); (s != nil && err == nil) != want {
			t.Errorf("strategy %s: %v", kind, err)
		}
	}
	_, _, err = j.Extensions.Build(model.Config{Kind: "mime"})
	if err == nil || !strings.Contains(err.Error(), `did you mean "mine"?`) {
		t.Errorf("got %v", err)
	}
	for set, want := range map[string]string{
		"optimizer.kind=plan":     `kind is "plan"`,
		"optimizer.momentum=0.1":  "rule plain does not use it",
		"strategy.kind=rung":      `did you mean "ring"?`,
		"-=3":                     `unknown field "-"`,
		"optimizer.-.name=a":      `unknown field "-"`,
		"threads=-1":              "threads: must be 0 to",
		"optimizer.schedule.kind": "want path.to.field=value",
	} {
		if _, err := extended().Parse("a", []byte(text), []string{set}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: got %v, want %q in it", set, err, want)
		}
	}
	if _, err := job.Parse("a", []byte(text), nil); err == nil {
		t.Error("a program without extensions took a job that needs them")
	}
}

// Extensions that cannot be used are refused with what is wrong.
func TestExtensionsCheck(t *testing.T) {
	for _, c := range []struct {
		want string
		bend func(e *job.Extensions)
	}{
		{`model "mlp": gangline has one`, func(e *job.Extensions) { e.Models[0].Name = "mlp" }},
		{`strategy "ps": gangline has one`, func(e *job.Extensions) { e.Strategies[0].Name = "ps" }},
		{`strategy "": want a name`, func(e *job.Extensions) { e.Strategies[0].Name = "" }},
		{`rule "plain" is there twice`, func(e *job.Extensions) { e.Rules = append(e.Rules, e.Rules[0]) }},
		{`model "mine" has no function`, func(e *job.Extensions) { e.Models[0].Func = nil }},
		{`strategy "ring" has no function`, func(e *job.Extensions) { e.Strategies[0].Func = nil }},
		{`F32 or F64 is missing`, func(e *job.Extensions) { e.Rules[0].F32 = nil }},
	} {
		e := extended()
		c.bend(&e)
		if err := e.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q in it", err, c.want)
		}
	}
}
