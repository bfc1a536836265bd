package data

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawOrder draws orders of all rows together and by windows.
func drawOrder(t *rapid.T) Order {
	o := Order{
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Rows:    rapid.IntRange(1, 300).Draw(t, "rows"),
		Batch:   rapid.IntRange(1, 320).Draw(t, "batch"),
		Shuffle: rapid.Bool().Draw(t, "shuffle"),
	}
	if rapid.Bool().Draw(t, "windowed") {
		o.Block, o.Window = rapid.IntRange(1, 40).Draw(t, "block"), rapid.IntRange(1, 9).Draw(t, "window")
	}
	return o
}

// TestOrderEveryRowOnce: over the steps of any epoch the ranks together take
// every row once, each step as many as the batch has, in parts that differ by
// at most one, and in the order that one rank alone would take.
func TestOrderEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t)
		ranks := rapid.IntRange(1, 9).Draw(t, "ranks")
		epoch := rapid.IntRange(0, 1000).Draw(t, "epoch")
		per := o.StepsPerEpoch()
		seen := make([]int, o.Rows)
		for s := range per {
			step := int64(epoch)*int64(per) + int64(s)
			e, lo, hi := o.At(step)
			if e != epoch || lo != s*o.Batch || hi != min(o.Rows, lo+o.Batch) {
				t.Fatalf("step %d of %+v is epoch %d [%d,%d)", step, o, e, lo, hi)
			}
			var joined, mine []int
			least, most := o.Rows, 0
			for rank := range ranks {
				mine = o.RankRows(step, rank, ranks, mine)
				joined = append(joined, mine...)
				least, most = min(least, len(mine)), max(most, len(mine))
			}
			if whole := o.RankRows(step, 0, 1, nil); !slices.Equal(joined, whole) {
				t.Fatalf("step %d: %d ranks take %v, one takes %v", step, ranks, joined, whole)
			}
			if most-least > 1 || len(joined) != hi-lo {
				t.Fatalf("step %d: parts of %d to %d rows, %d in all", step, least, most, len(joined))
			}
			for _, row := range joined {
				seen[row]++
			}
		}
		if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); i >= 0 {
			t.Fatalf("%+v: row %d was taken %d times in epoch %d", o, i, seen[i], epoch)
		}
	})
}

// TestOrderSequential: without shuffling the rows come as they are.
func TestOrderSequential(t *testing.T) {
	o := Order{Rows: 10, Batch: 4}
	var got []int
	for step := range int64(4) {
		got = append(got, o.RankRows(step, 0, 1, nil)...)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := o.RankRows(2, 0, 3, []int{5}); len(got) != 0 {
		t.Errorf("rank 0 of 3 in a batch of 2 takes %v", got)
	}
}

func testSource(t testing.TB, rows int, seed uint64) Source {
	return mustOpen(t, Spec{Format: "generated", Buckets: 500, Rows: rows, Seed: seed})
}

// TestCursor: a cursor names the step it was taken at, survives text and JSON,
// and is refused over other data with every difference named.
func TestCursor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := drawOrder(r)
		f := Fingerprint{Rows: o.Rows, Batch: o.Batch, Seed: o.Seed, Shuffle: o.Shuffle, Block: o.Block, Window: o.Window, Columns: "x:dense:3", Sample: "0f"}
		step := rapid.Int64Range(0, 1<<40).Draw(r, "step")
		c := o.CursorAt(step, f)
		text, err := ParseCursor(c.String())
		if err != nil || text != c {
			r.Fatalf("%v became %v, %v", c, text, err)
		}
		raw, err := json.Marshal(c)
		if err != nil {
			r.Fatal(err)
		}
		var read Cursor
		if err := json.Unmarshal(raw, &read); err != nil || read != c {
			r.Fatalf("%s became %v, %v", raw, read, err)
		}
		if got, err := o.StepAt(c, f); err != nil || got != step {
			r.Fatalf("step %d came back as %d, %v", step, got, err)
		}
	})
	o := Order{Seed: 7, Rows: 100, Batch: 8, Shuffle: true}
	was, err := o.Fingerprint(testSource(t, 100, 1))
	if err != nil {
		t.Fatal(err)
	}
	c := o.CursorAt(15, was)
	if c.Epoch != 1 || c.Offset != 16 {
		t.Errorf("step 15 is %v", c)
	}
	again, err := o.Fingerprint(testSource(t, 100, 1))
	if diff := cmp.Diff(was, again); diff != "" || err != nil {
		t.Errorf("the same data differ: %v\n%s", err, diff)
	}
	other := Order{Seed: 8, Rows: 101, Batch: 9}
	now, err := other.Fingerprint(testSource(t, 101, 2))
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.StepAt(c, now)
	for _, want := range []string{"epoch 1, offset 16", "rows was 100, is 101", "batch was 8, is 9", "seed was 7, is 8", "shuffle was true, is false", "sample of the rows was"} {
		if !errors.Is(err, ErrOtherData) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	sameShape, _ := o.Fingerprint(testSource(t, 100, 2))
	if _, err := o.StepAt(c, sameShape); !errors.Is(err, ErrOtherData) || strings.Contains(err.Error(), "batch") {
		t.Errorf("other rows of the same shape: %v", err)
	}
	c.Offset = 17
	if _, err := o.StepAt(c, was); err == nil || errors.Is(err, ErrOtherData) {
		t.Errorf("offset within a batch: %v", err)
	}
	for _, bad := range []string{"", "epoch=1", c.String() + " x", strings.Replace(c.String(), "=", "= ", 1)} {
		if _, err := ParseCursor(bad); err == nil {
			t.Errorf("%q was read as a cursor", bad)
		}
	}
	if _, err := o.Fingerprint(testSource(t, 99, 1)); err == nil {
		t.Error("an order fits a source of another size")
	}
}

