package collective_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// sparse is what one rank gives.
type sparse struct {
	Keys []int64
	Rows []float32
}

// sumOf is the obvious sum: a map, and ranks in order.
func sumOf(in []sparse, dim int) sparse {
	sums := map[int64][]float32{}
	for _, s := range in {
		for i, k := range s.Keys {
			row := s.Rows[i*dim : (i+1)*dim]
			if sums[k] == nil {
				sums[k] = slices.Clone(row)
				continue
			}
			for j, v := range row {
				sums[k][j] += v
			}
		}
	}
	out := sparse{Keys: []int64{}, Rows: []float32{}}
	for k := range sums {
		out.Keys = append(out.Keys, k)
	}
	slices.Sort(out.Keys)
	for _, k := range out.Keys {
		out.Rows = append(out.Rows, sums[k]...)
	}
	return out
}

func drawSparse(t *rapid.T, dim int) sparse {
	keys := rapid.SliceOfNDistinct(rapid.Int64Range(-3, 30), 0, 12, rapid.ID).Draw(t, "keys")
	slices.Sort(keys)
	s := sparse{Keys: keys}
	for range len(keys) * dim {
		s.Rows = append(s.Rows, float32(rapid.IntRange(-999, 999).Draw(t, "v"))/7)
	}
	return s
}

// The ring and the merge against the obvious sum, to the bit, for several runs
// with one runner, so that memory is reused at other sizes.
func TestRowsAgainstTheObvious(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "n")
		dim := rapid.IntRange(1, 3).Draw(rt, "dim")
		var rounds [][]sparse
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			var in []sparse
			for range n {
				in = append(in, drawSparse(rt, dim))
			}
			rounds = append(rounds, in)
		}
		w := world()
		defer closeAll(w)
		g := group(n)
		for i, err := range each(n, func(i int) error {
			r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F32, dim, 0)
			outKeys, outRows := tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, dim)
			for _, in := range rounds {
				if err != nil {
					return err
				}
				k := len(in[i].Keys)
				err = r.Run(t.Context(), tensor.From(in[i].Keys, k), tensor.From(in[i].Rows, k, dim), outKeys, outRows)
				got := sparse{outKeys.I64(), outRows.F32()}
				if d := cmp.Diff(sumOf(in, dim), got, cmpopts.EquateEmpty()); err == nil && d != "" {
					return errors.New(d)
				}
			}
			return err
		}) {
			if err != nil {
				rt.Fatalf("index %d: %v", i, err)
			}
		}
	})
}

// Bytes are those of the formula: rank i sends all blocks but the next rank's.
func TestRowsTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, dim = 4, 2
		w := world(mem.Options{Link: uneven})
		defer closeAll(w)
		g := group(n)
		block := func(i int) int64 { return int64(3*((i+n)%n)+1) * (8 + 8*dim) }
		var total int64
		for i := range n {
			total += block(i)
		}
		must(t, each(n, func(i int) error {
			r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F64, dim, 0)
			if err != nil {
				return err
			}
			keys := tensor.New(tensor.I64, 3*i+1)
			for k := range keys.I64() {
				keys.I64()[k] = int64(k)
			}
			err = r.Run(t.Context(), keys, tensor.New(tensor.F64, 3*i+1, dim), tensor.New(tensor.I64, 0), tensor.New(tensor.F64, 0, dim))
			st := w.Endpoint(g[i]).Stats()
			if st.BytesSent != total-block(i+1) || st.BytesReceived != total-block(i) || r.Bytes() != st.BytesSent+st.BytesReceived {
				t.Errorf("index %d moved %d/%d (%d)", i, st.BytesSent, st.BytesReceived, r.Bytes())
			}
			return err
		}))
	})
}

// keysUpTo gives the first k keys, and rows of ones.
func keysUpTo(k, dim int) (keys, rows *tensor.Tensor) {
	keys, rows = tensor.New(tensor.I64, k), tensor.New(tensor.F64, k, dim)
	for i := range k {
		keys.I64()[i] = int64(i)
	}
	for i := range rows.F64() {
		rows.F64()[i] = float64(i + 1)
	}
	return keys, rows
}

