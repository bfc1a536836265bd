package check

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/plan"
)

// good is a plan of two workers that all-reduce; tests change lines of it.
const good = `plan step window=2

values
  0  w       f32  [4 2]  param
  1  w/m     f32  [4 2]  slot    of=w
  2  x       f32  [? 4]  act
  3  loss    f32  []     scalar
  4  weight  f32  []     scalar
  5  w.grad  f32  [4 2]  grad    of=w
  6  total   f32  []     scalar
  7  "sum l"  f32  []     scalar

segments
  0  forward  flops=16
  1  update   updates=w

groups
  0  0 1

holdings
  0  w    0..8  owner  rank=0
  1  w/m  0..8  owner  rank=0
  2  w    0..8  copy   rank=1
  3  w/m  0..8  copy   rank=1

ranks 0-1
  0  reader   feed       batch                             -> x
  1  device   compute    forward  seg=0          after=0   w x -> loss weight w.grad
  2  group.0  allreduce  w        group=0 tag=1  after=1   w.grad -> w.grad
  3  group.0  commit     step     group=0 tag=2  after=1   weight loss w.grad -> total "sum l"
  4  device   compute    update   seg=1          after=3   w w.grad total w/m -> w w/m
`

// pipeline has two stages on two ranks: only the first feeds, only the second
// has a loss, and the gradient comes back over the link.
const pipeline = `plan step window=2

values
  0  w0         f32  [4 2]  param
  1  w1         f32  [2 1]  param
  2  x          f32  [? 4]  act
  3  y          f32  [?]    act
  4  h          f32  [? 2]  act
  5  dh         f32  [? 2]  act
  6  w0.grad    f32  [4 2]  grad    of=w0
  7  w1.grad    f32  [2 1]  grad    of=w1
  8  loss       f32  []     scalar
  9  weight     f32  []     scalar
  10 total      f32  []     scalar
  11 totalloss  f32  []     scalar

segments
  0  front
  1  back
  2  zero
  3  head
  4  update0  updates=w0
  5  update1  updates=w1

groups
  0  0 1

holdings
  0  w0  0..8  owner  rank=0
  1  w1  0..2  owner  rank=1

rank 0
  0  reader   feed     batch                             -> x y
  1  device   compute  front    seg=0          after=0   x w0 -> h
  2  link.2   send     h        peer=1 tag=1   after=1   h ->
  3  link.2   send     y        peer=1 tag=2   after=0   y ->
  4  link.3   recv     dh       peer=1 tag=3             -> dh
  5  device   compute  back     seg=1          after=4   x dh -> w0.grad
  6  device   compute  zero     seg=2                    -> weight loss
  7  group.0  commit   step     group=0 tag=4  after=6   weight loss w0.grad -> total totalloss
  8  device   compute  update0  seg=4          after=7   w0 w0.grad total -> w0

rank 1
  0  link.1   recv     h        peer=0 tag=1             -> h
  1  link.1   recv     y        peer=0 tag=2             -> y
  2  device   compute  head     seg=3          after=1   h y w1 -> loss weight w1.grad dh
  3  link.0   send     dh       peer=0 tag=3   after=2   dh ->
  4  group.0  commit   step     group=0 tag=4  after=2   weight loss w1.grad -> total totalloss
  5  device   compute  update1  seg=5          after=4   w1 w1.grad total -> w1
`

// micro is one rank that adds two micro-batches.
const micro = `plan step window=2

values
  0  w       f32  [4]    param
  1  x       f32  [? 4]  act
  2  w.grad  f32  [4]    grad    of=w
  3  w.sum   f32  [4]    grad    of=w
  4  loss    f32  []     scalar
  5  weight  f32  []     scalar
  6  total   f32  []     scalar
  7  lost    f32  []     scalar

segments
  0  forward
  1  update  updates=w

groups
  0  0

holdings
  0  w  0..4  owner  rank=0

rank 0
  0  reader   feed     batch                     -> x x@1
  1  device   compute  forward  seg=0  after=0   x w -> loss weight w.grad
  2  device   compute  forward  seg=0  after=0   x@1 w -> loss@1 weight@1 w.grad@1
  3  device   add      w        w.grad w.grad@1 -> w.sum
  4  device   add      weight   weight weight@1 -> weight@0:1
  5  device   add      loss     loss loss@1 -> loss@0:1
  6  group.0  commit   step     group=0 tag=1  after=5   weight@0:1 loss@0:1 w.sum -> total lost
  7  device   compute  update   seg=1  after=6   w w.sum total -> w
`

