package bench

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/graph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The models have the parameters of what they are compared with.
func TestShapes(t *testing.T) {
	const block = 4*256 + 4*(256*256+256) + 256*1024 + 1024 + 1024*256 + 256
	for name, c := range map[string]struct {
		spec         spec
		params, rows int
	}{
		"mlp":  {mlp(), 784*512 + 512 + 512*512 + 512 + 512*10 + 10, 0},
		"gpt":  {gpt(), 256*256 + 128*256 + 4*block + 2*256 + 256*256 + 256, 0},
		"ctr":  {ctr(38462, 2048)(), 26*38462*16 + 429*256 + 256 + 256*128 + 128 + 128 + 1, 26 * 2048},
		"dlrm": {dlrm(1_000_000, 4096, 8)(), 26_000_000*16 + 13*64 + 64 + 64*16 + 16 + 367*256 + 256 + 256*64 + 64 + 64 + 1, 26 * 4096},
	} {
		st, err := c.spec.step()
		if err != nil {
			t.Fatal(err)
		}
		params, tables := 0, 0
		for i := range st.Params {
			params += st.Params[i].Var.Shape.Elems()
			if st.Params[i].IsTable() {
				tables++
			}
		}
		if params != c.params || tables*c.spec.batch != c.rows {
			t.Errorf("%s has %d parameters and %d tables, want %d parameters and %d rows a step", name, params, tables, c.params, c.rows)
		}
	}
}

// Every case runs, in small, and training moves all parameters.
func TestRun(t *testing.T) {
	small := gpt()
	small.config.Layers, small.batch = 1, 1
	for name, of := range map[string]func() spec{
		"mlp": func() spec { s := mlp(); s.batch = 3; return s }, "gpt": func() spec { return small },
		"ctr": ctr(50, 8), "dlrm": dlrm(50, 8, 2),
	} {
		var made *trainer
		before := map[string][]float32{}
		r, err := measure(t.Context(), func(threads int) (runner, error) {
			run, err := step(of)(threads)
			if err != nil {
				return nil, err
			}
			made = run.(*trainer)
			spec := of()
			st, err := spec.step()
			for i := range st.Params {
				name := st.Params[i].Var.Name
				before[name] = slices.Clone(made.exec.Value(name).F32())
			}
			return run, err
		}, Config{Threads: 2, Iterations: 7})
		if err != nil {
			t.Fatal(err)
		}
		if r.Iterations != 7 || r.Threads != 2 || !(r.Min > 0 && r.Min <= r.Median) || len(before) < 6 {
			t.Errorf("%s: %+v", name, r)
		}
		for param, was := range before {
			if slices.Equal(made.exec.Value(param).F32(), was) && !strings.HasSuffix(param, "k.b") { // a softmax does not see these
				t.Errorf("%s: training left %s alone", name, param)
			}
		}
	}
}

// The product is one.
func TestProduct(t *testing.T) {
	run, err := sgemm(3)(1)
	if err != nil {
		t.Fatal(err)
	}
	p := run.(*product)
	if _, err := p.run(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	a, b := p.in[0].F32(), p.in[1].F32()
	if got, want := p.out[0].F32()[5], a[3]*b[2]+a[4]*b[5]+a[5]*b[8]; got-want > 1e-5 || want-got > 1e-5 || want == 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Tables repeat a pattern that is not zero.
func TestLargeTable(t *testing.T) {
	spec := ctr(patternLen/16+100, 1)()
	st, err := spec.step()
	if err != nil {
		t.Fatal(err)
	}
	v := state(st)["embed.field3"].F32()
	want := make([]float32, patternLen)
	graph.Fill(graph.Init{Kind: graph.Normal, Scale: 1, Seed: 1}, "embed.field3", 0, want)
	for i, x := range v {
		if x != want[i%patternLen] {
			t.Fatalf("element %d is %v, want %v", i, x, want[i%patternLen])
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Run(t.Context(), "mlpp", Config{}); err == nil || !strings.Contains(err.Error(), `did you mean "mlp"`) {
		t.Errorf("got %v", err)
	}
}
