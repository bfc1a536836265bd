package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/tensor"
)

// drawPlan draws a plan that is well spelt and otherwise nonsense.
func drawPlan(t *rapid.T) *Plan {
	small := rapid.IntRange(-2, 5)
	name := rapid.OneOf(rapid.SampledFrom([]string{"w", "w/m", "x.1", "", "->", "#1", "a=b", "two words", `q"u`, "a@1", "ü", "[", "\xff"}), rapid.String())
	refs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ref {
		return Ref{small.Draw(t, "value"), small.Draw(t, "micro"), small.Draw(t, "use")}
	}), 0, 3)
	task := rapid.Custom(func(t *rapid.T) Task {
		return Task{
			Kind: Kind(rapid.IntRange(1, 9).Draw(t, "kind")), Name: name.Draw(t, "name"), Op: Op(rapid.IntRange(0, 5).Draw(t, "op")),
			Seg: small.Draw(t, "seg"), Peer: small.Draw(t, "peer"), Group: small.Draw(t, "group"), Store: small.Draw(t, "store"),
			In: refs.Draw(t, "in"), Out: refs.Draw(t, "out"),
			Lane:  Lane{LaneKind(rapid.IntRange(1, 5).Draw(t, "lane")), small.Draw(t, "id")},
			After: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Dep { return Dep{small.Draw(t, "task"), small.Draw(t, "lag")} }), 0, 3).Draw(t, "after"),
			Tag:   rapid.Uint32().Draw(t, "tag"), Order: Order(rapid.IntRange(0, 1).Draw(t, "order")), Done: Done(rapid.IntRange(0, 2).Draw(t, "done")),
			Algorithm: Algorithm(rapid.IntRange(0, 4).Draw(t, "algorithm")),
			Codec:     rapid.OneOf(rapid.SampledFrom([]string{"", "f16", "topk(0.01)+feedback", "->", "(", "a b", `"`, "tag=1"}), rapid.String()).Draw(t, "codec"),
			Factors:   rapid.SliceOfN(rapid.Float64Range(-1e300, 1e300), 0, 3).Draw(t, "factors"),
		}
	})
	value := rapid.Custom(func(t *rapid.T) Value {
		return Value{
			Name: name.Draw(t, "name"), DType: tensor.DType(rapid.IntRange(1, 4).Draw(t, "dtype")),
			Shape: rapid.SliceOfN(rapid.IntRange(-1, 9), 0, 3).Draw(t, "shape"), Class: Class(rapid.IntRange(1, 6).Draw(t, "class")),
			State: small.Draw(t, "state"), Arena: small.Draw(t, "arena"), Offset: small.Draw(t, "offset"),
		}
	})
	p := &Plan{
		Name: name.Draw(t, "plan"), Window: small.Draw(t, "window"), Local: rapid.Bool().Draw(t, "local"),
		Ranks:  rapid.SliceOfN(rapid.SliceOfN(task, 0, 2), 0, 3).Draw(t, "ranks"),
		Values: rapid.SliceOfN(value, 0, 4).Draw(t, "values"),
		Segs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Seg {
			return Seg{name.Draw(t, "name"), small.Draw(t, "update"), rapid.Int64().Draw(t, "flops")}
		}), 0, 2).Draw(t, "segs"),
		Groups: rapid.SliceOfN(rapid.SliceOfN(small, 0, 3), 0, 2).Draw(t, "groups"),
		Hosts:  rapid.SliceOfN(rapid.SliceOfN(small, 0, 3), 0, 2).Draw(t, "hosts"),
		Stores: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) StoreInfo { return StoreInfo{name.Draw(t, "name")} }), 0, 2).Draw(t, "stores"),
		Holdings: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Holding {
			return Holding{small.Draw(t, "state"), small.Draw(t, "lo"), small.Draw(t, "hi"), small.Draw(t, "rank"), small.Draw(t, "store"), rapid.Bool().Draw(t, "owner")}
		}), 0, 3).Draw(t, "holdings"),
	}
	if len(p.Ranks) > 1 && rapid.Bool().Draw(t, "alike") {
		p.Ranks[1] = CloneTasks(p.Ranks[0])
	}
	return p
}