// sparse is micro with a table: keys and rows are added in pairs.
const sparse = `plan step window=2

values
  0  w         f32  [9 4]  param
  1  x         f32  [? 4]  act
  2  keys      i64  [?]    key     of=w
  3  grad      f32  [? 4]  grad    of=w
  4  keys.sum  i64  [?]    key     of=w
  5  grad.sum  f32  [? 4]  grad    of=w
  6  loss      f32  []     scalar
  7  weight    f32  []     scalar
  8  total     f32  []     scalar
  9  lost      f32  []     scalar

segments
  0  forward
  1  update  updates=w

groups
  0  0

holdings
  0  w  0..36  owner  rank=0

rank 0
  0  reader   feed     batch                     -> x keys x@1 keys@1
  1  device   compute  forward  seg=0  after=0   x w keys -> loss weight grad
  2  device   compute  forward  seg=0  after=0   x@1 w keys@1 -> loss@1 weight@1 grad@1
  3  device   add      w               after=0   keys grad keys@1 grad@1 -> keys.sum grad.sum
  4  device   add      weight   weight weight@1 -> weight
  5  device   add      loss     loss loss@1 -> loss
  6  group.0  commit   step     group=0 tag=1  after=5   weight loss grad.sum -> total lost
  7  device   compute  update   seg=1  after=6   w keys.sum grad.sum total -> w
`

