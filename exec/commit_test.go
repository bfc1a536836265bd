package exec_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// Weight and loss are summed in the order of the group on every rank, so that
// all divide by the same bits; in any other order 1e16 swallows the 1.
func TestCommitGivesTheSameBits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := []float64{1e16, 1, -1e16, 3}
		want := 0.0
		for _, v := range values {
			want += v
		}
		l := newLearn(len(values), 1)
		l.spoil = func(rank int, _ int64, _, loss []float64) { loss[0] = values[rank] }
		w := mem.NewNetwork(len(values), mem.Options{Link: uneven})
		var cfgs []exec.Config
		for r := range values {
			cfg := l.config(r, w)
			cfg.OnStep = func(step int64, got exec.Result) {
				if math.Float64bits(got.Loss) != math.Float64bits(want) {
					t.Errorf("rank %d step %d: loss %v, want %v", r, step, got.Loss, want)
				}
			}
			cfgs = append(cfgs, cfg)
		}
		_, errs := runAll(t, w, 3, cfgs...)
		must(t, errs)
	})
}

// Servers are told of a step that is skipped as of any other: they must drop
// what was pushed, and the pulls of the next step wait for their word.
func TestSkippedStepIsAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := storePlan()
		grad := d.runs["grad"]
		d.runs["grad"] = func(rank int) run {
			f := grad(rank)
			return func(step int64, in, out []*tensor.Tensor) error {
				err := f(step, in, out)
				if step == 1 {
					out[2].SetScalar(math.NaN())
				}
				return err
			}
		}
		cfg := d.config(0, nil)
		stores := &fakeStores{}
		cfg.Stores = stores
		cfg.Feeder = feedFunc(func(_ int64, out []*tensor.Tensor) error { out[0].Resize(0); return nil })
		_, errs := runAll(t, nil, 3, cfg)
		must(t, errs)
		verdicts := slices.DeleteFunc(stores.log, func(line string) bool { return !strings.HasPrefix(line, "committed") })
		want := []string{"committed step 0 weight 3", "committed step 1 weight 0", "committed step 2 weight 3"}
		if !slices.Equal(verdicts, want) {
			t.Errorf("stores were told %q, want %q", verdicts, want)
		}
	})
}
