package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/strategy"
)

// Every kind has its defaults of averaging, and refuses what is another's, by the name
// of the field.
func TestAveraging(t *testing.T) {
	const text = "model: {kind: softmax, classes: 3}\ndata: {train: {format: generated}}\noptimizer: {kind: sgd, lr: 0.1}\n"
	for _, c := range []struct {
		set   string
		field string // of the error; empty: none
		want  strategy.Averaging
	}{
		{"kind=allreduce", "", strategy.Averaging{}},
		{"kind=localsgd", "", strategy.Averaging{Every: 8, Slots: "keep", Outer: strategy.Outer{LR: 1}}},
		{"kind=localsgd every=3 slots=reset outer.momentum=0.9 outer.lr=0.7", "", strategy.Averaging{Every: 3, Slots: "reset", Outer: strategy.Outer{Momentum: .9, LR: .7}}},
		{"kind=sma", "", strategy.Averaging{Every: 1, Alpha: .1}},
		{"kind=sma alpha=1 every=2", "", strategy.Averaging{Every: 2, Alpha: 1}},
		{"kind=allreduce every=2", "strategy.every", strategy.Averaging{}},
		{"kind=ps alpha=0.5", "strategy.alpha", strategy.Averaging{}},
		{"kind=localsgd alpha=0.5", "strategy.alpha", strategy.Averaging{}},
		{"kind=sma slots=keep", "strategy.slots", strategy.Averaging{}},
		{"kind=sma outer.momentum=0.5", "strategy.outer", strategy.Averaging{}},
		{"kind=localsgd every=-1", "strategy.every", strategy.Averaging{}},
		{"kind=localsgd every=65537", "strategy.every", strategy.Averaging{}},
		{"kind=localsgd slots=mean", "strategy.slots", strategy.Averaging{}},
		{"kind=localsgd outer.momentum=1", "strategy.outer.momentum", strategy.Averaging{}},
		{"kind=localsgd outer.lr=-1", "strategy.outer.lr", strategy.Averaging{}},
		{"kind=sma alpha=1.5", "strategy.alpha", strategy.Averaging{}},
		{"kind=sma alpha=-0.1", "strategy.alpha", strategy.Averaging{}},
		{"kind=localsgd servers=1", "strategy.servers", strategy.Averaging{}},
		{"kind=localsgd workers=300", "strategy.workers", strategy.Averaging{}},
	} {
		var set []string
		for s := range strings.FieldsSeq(c.set) {
			set = append(set, "strategy."+s)
		}
		j, err := job.Parse("test", []byte(text), set)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", c.set, err)
			} else if got := j.Strategy.Averaging(); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.set, got, c.want)
			}
			continue
		}
		if f, ok := errors.AsType[*job.FieldError](err); !ok || f.Field != c.field {
			t.Errorf("%s: %v, want an error of %s", c.set, err, c.field)
		}
	}
}