// Where the ranks together have most of a table it is summed as a whole, with the
// bytes of an all-reduce; else the rows are gathered. All ranks choose alike, run
// after run with one runner, and the sums are the same either way.
func TestRowsChooseTheCheaperWay(t *testing.T) {
	const n, dim, table = 4, 3, 10
	const row, whole = 8 + 8*dim, table * (dim + 1) * 8
	for _, tt := range []struct {
		counts [n]int
		dense  bool
	}{
		{[n]int{1, 2, 3, 4}, false},
		{[n]int{10, 10, 10, 10}, true},
		{[n]int{0, 0, 10, 10}, false}, // 20 rows of 32 bytes, twice 320: as dear either way
		{[n]int{1, 0, 10, 10}, true},
		{[n]int{0, 0, 0, 0}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := world(mem.Options{Link: uneven})
			defer closeAll(w)
			g := group(n)
			must(t, each(n, func(i int) error {
				r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F64, dim, table)
				if err != nil {
					return err
				}
				for round := range 2 {
					keys, rows := keysUpTo(tt.counts[i], dim)
					outKeys, outRows := tensor.New(tensor.I64, 0), tensor.New(tensor.F64, 0, dim)
					before := w.Endpoint(g[i]).Stats().BytesSent
					if err := r.Run(t.Context(), keys, rows, outKeys, outRows); err != nil {
						return err
					}
					for j, v := range outRows.F64() {
						have := 0 // ranks that have the row
						for _, k := range tt.counts {
							if j/dim < k {
								have++
							}
						}
						if want := float64(have * (j + 1)); v != want {
							t.Errorf("%v: index %d: element %d is %v, want %v", tt.counts, i, j, v, want)
						}
					}
					if k := slices.Max(tt.counts[:]); len(outKeys.I64()) != k {
						t.Errorf("%v: %d keys, want %d", tt.counts, len(outKeys.I64()), k)
					}
					want := int64(8 * (n - 1)) // the counts
					if tt.dense {
						want += 2*(n-1)*whole/n + 128 // an opening
					} else {
						for d := range n - 1 {
							want += int64(tt.counts[(i-d+n)%n] * row)
						}
					}
					if sent := w.Endpoint(g[i]).Stats().BytesSent - before; sent != want {
						t.Errorf("%v: index %d round %d sent %d bytes, want %d", tt.counts, i, round, sent, want)
					}
				}
				return nil
			}))
		})
	}
}

// Two ranks never gain by a dense sum, so they do not even ask.
func TestRowsOfTwoAlwaysGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		g := group(2)
		must(t, each(2, func(i int) error {
			r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F64, 1, 4)
			if err != nil {
				return err
			}
			keys, rows := keysUpTo(4, 1)
			err = r.Run(t.Context(), keys, rows, tensor.New(tensor.I64, 0), tensor.New(tensor.F64, 0, 1))
			if sent := w.Endpoint(g[i]).Stats().BytesSent; sent != 4*16 {
				t.Errorf("index %d sent %d bytes", i, sent)
			}
			return err
		}))
	})
}

// Keys beyond the table, and more keys than it has rows, are errors that name the rank.
func TestRowsRefuseKeysBeyondTheTable(t *testing.T) {
	for _, k := range []int{3, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := world()
			defer closeAll(w)
			g := group(3)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			errs := each(3, func(i int) error {
				r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F64, 9, 3)
				if err != nil {
					return err
				}
				keys, rows := keysUpTo(3, 9)
				if i == 1 {
					keys, rows = keysUpTo(k, 9)
					keys.I64()[k-1] = 7
				}
				return r.Run(ctx, keys, rows, tensor.New(tensor.I64, 0), tensor.New(tensor.F64, 0, 9))
			})
			if errs[1] == nil || !strings.Contains(errs[1].Error(), fmt.Sprintf("rank %d", g[1])) || errs[0] == nil || errs[2] == nil {
				t.Errorf("%d keys: %v", k, errs)
			}
		})
	}
}

// Keys out of order are an error on every rank, which names who gave them.
func TestRowsRefuseBadKeys(t *testing.T) {
	for _, keys := range [][]int64{{3, 2}, {4, 4}} {
		synctest.Test(t, func(t *testing.T) {
			w := world()
			defer closeAll(w)
			g := group(2)
			errs := each(2, func(i int) error {
				r, err := collective.NewRows(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, tensor.F32, 1, 0)
				if err != nil {
					return err
				}
				mine := []int64{1, 2}
				if i == 1 {
					mine = keys
				}
				return r.Run(t.Context(), tensor.From(mine, 2), tensor.New(tensor.F32, 2, 1), tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, 1))
			})
			for i, err := range errs {
				if !errors.Is(err, transport.ErrCorrupt) || !strings.Contains(err.Error(), "rank 9 ") {
					t.Errorf("index %d: %v", i, err)
				}
			}
		})
	}
}