// TestFormatReadsBack: whatever a plan says, well or ill, its text says it all.
func TestFormatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		text := Format(p)
		back, err := Parse(text)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if d := gocmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("not the same (-plan +read):\n%s\n%s", d, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimRight(line, " ") != line {
				t.Fatalf("line %q ends in spaces", line)
			}
		}
	})
}

// TestNamesWithMarks: marks within a quoted name are part of it.
func TestNamesWithMarks(t *testing.T) {
	p := mustParse(t, good)
	for _, name := range []string{"a@1", `q"@2`, "x@1:2", "->", "#3", "of=w"} {
		p.Values[2].Name = name
		if d := gocmp.Diff(p, mustParse(t, Format(p)), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q: %s", name, d)
		}
	}
}

// TestDiffIsTrue: no lines if and only if nothing changed.
func TestDiffIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawPlan(t)
		b := a
		if rapid.Bool().Draw(t, "other") {
			b = drawPlan(t)
		}
		if lines := Diff(a, b); (len(lines) == 0) != (Digest(a) == Digest(b)) {
			t.Fatalf("lines %q, digests %s and %s", lines, Digest(a), Digest(b))
		}
	})
}

// good is a plan of two workers that pass Check; tests change lines of it.
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

// edit changes the good plan; each pair is an old text and a new one.
func edit(t testing.TB, pairs ...string) string {
	t.Helper()
	text := good
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the plan has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func mustParse(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		edits []string
		want  string
	}{
		{"dtype", []string{"f32  [4 2]  param", "f33  [4 2]  param"}, `line 4: tensor: unknown dtype "f33"`},
		{"class", []string{"param", "parm"}, `line 4: unknown class "parm"`},
		{"shape", []string{"[? 4]", "[x 4]"}, `line 6: "[x 4]" is not a shape`},
		{"bracket", []string{"[? 4]", "[? 4"}, "line 6: a bracket is not closed"},
		{"state of a value", []string{"slot    of=w", "slot    of=v"}, `line 5: no value is named "v"`},
		{"number", []string{"  2  x", "  3  x"}, `line 6: the line is numbered 3, want 2`},
		{"quote", []string{`7  "sum l"`, `7  "sum l`}, "line 11: a quote is not closed"},
		{"setting", []string{"flops=16", "flop=16"}, `line 14: "flop=16" is not understood here`},
		{"setting twice", []string{"flops=16", "flops=1 flops=2"}, `line 14: "flops=2" is not understood here`},
		{"not a number", []string{"flops=16", "flops=x"}, `line 14: strconv.ParseInt: parsing "x"`},
		{"kind", []string{"compute    forward", "computes   forward"}, `line 28: unknown kind "computes"`},
		{"lane", []string{"reader   feed", "readers  feed"}, `line 27: unknown lane "readers"`},
		{"value", []string{"-> x", "-> xx"}, `line 27: no value is named "xx"`},
		{"arrow", []string{"-> x", "x"}, "line 27: want -> between"},
		{"wait", []string{"after=0", "after=0~x"}, `line 28: "x" is not a number`},
		{"range", []string{"0..8  owner", "0-8   owner"}, `line 21: "0-8" is not a range lo..hi`},
		{"ranks", []string{"ranks 0-1", "ranks 1-2"}, "line 26: rank 1 out of place: want rank 0"},
		{"too many ranks", []string{"ranks 0-1", "ranks 0-99999"}, "below 4096"},
		{"section", []string{"segments", "segment"}, `line 13: unknown section "segment"`},
		{"left over", []string{"rank=0", "rank=0 1"}, `line 21: "1" is not understood here`},
		{"short", []string{"  param", ""}, "line 4: the line ends where a class was expected"},
		{"name", []string{`"sum l"`, `sum*l`}, `line 11: name "sum*l" must stand in quotes`},
		{"factors", []string{"seg=0  ", "seg=0 factors=1,x"}, `line 28: "x" is not a finite number`},
		{"infinite factor", []string{"seg=0  ", "seg=0 factors=Inf"}, `line 28: "Inf" is not a finite number`},
		{"local", []string{"window=2", "window=2 local=1"}, "line 1: local=1: want local=true"},
		{"no plan", []string{"plan step window=2\n", ""}, `line 2: "values" out of place`},
		{"two plans", []string{"\ngroups", "\nplan x\ngroups"}, `line 17: "plan" out of place`},
		{"ambiguous", []string{"6  total", "6  x"}, `line 27: two values are named "x": say #index`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(edit(t, c.edits...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Parse(""); err == nil {
		t.Error("an empty text is a plan")
	}
}

// TestDiff reads as a person would tell it.
func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name  string
		edits []string
		want  []string
	}{
		{"nothing", nil, nil},
		{"local", []string{"window=2", "window=2 local=true"}, []string{"~ plan name=step window=2 local=true ranks=2, was name=step window=2 ranks=2"}},
		{"window", []string{"window=2", "window=3"}, []string{"~ plan name=step window=3 ranks=2, was name=step window=2 ranks=2"}},
		{
			"holding moves",
			[]string{"owner  rank=0\n  1", "owner  rank=1\n  1"},
			[]string{"- holding w rank=0 0..8 owner", "+ holding w rank=1 (number 2) 0..8 copy", "~ holding w rank=1 0..8 owner, was 0..8 copy"},
		},
		{
			"task changes",
			[]string{"tag=2  after=1 ", "tag=2  after=0 ", "ranks 0-1", "rank 0"},
			[]string{
				"~ plan name=step window=2 ranks=1, was name=step window=2 ranks=2", "- rank 1: feed batch reader -> x",
				"~ rank 0: commit step group.0 group=0 tag=2 weight loss w.grad -> total \"sum l\" after (feed batch)~0, was group.0 group=0 tag=2 weight loss w.grad -> total \"sum l\" after (compute forward)~0",
			},
		},
		{
			"task inserted",
			[]string{"  2  group.0", "  2  device  add  more  -> x\n  3  group.0", "  3  group.0  commit", "  4  group.0  commit", "  4  device   compute    update   seg=1          after=3", "  5 device compute update seg=1 after=4"},
			[]string{"+ rank 0: add more device -> x", "+ rank 1: add more device -> x"},
		},
		{
			"order",
			[]string{
				"0  reader   feed       batch                             -> x\n  1  device   compute    forward  seg=0          after=0   w x -> loss weight w.grad\n",
				"0  device   compute    forward  seg=0          after=1   w x -> loss weight w.grad\n  1  reader   feed       batch                             -> x\n", "tag=1  after=1", "tag=1  after=0", "tag=2  after=1", "tag=2  after=0",
			},
			[]string{"~ order: rank 0: compute forward comes where rank 0: feed batch was"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diff(mustParse(t, good), mustParse(t, edit(t, c.edits...)))
			for _, w := range c.want {
				if !slices.Contains(got, w) {
					t.Errorf("no line %q in:\n%s", w, strings.Join(got, "\n"))
				}
			}
			if c.want == nil && got != nil {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestDigest: it tells plans apart, and programs by their cycle and names too.
func TestDigest(t *testing.T) {
	p, q := mustParse(t, good), mustParse(t, edit(t, "tag=1", "tag=3"))
	digests := map[string]bool{
		Digest(p): true, Digest(q): true,
		ProgramDigest(&Program{Plans: map[string]*Plan{"step": p}, Cycle: []string{"step"}}):            true,
		ProgramDigest(&Program{Plans: map[string]*Plan{"step": q}, Cycle: []string{"step"}}):            true,
		ProgramDigest(&Program{Plans: map[string]*Plan{"step": p}, Cycle: []string{"step", "step"}}):    true,
		ProgramDigest(&Program{Plans: map[string]*Plan{"step": p, "eval": q}, Cycle: []string{"step"}}): true,
		ProgramDigest(&Program{Plans: map[string]*Plan{"step": q, "eval": p}, Cycle: []string{"step"}}): true,
	}
	if len(digests) != 7 {
		t.Errorf("some of %v are the same", slices.Collect(maps.Keys(digests)))
	}
	if len(Digest(p)) != 64 || Digest(p) != Digest(mustParse(t, Format(p))) {
		t.Errorf("digest %q", Digest(p))
	}
}

// FuzzParse: no text makes Parse panic, and what it takes prints and reads back.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("plan x window=1\nranks 0-3\n  0 device add a op=tree -> \n")
	f.Add("plan \"\" window=-1\nvalues\n  0 w f32 [] param of=#-1\n  1 w f64 [?] slot of=#1 arena=2 offset=8\nrank 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil || len(p.Ranks) > 16 { // many are slow to compare, and no news
			return
		}
		back, err := Parse(Format(p))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, Format(p))
		}
		if d := gocmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}
