package compressed_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// specs are all kinds, with and without feedback where both are there.
func specs(t *testing.T) []compress.Spec {
	t.Helper()
	var all []compress.Spec
	for _, text := range []string{
		"f16", "bf16", "int8(64)", "bf16+feedback", "int8(64)+feedback", "onebit(64)+feedback", "topk(0.1)+feedback", "powersgd(2)+feedback",
	} {
		s, err := compress.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func shapes() []tensor.Shape { return []tensor.Shape{{20, 19}, {3}, {}, {2, 5, 2}} }

// A bucket sums tensors as the one vector that they are together; one tensor alone too.
func TestBucket(t *testing.T) {
	const n = 3
	for _, spec := range specs(t) {
		for _, count := range []int{len(shapes()), 1} {
			w, whole := newWorld(n, mem.Options{}), newWorld(n, mem.Options{})
			var parts []compressed.Part
			for _, s := range shapes()[:count] {
				parts = append(parts, compressed.Part{Name: s.String(), Shape: s})
			}
			errs := w.each(func(i int) error {
				b, err := compressed.NewBucket(w.party(i), "b", spec, parts)
				if err != nil {
					return err
				}
				var other sum
				if spec.Kind == compress.KindPowerSGD {
					m := []compress.Matrix{{Rows: 20, Cols: 19}, {Lo: 384, Rows: 2, Cols: 10}}[:min(count, 2)]
					other, err = compressed.NewPowerSGD(whole.party(i), b.Elems(), spec.Rank, m)
				} else {
					c, _ := spec.Codec()
					other, err = compressed.NewAllReduce(whole.party(i), c, b.Elems(), spec.Feedback)
				}
				if err != nil {
					return err
				}
				for round := range 3 {
					v := vector(i, round, b.Elems())
					var tensors []*tensor.Tensor
					for k, p := range parts {
						lo, hi := b.Range(k)
						tensors = append(tensors, tensor.From(slices.Clone(v[lo:hi]), p.Shape...))
					}
					if err := b.Run(t.Context(), tensors); err != nil {
						return err
					}
					if err := other.Run(t.Context(), tensor.From(v, len(v))); err != nil {
						return err
					}
					for k := range parts {
						if lo, hi := b.Range(k); !slices.Equal(tensors[k].F32(), v[lo:hi]) {
							t.Errorf("%v: index %d round %d: part %d is not what the vector is", spec, i, round, k)
						}
					}
				}
				if b.Report() != other.Report() || b.Bytes() != other.Bytes() {
					t.Errorf("%v: reports %+v, the vector %+v", spec, b.Report(), other.Report())
				}
				return nil
			})
			must(t, errs)
			w.close()
			whole.close()
		}
	}
}

// Without feedback a report says what was lost by looking; what it looks at changes nothing.
func TestLossWithoutFeedback(t *testing.T) {
	const n = 2
	w := newWorld(n, mem.Options{})
	defer w.close()
	s := make([]sum, n)
	for i := range s {
		var err error
		if s[i], err = compressed.NewAllReduce(w.party(i), compress.BF16{}, elems, false); err != nil {
			t.Fatal(err)
		}
	}
	step(t, w, s, 1, nil)
	r := s[0].Report()
	half := vector(0, 1, elems)[elems/2:] // what rank 0 encodes: the chunk of the other
	rest := slices.Clone(half)
	compress.BF16{}.EncodeRest(make([]byte, 2*len(rest)), rest)
	if want := compress.Norm(rest); math.Abs(r.First-want) > 1e-9*want || math.Abs(r.Input-compress.Norm(half)) > 1e-9*r.Input || r.Second == 0 {
		t.Errorf("report %+v, want a loss of %v", r, want)
	}
	looked := step(t, w, s, 1, nil)
	if s[0].Report().First != r.First {
		t.Error("looks at the second run")
	}
	if again := step(t, w, s, 1, nil); !slices.EqualFunc(looked, again, slices.Equal) {
		t.Error("a run that is looked at gives something else")
	}
	for range 61 {
		step(t, w, s, 2, nil)
	}
	nan := step(t, w, s, 3, func(_ int, v []float32) { v[elems-1] = float32(math.NaN()) })
	if got := s[0].Report(); compress.Finite(nan[0]) || got.Input != got.Input || got.Runs != 65 {
		t.Errorf("after NaN: report %+v", got)
	}
}

func TestWrongBuckets(t *testing.T) {
	w := newWorld(1, mem.Options{})
	defer w.close()
	part := compressed.Part{Name: "w", Shape: tensor.Shape{2, 2}}
	for want, f := range map[string]func() error{
		"not known before": func() error {
			_, err := compressed.NewBucket(w.party(0), "b", compress.Spec{Kind: "f16"}, []compressed.Part{{Name: "x", Shape: tensor.Shape{tensor.Dynamic}}})
			return err
		},
		"unknown codec": func() error {
			_, err := compressed.NewBucket(w.party(0), "b", compress.Spec{Kind: "f17"}, []compressed.Part{part})
			return err
		},
		"bucket b of 2 tensors given 1": func() error {
			b, err := compressed.NewBucket(w.party(0), "b", compress.Spec{Kind: "f16"}, []compressed.Part{part, part})
			if err != nil {
				return err
			}
			return b.Run(t.Context(), []*tensor.Tensor{tensor.New(tensor.F32, 4)})
		},
		`"w" of 4 f32 elements given 5 f32`: func() error {
			b, err := compressed.NewBucket(w.party(0), "b", compress.Spec{Kind: "f16"}, []compressed.Part{part, part})
			if err != nil {
				return err
			}
			return b.Run(t.Context(), []*tensor.Tensor{tensor.New(tensor.F32, 4), tensor.New(tensor.F32, 5)})
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