func TestRowsRefuseMisuse(t *testing.T) {
	p := collective.Party{Group: []int{0}}
	if _, err := collective.NewRows(p, tensor.I64, 2, 0); err == nil {
		t.Error("rows of integers")
	}
	r, err := collective.NewRows(p, tensor.F32, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys, rows := tensor.New(tensor.I64, 2), tensor.New(tensor.F32, 2, 2)
	if err := r.Run(t.Context(), keys, rows, keys, tensor.New(tensor.F32, 0)); err == nil {
		t.Error("in place")
	}
	if err := r.Run(t.Context(), keys, tensor.New(tensor.F32, 2, 3), tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0)); err == nil {
		t.Error("rows of another width")
	}
}

// All ranks get all bytes in the order of the group, run after run.
func TestExchange(t *testing.T) {
	for n := 1; n <= 7; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := world(mem.Options{Link: uneven})
			defer closeAll(w)
			g := group(n)
			must(t, each(n, func(i int) error {
				x, err := collective.NewExchange(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, 2)
				if err != nil {
					return err
				}
				for round := range 3 {
					all, err := x.Run(t.Context(), []byte{byte(i), byte(round)})
					if err != nil {
						return err
					}
					for k := range n {
						if all[2*k] != byte(k) || all[2*k+1] != byte(round) {
							t.Errorf("n=%d index %d round %d: %v", n, i, round, all)
						}
					}
				}
				if st := w.Endpoint(g[i]).Stats(); st.BytesSent != int64(3*2*(n-1)) || x.Bytes() != int64(4*(n-1)) {
					t.Errorf("n=%d sent %d bytes", n, st.BytesSent)
				}
				return nil
			}))
		})
	}
}

// Over streams it takes turns with runners on the same ones, and moves whole words.
func TestExchangeOverStreams(t *testing.T) {
	for n := 1; n <= 7; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := world(mem.Options{Link: uneven})
			defer closeAll(w)
			g := group(n)
			must(t, each(n, func(i int) error {
				s := transport.NewMessageStreams(w.Endpoint(g[i]), g[i], g, 5, 0)
				p := collective.Party{Streams: s, Group: g, Index: i}
				x, err := collective.NewExchange(p, 9)
				if err != nil {
					return err
				}
				sum, err := collective.NewRunner(p, collective.RingAllReduce(n), tensor.I64, 5)
				if err != nil {
					return err
				}
				for round := range 3 {
					mine := bytes.Repeat([]byte{byte(10*round + i)}, 9)
					all, err := x.Run(t.Context(), mine)
					if err != nil {
						return err
					}
					for k := range n {
						if want := bytes.Repeat([]byte{byte(10*round + k)}, 9); !bytes.Equal(all[9*k:9*k+9], want) {
							t.Errorf("n=%d index %d round %d: %v", n, i, round, all)
						}
					}
					ones := tensor.From([]int64{1, 1, 1, 1, 1}, 5)
					if err := sum.Run(t.Context(), ones); err != nil {
						return err
					}
					if ones.I64()[4] != int64(n) {
						t.Errorf("n=%d: sum %v", n, ones.I64())
					}
				}
				if x.Bytes() != int64(2*16*(n-1)) {
					t.Errorf("n=%d moved %d bytes", n, x.Bytes())
				}
				return s.Flush(t.Context())
			}))
		})
	}
}

func TestExchangeNamesTheMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		g := group(3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := each(2, func(i int) error {
			x, err := collective.NewExchange(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, 1)
			if err != nil {
				return err
			}
			_, err = x.Run(ctx, []byte{1})
			if _, again := x.Run(ctx, []byte{1}); !errors.Is(again, collective.ErrUsedUp) {
				t.Errorf("second run: %v", again)
			}
			return err
		})
		for i, err := range errs {
			var pe *transport.PeerError
			if !errors.As(err, &pe) || pe.Peer != g[2] || pe.Rank != g[i] {
				t.Errorf("index %d: %v", i, err)
			}
		}
	})
}
