package train

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
)

// A step cut into four micro-batches of uneven sizes (7, 8, 7 and 8 rows of 30; on three
// workers 2, 3, 2 and 3 of 10) is the step of the whole batch, whatever the strategy,
// with dense gradients and those of tables, and with dropout.
func TestMicroBatches(t *testing.T) {
	clicks := open(t, data.Spec{Format: "generated", Rows: 300, Buckets: 500, Seed: 5})
	for _, c := range []struct {
		name, model string
		src         data.Source
		tables      bool
	}{
		{"logistic-table", "{kind: logistic, table: true}", writeRows(t, 2), true},
		{"mlp", "{kind: mlp, hidden: [16, 8], classes: 3}", writeRows(t, 3), false},
		{"ctr", "{kind: ctr, hidden: [8], dim: 4}", clicks, true},
		{"gpt", "{kind: gpt, dim: 8, layers: 2, heads: 2, dropout: 0.2}", writeText(t), false},
	} {
		for _, rule := range []string{"{kind: sgd, lr: 0.1}", "{kind: momentum, lr: 0.05, clip_norm: 0.2}"} {
			for precision, bound := range map[string]float64{"f32": 1e-6, "f64": 1e-12} {
				if raced && (precision != "f32" || !strings.Contains(rule, "sgd")) {
					continue
				}
				text := fmt.Sprintf("model: %s\noptimizer: %s\nprecision: %s\nbatch: 30\nepochs: 99\ndata: {train: {format: generated}}\n", c.model, rule, precision)
				t.Run(c.name+"/"+rule+"/"+precision, func(t *testing.T) {
					const steps = 10
					backend := map[string]string{"f32": "backend=native", "f64": "backend=ref"}[precision]
					whole := trainMem(t, parse(t, text, backend), c.src, steps)
					for _, s := range [][]string{
						{"strategy.kind=serial"},
						{"strategy.kind=allreduce", "strategy.workers=2"},
						{"strategy.kind=allreduce", "strategy.workers=3", "strategy.bucket=100B"},
						{"strategy.kind=zero", "strategy.workers=3", "strategy.stage=1", "strategy.bucket=200B"},
						{"strategy.kind=zero", "strategy.workers=2", "strategy.stage=2", "strategy.bucket=200B"},
						{"strategy.kind=zero", "strategy.workers=2", "strategy.stage=3", "strategy.bucket=200B"},
						{"strategy.kind=ps", "strategy.workers=2", "strategy.servers=2"},
					} {
						if s[0] == "strategy.kind=ps" && (parse(t, text).Optimizer.Separable() != nil || c.tables) {
							continue // refused, which the tests of job and strategy prove
						}
						got := trainMem(t, parse(t, text, append(s, backend, "micro_batches=4")...), c.src, steps)
						if t.Failed() {
							return
						}
						if global, _ := difference(whole.params, got.params); !(global <= bound) {
							t.Errorf("%v: parameters differ by %.3g from those of whole batches, the bound is %.0g", s, global, bound)
						}
					}
				})
			}
		}
	}
}