// edit changes a text; each pair is an old part and a new one.
func edit(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the plan has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func mustParse(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGoodPlans(t *testing.T) {
	// An all-reduce in its two halves, and a broadcast of what is the same anyway.
	halves := edit(t, good, "6  total ", "6  w.part  f32  [4]    grad    of=w\n  7  total ", `7  "sum l"`, `8  "sum l"`,
		"allreduce  w        group=0 tag=1  after=1   w.grad -> w.grad", "reducescatter w  group=0 tag=1  after=1   w.grad -> w.part\n"+
			"  3 group.0 allgather w group=0 tag=8 w.part -> w.grad\n  4 group.0 broadcast w group=0 tag=9 w.grad -> w.grad",
		"3  group.0  commit", "5  group.0  commit", "4  device   compute    update", "6  device   compute    update", "after=3", "after=5")
	// Values side by side in an arena, and at one place of two.
	arenas := edit(t, good, "weight  f32  []     scalar", "weight  f32  []     scalar arena=1 offset=40",
		"grad    of=w", "grad    of=w arena=1 offset=8", "loss    f32  []     scalar", "loss    f32  []     scalar arena=2 offset=8")
	// Two hosts, and an algorithm that goes by them.
	hosts := edit(t, good, "holdings", "hosts\n  0  0\n  1  1\n\nholdings", "group=0 tag=1", "group=0 tag=1 algorithm=hierarchical")
	coded := edit(t, good, "group=0 tag=1", "group=0 tag=1 codec=onebit(512)+feedback")
	for name, text := range map[string]string{"codec": coded, "rows of micro-batches": sparse, "hosts": hosts, "arenas": arenas, "allreduce": good, "halves": halves, "pipeline": pipeline, "micro-batches": micro} {
		if err := Plan(mustParse(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rank that says a gradient otherwise than the others is found before anything runs.
func TestCodecsDiffer(t *testing.T) {
	p := mustParse(t, good)
	p.Ranks[1][2].Codec = "f16"
	const want = "rank 1: task 2 (allreduce w): comes as number 1 on group 0 as (allreduce tag 1 any as f16 "
	if err := Plan(p); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestCheckFinds changes lines of good plans and expects one finding to say
// where and what.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		edits      []string // old, new, old, new...
		want       string
	}{
		// Form.
		{"window", good, []string{"window=2", "window=0"}, "plan: window 0: want 1 to 64"},
		{"value named twice", good, []string{"6  total", "6  loss", "-> total", "-> #6", "w.grad total", "w.grad #6", "weight loss w", "weight #3 w", "-> loss", "-> #3"}, `plan: value 6: two values are named "loss"`},
		{"shape of a slot", good, []string{"w/m     f32  [4 2]", "w/m     f32  [4 3]"}, "plan: value 1 (w/m) is a slot: its shape [4 3] must be that of its parameter, [4 2]"},
		{"state is no parameter", good, []string{"of=w\n  2", "of=loss\n  2"}, "plan: value 1 (w/m) is of value 3, which is no parameter"},
		{"dynamic parameter", good, []string{"f32  [4 2]  param", "f32  [? 2]  param"}, "plan: value 0 (w) lasts over steps: its shape [? 2] must be static"},
		{"segment updates no parameter", good, []string{"updates=w", "updates=x"}, "plan: segment 1 (update) updates value 2, which is no parameter"},
		{"arena: state", good, []string{"slot    of=w", "slot    of=w arena=1"}, "plan: value 1 (w/m) is a slot, which lasts over steps: it cannot be in an arena"},
		{"arena: parameter", good, []string{"[4 2]  param", "[4 2]  param arena=1"}, "plan: value 0 (w) is a param, which lasts over steps: it cannot be in an arena"},
		{"arena: dynamic shape", good, []string{"[? 4]  act", "[? 4]  act arena=1"}, "plan: value 2 (x) is in an arena: its shape [? 4] must be static"},
		{"arena: negative offset", good, []string{"grad    of=w", "grad    of=w arena=1 offset=-8"}, "plan: value 5 (w.grad) is at -8 of its arena: want a multiple of 8, from 0"},
		{"arena: offset between elements", good, []string{"grad    of=w", "grad    of=w arena=1 offset=4"}, "plan: value 5 (w.grad) is at 4 of its arena: want a multiple of 8, from 0"},
		{"arena: overlap", good, []string{"weight  f32  []     scalar", "weight  f32  []     scalar arena=2 offset=32", "grad    of=w", "grad    of=w arena=2 offset=8"}, "plan: value 4 (weight) is at 32 of arena 2, within the 32 bytes of w.grad at 8: move it behind them"},
		{"arena: one place", good, []string{"loss    f32  []     scalar", "loss    f32  []     scalar arena=2", "weight  f32  []     scalar", "weight  f32  []     scalar arena=2"}, "plan: value 4 (weight) is at 0 of arena 2, within the 4 bytes of loss at 0"},
		{"arena: micro-batch", micro, []string{"3  w.sum   f32  [4]    grad    of=w", "3  w.sum   f32  [4]    grad    of=w arena=1", "-> w.sum", "-> w.sum@1", "loss@0:1 w.sum ->", "loss@0:1 w.sum@1 ->", "w w.sum total", "w w.sum@1 total"}, "rank 0: task 3 (add w): w.sum is in an arena, where it has one life a step: micro-batch 1, use 0 must both be 0"},
		{"arena: use", micro, []string{"weight  f32  []     scalar", "weight  f32  []     scalar arena=1"}, "rank 0: task 2 (compute forward): weight is in an arena, where it has one life a step"},
		{"arena: second use", micro, []string{"4  loss    f32  []     scalar", "4  loss    f32  []     scalar arena=1", "loss loss@1 ->", "loss loss ->", "loss@1 weight@1", "loss weight@1"}, "rank 0: task 5 (add loss): loss is in an arena, where it has one life a step: micro-batch 0, use 1 must both be 0"},
		{"group out of order", good, []string{"0  0 1\n", "0  1 0\n"}, "plan: group 0: ranks [1 0]: want at least one, each once, ascending, below 2"},
		{"group of a rank that is not", good, []string{"0  0 1\n", "0  0 1 2\n"}, "plan: group 0: ranks [0 1 2]: want"},
		{"not in the group", good, []string{"0  0 1\n", "0  0\n"}, "rank 1: task 2 (allreduce w): group 0 does not contain rank 1"},
		{"holding too long", good, []string{"w    0..8  owner", "w    0..9  owner"}, "plan: holding 0 (w): range 0..9 is not within its 8 elements"},
		{"holding of nothing", good, []string{"w    0..8  owner", "w    3..3  owner"}, "plan: holding 0 (w): range 3..3 is not within its 8 elements"},
		{"holding of nobody", good, []string{"copy   rank=1", "copy"}, "plan: holding 2 (w): want a rank of the plan or a store"},
		{"segment", good, []string{"seg=1", "seg=2"}, "rank 0: task 4 (compute update): segment 2 does not exist: the plan has 2"},
		{"lane of a collective", good, []string{"group.0  allreduce", "group.1  allreduce"}, "rank 0: task 2 (allreduce w): is on lane group.1: want group.0"},
		{"waits for nothing there", good, []string{"after=3", "after=9"}, "rank 0: task 4 (compute update): waits for task 9~0, which does not exist"},
		{"waits for itself", good, []string{"after=3", "after=4"}, "rank 0: task 4 (compute update): waits for task 4, which does not come before it"},
		{"commit of a gradient", good, []string{"weight loss w.grad ->", "w.grad loss w.grad ->"}, "rank 0: task 3 (commit step): w.grad must be a scalar"},
		{"commit without a loss", good, []string{"weight loss w.grad ->", "weight ->"}, "rank 0: task 3 (commit step): has 1 values in and 2 out: want 2+ in and 2 out"},
		{"shapes of a sum", good, []string{"w.grad -> w.grad", "w.grad -> total"}, "rank 0: task 2 (allreduce w): w.grad is f32 [4 2] but total is f32 []: they must be alike"},
		{"rows without keys", good, []string{"allreduce  w", "allgatherrows  w"}, "rank 0: task 2 (allgatherrows w): has 1 values in and 1 out: want 2 in and 2 out"},
		{"peer", pipeline, []string{"peer=1 tag=1", "peer=2 tag=1"}, "rank 0: task 2 (send h): rank 2 does not exist: the plan has 2"},
		{"link", pipeline, []string{"link.2   send     h ", "link.3   send     h "}, "rank 0: task 2 (send h): is on lane link.3: want link.2"},
		{"tag", pipeline, []string{"peer=1 tag=2", "peer=1 tag=1"}, "rank 0: task 3 (send y): tag 1 is taken by task 2 (send h)"},
		{"tag of a collective", pipeline, []string{"peer=1 tag=2", "peer=1 tag=4"}, "rank 0: task 7 (commit step): tag 4 is taken by task 3 (send y)"},
		{"rows of two micro-batches without keys", micro, []string{"w.grad w.grad@1 -> w.sum", "w.grad w.grad@1 -> w.sum w.sum@1"}, "rank 0: task 3 (add w): want one value out, or (keys, rows) and such pairs in"},
		{"rows with no keys of theirs", sparse, []string{"keys grad keys@1 grad@1 ->", "keys grad grad@1 ->"}, "rank 0: task 3 (add w): want one value out, or (keys, rows) and such pairs in"},
		{"keys as rows", sparse, []string{"keys grad keys@1 grad@1 ->", "keys grad grad@1 keys@1 ->"}, "rank 0: task 3 (add w): adds grad to keys.sum: keys go with keys, and rows with rows"},
		{"rows in place", sparse, []string{"-> keys.sum grad.sum", "-> keys grad.sum"}, "rank 0: task 3 (add w): rows cannot be added in place: write keys elsewhere"},
		{"rows of a micro-batch twice", sparse, []string{"keys grad keys@1 grad@1 ->", "keys grad keys@1 grad keys grad@1 ->"}, "rank 0: task 3 (add w): counts twice in grad what it has met of the batch of rank 0"},
		{"keys of a micro-batch lost", sparse, []string{"keys grad keys@1 grad@1 ->", "keys grad keys grad@1 ->"}, "rank 0: task 7 (compute update): updates w from keys.sum, which lacks the batch of rank 0.1"},
		{"algorithm of a broadcast", good, []string{"allreduce  w        group=0 tag=1", "broadcast  w        group=0 tag=1 algorithm=tree"}, "rank 0: task 2 (broadcast w): tree is how an all-reduce is done, not broadcast"},
		{"hierarchical without hosts", good, []string{"group=0 tag=1", "group=0 tag=1 algorithm=hierarchical"}, "rank 0: task 2 (allreduce w): hierarchical goes by hosts"},
		{"codec of a broadcast", good, []string{"allreduce  w        group=0 tag=1", "broadcast  w        group=0 tag=1 codec=f16"}, "rank 0: task 2 (broadcast w): f16 is of an all-reduce, not of broadcast"},
		{"a codec that is not", good, []string{"group=0 tag=1", "group=0 tag=1 codec=f17"}, "rank 0: task 2 (allreduce w): compress: unknown codec \"f17\": did you mean \"f16\"?"},
		{"codec and algorithm", good, []string{"group=0 tag=1", "group=0 tag=1 algorithm=tree codec=f16"}, "rank 0: task 2 (allreduce w): f16 has a way of its own"},
		{"codec of f64", good, []string{"w.grad  f32", "w.grad  f64", "group=0 tag=1", "group=0 tag=1 codec=f16"}, "rank 0: task 2 (allreduce w): w.grad is f64 [4 2]: f16 is of f32"},
		{"codec into another value", good, []string{"6  total ", "6  w.sum  f32  [4 2]  grad  of=w\n  7  total ", `7  "sum l"`, `8  "sum l"`, "group=0 tag=1", "group=0 tag=1 codec=f16", "w.grad -> w.grad", "w.grad -> w.sum"}, "rank 0: task 2 (allreduce w): f16 sums where the values are"},
		{
			"codec after the commit", good,
			[]string{"2  group.0  allreduce  w        group=0 tag=1  after=1   w.grad -> w.grad", "2  group.0  commit  step  group=0 tag=2  after=1  weight loss w.grad -> total \"sum l\"", "3  group.0  commit     step     group=0 tag=2  after=1   weight loss w.grad -> total \"sum l\"", "3 group.0 allreduce w group=0 tag=1 codec=f16 after=1 w.grad -> w.grad"},
			"rank 0: task 3 (allreduce w): no commit of group 0 comes after it",
		},
		{
			"commit of another group behind a codec", good,
			[]string{"groups\n  0  0 1\n", "groups\n  0  0 1\n  1  0 1\n", "group=0 tag=1", "group=0 tag=1 codec=f16", "group.0  commit     step     group=0", "group.1  commit     step     group=1"},
			"rank 0: task 2 (allreduce w): no commit of group 0 comes after it",
		},
		{"a rank on two hosts", good, []string{"holdings", "hosts\n  0  0 1\n  1  1\n\nholdings"}, "plan: rank 1 is on host 0 and on host 1: want each rank once"},
		{"a rank on no host", good, []string{"holdings", "hosts\n  0  1\n\nholdings"}, "plan: hosts name 1 of 2 ranks: want all"},
		{"a host of nobody", good, []string{"holdings", "hosts\n  0  0 1\n  1\n\nholdings"}, "plan: host 1 has no ranks"},
		{"a host of a rank that is not", good, []string{"holdings", "hosts\n  0  0 1 2\n\nholdings"}, "plan: host 0: rank 2 does not exist"},
		// No hang.
		{
			"messages in another order", pipeline,
			[]string{"recv     h        peer=0 tag=1             -> h", "recv     y        peer=0 tag=2             -> y", "recv     y        peer=0 tag=2             -> y\n  2", "recv     h        peer=0 tag=1             -> h\n  2"},
			"rank 0: task 2 (send h): hangs in step 0: waits for rank 1 to receive tag 1; rank 1 waits in task 0 (recv y): change the order",
		},
		{"a message that nobody takes", pipeline, []string{"peer=0 tag=2", "peer=0 tag=9"}, "rank 0: task 3 (send y): hangs in step 0: waits for rank 1 to receive tag 2; rank 1 has no such recv: add it"},
		{"a message that nobody sends", pipeline, []string{"peer=0 tag=3", "peer=0 tag=9"}, "rank 0: task 4 (recv dh): hangs in step 0: waits for rank 1 to send tag 3; rank 1 has no such send: add it"},
		{"each waits for the other", pipeline, []string{
			"  2  link.2   send     h        peer=1 tag=1   after=1   h ->\n  3  link.2   send     y        peer=1 tag=2   after=0   y ->\n  4  link.3   recv     dh       peer=1 tag=3             -> dh\n",
			"  2  link.3   recv     dh       peer=1 tag=3             -> dh\n  3  link.2   send     h        peer=1 tag=1   after=1,2 h ->\n  4  link.2   send     y        peer=1 tag=2   after=0   y ->\n",
		}, "rank 0: task 2 (recv dh): hangs in step 0: waits for rank 1 to send tag 3; rank 1 waits in task 0 (recv h)"},
		// Order.
		{"a race across steps", good, []string{"seg=1          after=3", "seg=1          after=3", "4  device ", "4  device.1 "}, "rank 0: task 1 (compute forward): reads w while task 4 (compute update) of step t-1 may still write it: make it wait for that (after=4~1)"},
		{"a read of nothing", pipeline, []string{"-> x y", "-> x"}, "rank 0: task 3 (send y): reads y, which nothing before it has written"},
		{"a parameter of another rank", pipeline, []string{"h y w1 ->", "h y w0 ->"}, "rank 1: task 2 (compute head): reads w0, which nothing before it has written"},
		{"two writers at once", micro, []string{"2  device ", "2  device.1 ", "-> loss@1", "-> loss"}, "rank 0: task 2 (compute forward): writes loss while task 1 (compute forward) may still write it: make it wait for that (after=1)"},
		// Gradients.
		{"a micro-batch twice", micro, []string{"w.grad w.grad@1 ->", "w.grad w.grad ->"}, "rank 0: task 3 (add w): counts twice in w.grad what it has met of the batch of rank 0"},
		{"a micro-batch lost", micro, []string{"w.grad w.grad@1 ->", "w.grad ->"}, "rank 0: task 7 (compute update): updates w from w.sum, which lacks the batch of rank 0.1"},
		{"a weight lost", micro, []string{"weight weight@1 ->", "weight@1 ->"}, "rank 0: task 6 (commit step): its total weight lacks the batch of rank 0"},
		{"a weight twice", pipeline, []string{"2  zero", "2  zero", "seg=2                    -> weight", "seg=2 y                  -> weight"}, "rank 1: task 4 (commit step): counts twice in weight what it has met of the batch of rank 0"},
		{"gradient of another", pipeline, []string{"w0 w0.grad total ->", "w0 dh total ->"}, "rank 0: task 8 (compute update0): updates w0 from 0 gradients and 1 totals"},
		{"a message of another type", pipeline, []string{"peer=0 tag=2             -> y", "peer=0 tag=2             -> y loss", "-> y loss", "-> dh", "h y w1 -> loss weight w1.grad dh", "h dh w1 -> loss weight w1.grad dh"}, "rank 1: task 1 (recv y): y is f32 [?] but dh is f32 [? 2]: they must be alike"},
		{"a holder of nothing new", pipeline, []string{"1  w1  0..2  owner  rank=1", "1  w1  0..2  owner  rank=1\n  2  w1 0..2 copy rank=0"}, "rank 0: holds w1 but never updates it"},
		{"an update of what is not held", pipeline, []string{"1  w1  0..2  owner  rank=1", "1  w1  0..2  owner  rank=0"}, "rank 1: task 2 (compute head): reads w1, which nothing before it has written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := edit(t, c.text, c.edits...)
			err := Plan(mustParse(t, text))
			if err == nil {
				t.Fatalf("found nothing in:\n%s", text)
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.HasPrefix(line, c.want) {
					return
				}
			}
			t.Errorf("no finding begins with %q:\n%v", c.want, err)
		})
	}
}

// TestCheckOfAnotherAlgorithm: members that sum in different ways would wait for
// messages that nobody sends.
func TestCheckOfAnotherAlgorithm(t *testing.T) {
	p := mustParse(t, good)
	p.Ranks[1][2].Algorithm = plan.ByTree
	const want = "rank 1: task 2 (allreduce w): comes as number 1 on group 0 as (allreduce tag 1 any by tree"
	if err := Plan(p); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	p.Ranks[0][2].Algorithm, p.Ranks[1][2].Algorithm = 9, 9
	if err := Plan(p); err == nil || !strings.Contains(err.Error(), "algorithm(9) is nothing that an all-reduce is done by") {
		t.Errorf("got %v", err)
	}
}

// TestCheckOfAnotherParameter: two gradients of one type are not one gradient.
func TestCheckOfAnotherParameter(t *testing.T) {
	p := mustParse(t, good)
	v := len(p.Values)
	p.Values = append(p.Values, p.Values[0], p.Values[5])
	p.Values[v].Name, p.Values[v].State = "v", v
	p.Values[v+1].Name, p.Values[v+1].State = "v.grad", v
	p.Ranks[1][1].Out = append(p.Ranks[1][1].Out, plan.Ref{Value: v + 1})
	p.Ranks[1][2].In, p.Ranks[1][2].Out = []plan.Ref{{Value: v + 1}}, []plan.Ref{{Value: v + 1}}
	const want = "rank 1: task 2 (allreduce w): adds v.grad to w.grad of rank 0, which belongs to another parameter"
	if err := Plan(p); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
