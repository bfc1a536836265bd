package exec_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
	"github.com/gangline/gangline/transport/sock"
)

// keeper remembers the memory that it was asked for.
type keeper struct {
	transport.Endpoint
	given [][]byte
}

func (k *keeper) Alloc(n int) []byte {
	k.given = append(k.given, k.Endpoint.Alloc(n))
	return k.given[len(k.given)-1]
}

// Values of 1 and 3 elements in one arena are summed at once, step after step, and
// what is between them stays zero, also where a sum is infinite.
func TestFusedSum(t *testing.T) {
	const ranks, steps = 3, 5
	synctest.Test(t, func(t *testing.T) {
		d := newDraft(ranks, 2)
		all := d.Groups[0]
		var fused []plan.Ref
		for i, n := range []int{1, 3, 2} {
			v := d.value(fmt.Sprintf("g%d", i), plan.Grad, plan.NoState, n)
			d.Values[v.Value].Arena, d.Values[v.Value].Offset = 1, []int{0, 64, 88}[i]
			fused = append(fused, v)
		}
		d.add(all, d.compute("make", nil, fused, func(rank int) run { return fillRun(rank) }))
		d.add(all, plan.Task{Kind: plan.Collective, Op: plan.AllReduce, Name: "sum", Tag: 1, In: fused, Out: fused, Lane: plan.Lane{Kind: plan.Group}}, "make")
		w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
		var cfgs []exec.Config
		var keepers []*keeper
		for r := range ranks {
			cfg := d.config(r, w)
			k := &keeper{Endpoint: w.Endpoint(r)}
			cfg.Endpoint, keepers = k, append(keepers, k)
			cfg.OnOutput = func(step int64, get func(string) *tensor.Tensor) error {
				for i := range fused {
					for j, got := range get(fmt.Sprintf("g%d", i)).F64() {
						want := 0.
						for r := range ranks {
							want += part(r, step, i, j)
						}
						if got != want {
							t.Errorf("rank %d step %d: g%d[%d] is %v, want %v", r, step, i, j, got, want)
						}
					}
				}
				return nil
			}
			cfgs = append(cfgs, cfg)
		}
		_, errs := runAll(t, w, steps, cfgs...)
		must(t, errs)
		for r, k := range keepers {
			for c, mem := range k.given {
				for at, b := range mem[8:64] {
					if b != 0 {
						t.Fatalf("rank %d: byte %d of the gap in copy %d is %d", r, 8+at, c, b)
					}
				}
			}
			if len(k.given) != 2 || len(k.given[0]) != 104 {
				t.Errorf("rank %d: %d arenas, want 2 of 104 bytes", r, len(k.given))
			}
		}
	})
}

// part is what a rank adds to element j of value i.
func part(rank int, step int64, i, j int) float64 {
	if step == 3 && i == 1 && j == 0 {
		return 1e308 // whose sum is infinite
	}
	return float64(1000*rank) + float64(100*step) + float64(10*i+j)
}

func fillRun(rank int) run {
	return func(step int64, _, out []*tensor.Tensor) error {
		for i, o := range out {
			for j := range o.F64() {
				o.F64()[j] = part(rank, step, i, j)
			}
		}
		return nil
	}
}

