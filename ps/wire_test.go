package ps

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// formula reads a row of the page's table of costs, as coefficients of the
// variables it names: "48 + 24·P" is {"": 48, "P": 24}.
func formula(t *testing.T, row string, column int) map[string]int {
	page, err := os.ReadFile("../docs/format/ps.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := regexp.MustCompile(`(?m)^\| ` + row + ` \| ([^|]*) \| ([^|]*) \|$`).FindSubmatch(page)
	if cells == nil {
		t.Fatalf("docs/format/ps.md has no row %q", row)
	}
	sum := map[string]int{}
	for _, term := range regexp.MustCompile(`(\d*)·?([A-Z]?)(?: \+ |$)`).FindAllSubmatch(cells[column], -1) {
		if len(term[1]) == 0 && len(term[2]) == 0 {
			continue
		}
		n := 1
		if len(term[1]) > 0 {
			if n, err = strconv.Atoi(string(term[1])); err != nil {
				t.Fatal(err)
			}
		}
		sum[string(term[2])] += n
	}
	return sum
}

func evaluate(sum map[string]int, vars map[string]int) int64 {
	total := sum[""]
	for name, v := range vars {
		total += sum[name] * v
	}
	return int64(total)
}

// TestWireFormula: a step costs, to the byte, what docs/format/ps.md says: for
// pull, push and their sum, for stores that hold ranges of everything or no
// element of a small state, with rows on the store and without.
func TestWireFormula(t *testing.T) {
	for _, stores := range []int{1, 2, 5} {
		m := newModel(tensor.F32, rules[3])
		c := newCluster(t, m, 1, stores, Config{}, mem.Options{})
		c.start(t.Context())
		ep := c.net.Endpoint(0)
		for step, keys := range [][]int64{{0, 1, 2, 3, 5, 8, 13, 21, 34}, {}, {39}} {
			g := m.gradient(step, keys)
			for s, l := range m.layouts(stores) {
				vars := map[string]int{"P": len(l.States)}
				for i := range l.States {
					vars["E"] += (l.States[i].Hi - l.States[i].Lo) * 4
					if l.States[i].Table {
						vars["E"] -= (l.States[i].Hi - l.States[i].Lo) * 4
					}
				}
				for _, k := range keys {
					if StoreOf(k, stores) == s {
						vars["K"]++
						vars["R"] += 2 * 4
					}
				}
				ctx := t.Context()
				zero := ep.Stats()
				if err := c.clients[0].Pull(ctx, s, int64(step), c.parts(s, g)); err != nil {
					t.Fatal(err)
				}
				pulled := ep.Stats()
				if err := c.clients[0].Push(ctx, s, int64(step), c.parts(s, g)); err != nil {
					t.Fatal(err)
				}
				pushed := ep.Stats()
				type cost struct{ Sent, Received int64 }
				for _, x := range []struct {
					row string
					got cost
				}{
					{"pull", cost{pulled.BytesSent - zero.BytesSent, pulled.BytesReceived - zero.BytesReceived}},
					{"push", cost{pushed.BytesSent - pulled.BytesSent, pushed.BytesReceived - pulled.BytesReceived}},
					{"step", cost{pushed.BytesSent - zero.BytesSent, pushed.BytesReceived - zero.BytesReceived}},
				} {
					want := cost{evaluate(formula(t, x.row, 1), vars), evaluate(formula(t, x.row, 2), vars)}
					if diff := cmp.Diff(want, x.got); diff != "" {
						t.Errorf("%d stores, store %d, %d keys, %s (-formula +measured):\n%s", stores, s, len(keys), x.row, diff)
					}
				}
			}
			c.clients[0].Committed(int64(step), 1)
		}
		if err := errors.Join(c.clients[0].Close(t.Context()), c.stop()); err != nil {
			t.Fatal(err)
		}
	}
}

// stepper repeats steps of two workers and two stores that are warm.
type stepper struct {
	c     *cluster
	grads []gradient
	parts [][][]Part // worker, store
	step  int64
}

func newStepper(t testing.TB, stores int) *stepper {
	c := newCluster(t, newModel(tensor.F32, rules[3]), 2, stores, Config{}, mem.Options{})
	c.start(context.Background())
	s := &stepper{c: c}
	for w := range c.workers {
		g := c.m.gradient(w, []int64{1, 2, 3, 5, 8, 13, 21, 34})
		var parts [][]Part
		for store := range stores {
			parts = append(parts, c.parts(store, g))
		}
		s.grads, s.parts = append(s.grads, g), append(s.parts, parts)
	}
	return s
}

func (s *stepper) run(t testing.TB) {
	ctx := context.Background()
	for w, client := range s.c.clients {
		for store, parts := range s.parts[w] {
			if err := client.Pull(ctx, store, s.step, parts); err != nil {
				t.Fatal(err)
			}
		}
	}
	for w, client := range s.c.clients {
		for store, parts := range s.parts[w] {
			if err := client.Push(ctx, store, s.step, parts); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, client := range s.c.clients {
		client.Committed(s.step, 2)
	}
	s.step++
}

func (s *stepper) close(t testing.TB) {
	err := s.c.each(func(w int) error { return s.c.clients[w].Close(context.Background()) })
	if err := errors.Join(err, s.c.stop()); err != nil {
		t.Fatal(err)
	}
}

// TestWarmStepsAllocateLittle: in a warm step nothing is allocated on either
// side but, once for each store, the sentence that says what was applied.
func TestWarmStepsAllocateLittle(t *testing.T) {
	s := newStepper(t, 2)
	for range 20 {
		s.run(t)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const steps = 200
	for range steps {
		s.run(t)
	}
	runtime.ReadMemStats(&after)
	perStep := float64(after.Mallocs-before.Mallocs) / steps
	t.Logf("%.1f allocations in a step of 2 workers and 2 stores", perStep)
	if perStep > 2*8 {
		t.Errorf("%.1f allocations in a step of 2 workers and 2 stores", perStep)
	}
	s.close(t)
}

// BenchmarkStep is a step of two workers and two stores over transport/mem.
func BenchmarkStep(b *testing.B) {
	s := newStepper(b, 2)
	b.ReportAllocs()
	for b.Loop() {
		s.run(b)
	}
	s.close(b)
}

// BenchmarkApply is the table's part of a step: four workers, 4096 keys each.
func BenchmarkApply(b *testing.B) {
	st := State{Name: "emb", DType: tensor.F32, Shape: tensor.Shape{1 << 20, 16}, Table: true, Rule: rules[2], Slots: rules[2].Slots()}
	table := newTable[float32](&st, &Layout{Stores: 1, States: []State{st}})
	from := make([]contribution, 4)
	for w := range from {
		keys := make([]int64, 4096)
		for i := range keys {
			keys[i] = int64(i*(w+3)) % (1 << 20)
		}
		from[w] = contribution{keys: tensor.From(keys, len(keys)), data: tensor.New(tensor.F32, len(keys), 16)}
	}
	b.SetBytes(4 * 4096 * 16 * 4)
	b.ReportAllocs()
	for b.Loop() {
		table.apply(0, 1, from)
	}
}

// TestTagSpace: a store's tags are its own and above those of plans.
func TestTagSpace(t *testing.T) {
	seen := map[uint32]bool{}
	for _, store := range []int{0, 1, 2, storesMax - 1} {
		for kind := range 4 {
			tag := tag(store, kind)
			if tag < 1<<24 || tag >= 1<<25 {
				t.Errorf("tag %d of store %d", tag, store)
			}
			if seen[tag] {
				t.Errorf("tag %d twice", tag)
			}
			seen[tag] = true
		}
	}
}

// TestWireSplit: pulling and pushing part by part costs what the page says of
// a step split over n pulls and m pushes.
func TestWireSplit(t *testing.T) {
	c := newCluster(t, newModel(tensor.F64, rules[0]), 1, 1, Config{}, mem.Options{})
	c.start(t.Context())
	ep, ctx := c.net.Endpoint(0), t.Context()
	parts := c.parts(0, c.m.gradient(1, []int64{4, 7}))
	for _, p := range parts {
		if err := c.clients[0].Pull(ctx, 0, 0, []Part{p}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range parts {
		if err := c.clients[0].Push(ctx, 0, 0, []Part{p}); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]int{"P": 3, "E": 18 * 8, "K": 2, "R": 2 * 2 * 8}
	n, m := int64(len(parts)), int64(len(parts))
	wantSent := evaluate(formula(t, "step", 1), vars) + 48*(n+m-2)
	wantReceived := evaluate(formula(t, "step", 2), vars) + 32*(n-1) + 64*(m-1)
	if s := ep.Stats(); s.BytesSent != wantSent || s.BytesReceived != wantReceived {
		t.Errorf("sent %d, want %d; received %d, want %d", s.BytesSent, wantSent, s.BytesReceived, wantReceived)
	}
	if err := errors.Join(c.clients[0].Close(ctx), c.stop()); err != nil {
		t.Fatal(err)
	}
}
