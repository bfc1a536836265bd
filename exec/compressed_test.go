package exec_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// kinds are the texts of all kinds of compression.
func kinds() []string {
	return []string{
		"f16", "bf16", "int8(64)", "int8(64)+feedback", "onebit(64)+feedback", "topk(0.1)+feedback", "powersgd(2)+feedback",
	}
}

// codedPlan sums three gradients by a codec, two of them together, and commits.
func codedPlan(ranks int, codec string, fill func(rank int) run) *draft {
	d := newDraft(ranks, 2)
	all := d.Groups[0]
	offset := 0
	grad := func(name string, shape ...int) plan.Ref {
		v := d.value(name, plan.Grad, plan.NoState, shape...)
		d.Values[v.Value].DType, d.Values[v.Value].Arena, d.Values[v.Value].Offset = tensor.F32, 1, offset
		offset += (d.Values[v.Value].Bytes() + plan.Line - 1) / plan.Line * plan.Line
		return v
	}
	a, b, c := grad("a", 30, 10), grad("b", 7), grad("c", 12, 11)
	weight, loss := d.value("weight", plan.Scalar, plan.NoState), d.value("loss", plan.Scalar, plan.NoState)
	total, totalLoss := d.value("total", plan.Scalar, plan.NoState), d.value("totalloss", plan.Scalar, plan.NoState)
	d.add(all, d.compute("make", nil, []plan.Ref{a, b, c, weight, loss}, fill))
	for i, in := range [][]plan.Ref{{a, b}, {c}} {
		d.add(all, plan.Task{
			Kind: plan.Collective, Op: plan.AllReduce, Name: []string{"a..b", "c"}[i], Tag: uint32(i) + 1, In: in, Out: in, Codec: codec,
			Lane: plan.Lane{Kind: plan.Group},
		}, "make")
	}
	d.add(all, plan.Task{
		Kind: plan.Commit, Name: "commit", Tag: 3, In: []plan.Ref{weight, loss, a, b, c}, Out: []plan.Ref{total, totalLoss}, Lane: plan.Lane{Kind: plan.Group},
	}, "a..b", "c")
	return d
}

// outcome is what the ranks of a coded plan got.
type outcome struct {
	sums   [][]float32 // of steps that count, by rank
	states [][]compress.State
	execs  []*exec.Exec
}

// runCoded runs steps, of which that at bad, if there is one, is spoiled.
func runCoded(t *testing.T, ranks int, codec string, steps, bad int64, spoil func(rank int, out []*tensor.Tensor)) outcome {
	t.Helper()
	o := outcome{sums: make([][]float32, ranks)}
	synctest.Test(t, func(t *testing.T) {
		d := codedPlan(ranks, codec, func(rank int) run {
			return func(step int64, _, out []*tensor.Tensor) error {
				if bad >= 0 && step > bad {
					step-- // as if there had been none
				}
				r := rand.New(rand.NewPCG(uint64(rank), uint64(step)))
				for _, g := range out[:3] {
					for i := range g.F32() {
						g.F32()[i] = float32(r.NormFloat64())
					}
				}
				out[3].SetScalar(1)
				out[4].SetScalar(2)
				return nil
			}
		})
		fill := d.runs["make"]
		d.runs["make"] = func(rank int) run {
			f := fill(rank)
			return func(step int64, in, out []*tensor.Tensor) error {
				err := f(step, in, out)
				if step == bad {
					spoil(rank, out)
				}
				return err
			}
		}
		w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
		var cfgs []exec.Config
		for r := range ranks {
			cfg := d.config(r, w)
			cfg.OnOutput = func(step int64, get func(string) *tensor.Tensor) error {
				for _, name := range []string{"a", "b", "c"} {
					if step != bad {
						o.sums[r] = append(o.sums[r], get(name).F32()...)
					}
				}
				return nil
			}
			cfgs = append(cfgs, cfg)
		}
		var errs []error
		o.execs, errs = runAll(t, w, steps, cfgs...)
		must(t, errs)
	})
	for _, e := range o.execs {
		var states []compress.State
		for _, b := range e.Compressed() {
			states = append(states, b.State())
		}
		o.states = append(o.states, states)
	}
	return o
}