func TestFusedSumRefused(t *testing.T) {
	for want, change := range map[string]func(d *draft, task *plan.Task){
		"is in no arena":      func(d *draft, _ *plan.Task) { d.Values[1].Arena = 0 },
		"b begins at 200":     func(d *draft, _ *plan.Task) { d.Values[1].Offset = 200 },
		"in place only":       func(_ *draft, task *plan.Task) { task.Out = task.Out[:1] },
		"i64 in arena 1":      func(d *draft, _ *plan.Task) { d.Values[1].DType = tensor.I64 },
		"c lies between them": func(d *draft, _ *plan.Task) { d.Values[2].Arena, d.Values[2].Offset = 1, 32 },
	} {
		d := newDraft(2, 1)
		a, b := d.value("a", plan.Grad, plan.NoState, 3), d.value("b", plan.Grad, plan.NoState, 2)
		d.value("c", plan.Act, plan.NoState, 2)
		d.Values[a.Value].Arena, d.Values[b.Value].Arena, d.Values[b.Value].Offset = 1, 1, 64
		task := plan.Task{
			Kind: plan.Collective, Op: plan.AllReduce, Name: "sum", Tag: 1, Lane: plan.Lane{Kind: plan.Group},
			In: []plan.Ref{a, b}, Out: []plan.Ref{a, b},
		}
		change(d, &task)
		d.add([]int{0, 1}, task)
		w := mem.NewNetwork(2)
		if _, err := exec.New(d.config(0, w)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		closeAll(w)
	}
}

// BenchmarkSmallGradients is a step of a network of 200 small parameters over two
// workers on unix sockets: each gradient by itself, and in buckets.
func BenchmarkSmallGradients(b *testing.B) {
	hidden := make([]int, 99)
	for i := range hidden {
		hidden[i] = 8
	}
	g, m, err := model.Build(model.Config{Kind: "mlp", Inputs: []model.Column{{Name: "x", Dim: 8}}, Hidden: hidden, Classes: 2, Float: tensor.F32})
	if err != nil {
		b.Fatal(err)
	}
	step, err := graph.Train(g, m, optim.Rule{Kind: optim.SGD, LR: .01})
	if err != nil {
		b.Fatal(err)
	}
	if n := len(step.Params); n != 200 {
		b.Fatalf("%d parameters", n)
	}
	for _, c := range []struct {
		name   string
		bucket int
	}{{"each", 1}, {"4KiB", 4 << 10}, {"default", 0}} {
		b.Run("bucket="+c.name, func(b *testing.B) {
			program, err := strategy.AllReduce(step, strategy.Cluster{Workers: 2, Bucket: c.bucket})
			if err != nil {
				b.Fatal(err)
			}
			benchPair(b, step, program.Plans[strategy.StepPlan])
		})
	}
}

// benchPair times steps of two workers in this process that talk over unix sockets.
func benchPair(b *testing.B, step *graph.Step, p *plan.Plan) {
	dir, runs := b.TempDir(), make(chan error, 2)
	var listeners []*sock.Listener
	addrs := make([]string, 2)
	for r := range 2 {
		l, err := sock.Listen(sock.Config{Network: "unix", Address: filepath.Join(dir, fmt.Sprint(r)), Rank: r, World: 2, Generation: 1, Token: "benchmark"})
		if err != nil {
			b.Fatal(err)
		}
		listeners, addrs[r] = append(listeners, l), l.Addr()
	}
	execs := make([]*exec.Exec, 2)
	each := func(do func(r int) error) {
		for r := range 2 {
			go func() { runs <- do(r) }()
		}
		for range 2 {
			if err := <-runs; err != nil {
				b.Fatal(err)
			}
		}
	}
	endpoints := make([]transport.Endpoint, 2)
	each(func(r int) (err error) {
		endpoints[r], err = listeners[r].Connect(b.Context(), addrs, nil)
		return err
	})
	for r := range 2 {
		e, err := exec.New(exec.Config{
			Rank: r, Plan: p, Step: step, Backend: native.New(native.Threads(1)), Endpoint: endpoints[r],
			Feeder: feedFunc(func(_ int64, out []*tensor.Tensor) error {
				for _, t := range out {
					shape := t.Shape().Clone()
					shape[0] = 4
					t.Resize(shape...)
				}
				return nil
			}),
		})
		if err != nil {
			b.Fatal(err)
		}
		execs[r] = e
	}
	at := int64(0)
	steps := func(n int64) {
		each(func(r int) error { return execs[r].Run(b.Context(), at, at+n) })
		at += n
	}
	steps(20)
	b.ResetTimer()
	steps(int64(b.N))
	b.StopTimer()
	for r := range 2 {
		if err := execs[r].Close(); err != nil {
			b.Error(err)
		}
		if err := endpoints[r].Close(); err != nil {
			b.Error(err)
		}
		if err := listeners[r].Close(); err != nil {
			b.Error(err)
		}
	}
}