// TestFingerprintSample: rows that differ in a single id, weight or label have
// another fingerprint.
func TestFingerprintSample(t *testing.T) {
	o := Order{Rows: 2, Batch: 1}
	seen := make(map[Fingerprint]string)
	for _, text := range []string{"1 1:1 3:1\n0 2:2", "1 2:1 3:1\n0 2:2", "1 1:1 3:1\n0 2:3", "0 1:1 3:1\n0 2:2", "1 1:1\n0 2:2 3:1"} {
		f, err := o.Fingerprint(mustOpen(t, Spec{Format: "libsvm", Path: tempFile(t, []byte(text)), Features: 3}))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[f]; ok {
			t.Errorf("%q and %q have one fingerprint", text, other)
		}
		seen[f] = text
	}
}

// TestKilledAndResumed kills a run at 100 random steps, goes on from the cursor that
// was saved last, each time with 1, 2 or 3 ranks, and demands that the steps which count
// take every row of every epoch once: with all rows shuffled together and by windows.
func TestKilledAndResumed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t)
		of := Fingerprint{Rows: o.Rows, Batch: o.Batch, Seed: o.Seed, Shuffle: o.Shuffle, Block: o.Block, Window: o.Window, Columns: "x:dense:3", Sample: "0f"}
		every := rapid.Int64Range(1, 7).Draw(t, "steps between checkpoints")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "kills"), 0))
		saved := o.CursorAt(0, of)
		taken := map[int64][]int{} // rows by step; what is done again replaces what was lost
		for kill := range 100 {
			ranks := 1 + r.IntN(3)
			c, err := ParseCursor(saved.String())
			if err != nil {
				t.Fatal(err)
			}
			step, err := o.StepAt(c, of)
			if err != nil {
				t.Fatalf("kill %d: %v", kill, err)
			}
			for range r.IntN(20) {
				var rows []int
				for rank := range ranks {
					rows = append(rows, o.RankRows(step, rank, ranks, nil)...)
				}
				if len(rows) != min(o.Batch, o.Rows-int(step%int64(o.StepsPerEpoch()))*o.Batch) {
					t.Fatalf("step %d has %d rows", step, len(rows))
				}
				taken[step] = rows
				if step++; step%every == 0 {
					saved = o.CursorAt(step, of)
				}
			}
		}
		end, err := o.StepAt(saved, of)
		if err != nil {
			t.Fatal(err)
		}
		per := int64(o.StepsPerEpoch())
		for epoch := int64(0); (epoch+1)*per <= end; epoch++ {
			count := make([]int, o.Rows)
			for step := epoch * per; step < (epoch+1)*per; step++ {
				for _, row := range taken[step] {
					count[row]++
				}
			}
			if i := slices.IndexFunc(count, func(n int) bool { return n != 1 }); i >= 0 {
				t.Fatalf("%+v: row %d was used %d times in epoch %d", o, i, count[i], epoch)
			}
		}
	})
}

// TestAhead: the steps of an epoch load every block of every window but the first, and
// of the first of the next epoch, once each.
func TestAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t)
		o.Shuffle, o.Block, o.Window = true, rapid.IntRange(1, 20).Draw(t, "rows of a block"), rapid.IntRange(1, 6).Draw(t, "blocks of a window")
		var got, want []int
		per := int64(o.StepsPerEpoch())
		for step := per; step < 2*per; step++ {
			got = append(got, o.Ahead(step, nil)...)
		}
		w, last := o.windows(1), 0
		for p := 0; p < o.Rows; {
			number, _, end := w.Window(p)
			if number > 0 {
				want = w.Blocks(number, 0, o.Window, want)
			}
			p, last = end, number
		}
		w = o.windows(2)
		want = w.Blocks(0, 0, o.Window, want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, %d windows: loaded %v, want %v", o, last+1, got, want)
		}
	})
}