func sameStates(a, b []compress.State) bool {
	return slices.EqualFunc(a, b, func(x, y compress.State) bool {
		return slices.Equal(x.First, y.First) && slices.Equal(x.Second, y.Second) && slices.Equal(x.Warm, y.Warm)
	})
}

// All ranks get the same sums, by every codec, which are near those of the gradients; and a
// step that is skipped, whyever, leaves no trace: neither its gradients nor what it lost.
func TestCompressedSums(t *testing.T) {
	const steps = 5
	spoils := map[string]func(rank int, out []*tensor.Tensor){
		"loss":     func(rank int, out []*tensor.Tensor) { out[4].SetScalar(map[bool]float64{true: math.NaN()}[rank == 1]) },
		"gradient": func(rank int, out []*tensor.Tensor) { out[1].F32()[rank] = float32(math.Inf(1)) },
		"weight":   func(_ int, out []*tensor.Tensor) { out[3].SetScalar(0) },
	}
	for _, codec := range kinds() {
		for _, ranks := range []int{1, 2, 3} {
			want := runCoded(t, ranks, codec, steps, -1, nil)
			for r, sums := range want.sums {
				if !slices.Equal(sums, want.sums[0]) {
					t.Errorf("%s: rank %d has other sums than rank 0", codec, r)
				}
			}
			for why, spoil := range spoils {
				if why == "loss" && ranks == 1 {
					continue // there is no rank 1
				}
				got := runCoded(t, ranks, codec, steps+1, 2, spoil)
				for r := range ranks {
					if !slices.Equal(got.sums[r], want.sums[r]) || !sameStates(got.states[r], want.states[r]) {
						t.Errorf("%s over %d: after a step skipped for its %s, rank %d goes on otherwise", codec, ranks, why, r)
					}
					for _, b := range got.execs[r].Compressed() {
						if rep := b.Report(); rep.Runs != steps+1 || strings.HasSuffix(codec, "feedback") && rep.Skipped != 1 {
							t.Errorf("%s over %d, %s: report %+v", codec, ranks, why, rep)
						}
					}
				}
			}
		}
	}
}

// The vectors of a bucket lie together: what is between its values in the arena is not
// summed, and stays zero.
func TestCompressedGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks = 2
		d := codedPlan(ranks, "onebit(64)+feedback", func(int) run {
			return func(_ int64, _, out []*tensor.Tensor) error {
				for _, g := range out[:3] {
					for i := range g.F32() {
						g.F32()[i] = 1
					}
				}
				return nil
			}
		})
		w := mem.NewNetwork(ranks)
		var cfgs []exec.Config
		var keepers []*keeper
		for r := range ranks {
			cfg := d.config(r, w)
			k := &keeper{Endpoint: w.Endpoint(r)}
			cfg.Endpoint, keepers = k, append(keepers, k)
			cfgs = append(cfgs, cfg)
		}
		_, errs := runAll(t, w, 3, cfgs...)
		must(t, errs)
		for r, k := range keepers {
			for _, mem := range k.given {
				if v := d.Values[1]; !slices.Equal(mem[v.Offset+v.Bytes():v.Offset+plan.Line], make([]byte, plan.Line-v.Bytes())) {
					t.Errorf("rank %d: the gap is not zero", r)
				}
			}
		}
	})
}

func TestWrongCodecs(t *testing.T) {
	for want, change := range map[string]func(*plan.Task){
		"unknown codec":   func(c *plan.Task) { c.Codec = "f17" },
		"in place":        func(c *plan.Task) { c.Op = plan.Broadcast },
		"want a multiple": func(c *plan.Task) { c.Codec = "onebit(3)" },
	} {
		d := codedPlan(1, "f16", func(int) run { return nil })
		change(&d.Ranks[0][d.find(0, "c")])
		if _, err := exec.New(d.config(0, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
