package feature

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/table"
)

// yes is a label of two classes.
func yes(features ...Feature) Spec {
	return Spec{Label: Label{Column: "y"}, Task: Binary, Features: features}
}

// Every kind of number feature does what is written of it.
func TestNumbers(t *testing.T) {
	fields := fieldsOf("y:number x:number n:integer v:numbers:2")
	b := block(
		t, fields,
		"1,0,10,1 5",
		"-1,3,?,2 5",
		"0,?,30,3 5",
		"1,9,20,?",
	)
	ln4, ln10 := math.Log(4), math.Log(10)
	logMean := (ln4 + ln10) / 3
	for _, c := range []struct {
		name string
		f    Feature
		want []float64
	}{
		{"plain, mean for missing", Feature{Column: "x"}, []float64{0, 3, 4, 9}},
		{"a number for missing", Feature{Column: "x", Fill: "-2"}, []float64{0, 3, -2, 9}},
		{"indicator", Feature{Column: "x", Indicator: true}, []float64{0, 0, 3, 0, 4, 1, 9, 0}},
		{"clip", Feature{Column: "x", Clip: []float64{1, 5}}, []float64{1, 3, 3, 5}},
		{"log", Feature{Column: "x", Log: "signed"}, []float64{0, ln4, logMean, ln10}},
		{"fill goes through clip and log", Feature{Column: "x", Log: "signed", Fill: "-3", Clip: []float64{-3, 9}}, []float64{0, ln4, -ln4, ln10}},
		{"log of clipped", Feature{Column: "x", Log: "clipped", Fill: "-3"}, []float64{0, ln4, 0, ln10}},
		{"min-max", Feature{Column: "x", Normalize: "minmax"}, []float64{0, 1. / 3, 4. / 9, 1}},
		{"standard", Feature{Column: "x", Normalize: "standard"}, []float64{-4 / math.Sqrt(14), -1 / math.Sqrt(14), 0, 5 / math.Sqrt(14)}},
		{"integer", Feature{Column: "n", Normalize: "minmax"}, []float64{0, .5, 1, .5}},
		{"vector, one element constant", Feature{Column: "v", Normalize: "minmax"}, []float64{0, 0, .5, 0, 1, 0, .5, 0}},
	} {
		c.f.Kind = Number
		f := fit(t, yes(c.f), fields, b)
		r := apply(t, f, fields, b)
		if len(r.Dense) != len(c.want) || f.Dense()*4 != len(c.want) || len(r.IDs) != 0 {
			t.Errorf("%s: got %v", c.name, r.Dense)
			continue
		}
		for i, v := range r.Dense {
			if math.Abs(float64(v)-c.want[i]) > 1e-6 {
				t.Errorf("%s: value %d is %v, want %v", c.name, i, v, c.want[i])
			}
		}
	}
}

// Every kind of feature that makes ids does what is written of it.
func TestIDs(t *testing.T) {
	fields := fieldsOf("y:number x:number c:text k:integer l:texts e:entries")
	b := block(
		t, fields,
		"1,0,b,7,p q,5:3 18446744073709551615:4",
		"0,3,a,8,,5:2",
		"0,?,b,?,q,",
		"1,9,?,7,?,?",
	)
	later := block(
		t, fields,
		"0,-1e9,z,9,r,6:1",
		"0,9.5,a,7,p p,5:1",
	)
	for _, c := range []struct {
		name       string
		f          Feature
		ids        int
		want, then [][]int32
		perRow     int
	}{
		{"boundaries", Feature{Kind: Number, Column: "x", Boundaries: []float64{3, 9.5}}, 4, [][]int32{{1}, {2}, {0}, {2}}, [][]int32{{1}, {3}}, 1},
		{"quantiles", Feature{Kind: Number, Column: "x", Quantiles: 3}, 4, [][]int32{{1}, {2}, {0}, {3}}, [][]int32{{1}, {3}}, 1},
		{"text", Feature{Kind: Category, Column: "c"}, 4, [][]int32{{3}, {2}, {3}, {0}}, [][]int32{{1}, {2}}, 1},
		{"minimum count", Feature{Kind: Category, Column: "c", MinCount: 2}, 3, [][]int32{{2}, {1}, {2}, {0}}, [][]int32{{1}, {1}}, 1},
		{"integer", Feature{Kind: Category, Column: "k"}, 4, [][]int32{{2}, {3}, {0}, {2}}, [][]int32{{1}, {2}}, 1},
		{"list", Feature{Kind: Category, Column: "l"}, 4, [][]int32{{2, 3}, {}, {3}, {0}}, [][]int32{{1}, {2, 2}}, 0},
		{"entries", Feature{Kind: Category, Column: "e"}, 4, [][]int32{{2, 3}, {2}, {}, {0}}, [][]int32{{1}, {2}}, 0},
	} {
		f := fit(t, yes(c.f), fields, b)
		if f.IDs() != c.ids || f.PerRow() != c.perRow || f.Dense() != 0 {
			t.Errorf("%s: %d ids, %d a row, %d dense; want %d, %d, 0", c.name, f.IDs(), f.PerRow(), f.Dense(), c.ids, c.perRow)
		}
		for i, part := range []*table.Block{b, later} {
			r := apply(t, f, fields, part)
			got := [][]int32{}
			for row := range r.N {
				got = append(got, r.ids(row))
			}
			want := c.want
			if i == 1 {
				want = c.then
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: ids (-want +got):\n%s", c.name, diff)
			}
		}
	}
}

// Entries keep their values, or are scaled to a norm of 1; several features have
// ranges of ids one after the other.
func TestWeightsAndBases(t *testing.T) {
	fields := fieldsOf("y:number c:text e:entries l:texts")
	b := block(t, fields, "1,b,5:3 6:4,p q r s", "0,a,,")
	s := yes(
		Feature{Kind: Category, Column: "c"}, Feature{Kind: Category, Column: "e"},
		Feature{Name: "e2", Kind: Category, Column: "e", UnitNorm: true, Buckets: 10},
		Feature{Kind: Category, Column: "l", UnitNorm: true},
	)
	f := fit(t, s, fields, b)
	r := apply(t, f, fields, b)
	if diff := cmp.Diff([]float32{1, 3, 4, .6, .8, .5, .5, .5, .5}, r.Values[:r.Offsets[1]]); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if f.IDs() != 4+4+11+6 {
		t.Errorf("%d ids", f.IDs())
	}
	ids := r.ids(0)
	for i, want := range []int32{3, 4 + 2, 4 + 3, -1, -1, 19 + 2, 19 + 3, 19 + 4, 19 + 5} {
		if want >= 0 && ids[i] != want || want < 0 && (ids[i] <= 8 || ids[i] >= 19) {
			t.Errorf("entry %d has id %d, want %d", i, ids[i], want)
		}
	}
	if got := r.ids(1); len(got) != 1 || got[0] != 2 || r.Values[len(r.Values)-1] != 1 {
		t.Errorf("row 1 has the ids %v, values %v", got, r.Values)
	}
}

// A cross tells every combination from the others, parts as well as order, and
// takes intervals of numbers.
func TestCross(t *testing.T) {
	fields := fieldsOf("y:number a:text b:text x:number")
	b := block(t, fields, "1,u,v,1", "0,v,u,1", "0,u,u,1", "1,?,u,2", "1,u,?,2", "1,u,v,9", "1,uv,,1")
	s := yes(
		Feature{Kind: Number, Column: "x", Boundaries: []float64{5}},
		Feature{Kind: Cross, Columns: []string{"a", "b"}, Buckets: 1 << 30},
		Feature{Kind: Cross, Columns: []string{"a", "x"}, Buckets: 1 << 29},
	)
	r := apply(t, fit(t, s, fields, b), fields, b)
	seen := map[int32]int{}
	for row := range r.N {
		id := r.ids(row)[1]
		if other, twice := seen[id]; twice && (other != 0 || row != 5) {
			t.Errorf("rows %d and %d have one id", other, row)
		}
		seen[id] = row
	}
	with := func(row int) int32 { return r.ids(row)[2] }
	if with(0) != with(2) || with(2) != with(4) || with(0) == with(5) {
		t.Errorf("a times intervals of x: %d %d %d %d; want 1 and 2 in one interval, 9 in another", with(0), with(2), with(4), with(5))
	}
}

// Hashes are the same in every release: these are what the first one made.
func TestHashIsStable(t *testing.T) {
	fields := fieldsOf("y:number c:text k:integer e:entries")
	b := block(t, fields, "1,Private,40,9:1", "0,Straße,-3,18446744073709551615:2")
	s := yes(
		Feature{Kind: Category, Column: "c", Buckets: 1 << 20},
		Feature{Kind: Category, Column: "k", Buckets: 1 << 20},
		Feature{Kind: Category, Column: "e", Buckets: 1 << 20},
		Feature{Kind: Cross, Columns: []string{"c", "k"}, Buckets: 1 << 20},
	)
	r := apply(t, fit(t, s, fields, b), fields, b)
	want := []int32{821467, 1729592, 2465807, 4098082, 608402, 1790772, 2463742, 3147274}
	if diff := cmp.Diff(want, r.IDs); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	// Worked out by hand: FNV-1a and splitmix64 as published.
	if got := Salt("a"); got != fnvThenMix("a") {
		t.Errorf("the salt of a is %#x, want %#x", got, fnvThenMix("a"))
	}
}

// fnvThenMix says the hash once more, from its definition.
func fnvThenMix(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h ^= uint64(s[i])
		h *= 0x100000001b3
	}
	h += 0x9e3779b97f4a7c15
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// Labels become what the loss takes, or the row is bad.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    string
		task    Task
		classes int
		label   Label
		train   string // labels, parted by spaces
		want    []float32
		then    string // of other rows
		labels  []float32
		bad     string
	}{
		{"two classes", "number", Binary, 0, Label{}, "1 0 -1", []float32{1, 0, 0}, "2 1 ?", []float32{1}, "label 2 is not -1, 0 or 1"},
		{"positive", "text", Binary, 0, Label{Positive: []string{"p"}}, "p n m", []float32{1, 0, 0}, "n x p", []float32{0, 1}, `label "x" is none of ["m" "n" "p"]`},
		{"negative", "text", Binary, 0, Label{Positive: []string{"p"}, Negative: []string{"n"}}, "p n m", []float32{1, 0}, "n", []float32{0}, ""},
		{"positive numbers", "number", Binary, 0, Label{Positive: []string{"4", "5.0"}}, "5 4 3", []float32{1, 1, 0}, "1", nil, `label "1" is none of`},
		{"numbers of classes", "integer", Multiclass, 4, Label{}, "3 0 1", []float32{3, 0, 1}, "2 4", []float32{2}, `label "4" is none of`},
		{"counted classes", "number", Multiclass, 3, Label{}, "10 9 3", []float32{2, 1, 0}, "9 9.5", []float32{1}, `label "9.5" is none of`},
		{"names of classes", "text", Multiclass, 0, Label{}, "b a c", []float32{1, 0, 2}, "c", []float32{2}, ""},
		{"classes in order", "text", Multiclass, 3, Label{Classes: []string{"c", "a"}}, "a c b", []float32{1, 0}, "a", []float32{1}, ""},
		{"values", "number", Regression, 0, Label{}, "1.5 -2 1e300", []float32{1.5, -2}, "NaN 7", []float32{7}, "label NaN is not a finite number"},
	} {
		c.label.Column = "y"
		fields := fieldsOf("y:" + c.kind + " x:number")
		s := Spec{Label: c.label, Task: c.task, Classes: c.classes}
		rowsOf := func(labels string) []string {
			var out []string
			for l := range strings.FieldsSeq(labels) {
				out = append(out, l+",1")
			}
			return out
		}
		f := fit(t, s, fields, block(t, fields, rowsOf(c.train)...))
		r := apply(t, f, fields, block(t, fields, rowsOf(c.train)...))
		for i, name := range f.ClassNames() {
			if want := f.Labels[i]; c.task != Multiclass || want.Value != name || int(want.Label) != i {
				t.Errorf("%s: class %d is called %q, its label is %+v", c.name, i, name, want)
			}
		}
		if named := f.ClassNames() != nil; named != (c.task == Multiclass && c.name != "numbers of classes") {
			t.Errorf("%s: classes are called %q", c.name, f.ClassNames())
		}
		if diff := cmp.Diff(c.want, r.Labels); diff != "" {
			t.Errorf("%s: training labels (-want +got):\n%s", c.name, diff)
		}
		r = apply(t, f, fields, block(t, fields, rowsOf(c.then)...))
		if diff := cmp.Diff(c.labels, append([]float32(nil), r.Labels...)); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", c.name, diff)
		}
		if c.bad != "" && (len(r.Bad) == 0 || !strings.Contains(r.Bad[0].Error(), c.bad)) {
			t.Errorf("%s: bad rows %v, want %q in the first", c.name, r.Bad, c.bad)
		}
	}
}

// Bad rows are left out of fit and features, and named with file, line and column.
func TestBadRows(t *testing.T) {
	fields := fieldsOf("y:number w:number x:number v:numbers:2 e:entries g:text")
	b := block(
		t, fields,
		"1,1,5,1 2,1:1,u",
		"7,1,5,1 2,1:1,u",
		"1,-1,5,1 2,1:1,u",
		"1,1,Inf,1 2,1:1,u",
		"1,1,NaN,1 2,1:1,u",
		"1,1,5,1,1:1,u",
		"1,1,5,1 2,1:NaN,u",
		"?,1,5,1 2,1:1,u",
		"1,1,1e39,1 2,1:1,u",
		"0,2,7,3 4,2:1,u",
	)
	b.Lines = []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 30}
	s := Spec{Label: Label{Column: "y"}, Task: Binary, Weight: "w", Ignore: []string{"v"}}
	s.Features = []Feature{{Kind: Number, Column: "x"}, {Kind: Number, Column: "v"}, {Kind: Category, Column: "e"}}
	f := fit(t, s, fields, b)
	r := applyWith(t, f, fields, b, Options{Group: "g"})
	if diff := cmp.Diff([]int{0, 9}, r.Kept); diff != "" || f.Rows != 2 {
		t.Errorf("kept rows (-want +got):\n%s", diff)
	}
	var got []string
	for _, e := range r.Bad {
		got = append(got, e.Error())
	}
	want := []string{
		`dir/rows.csv:11: column "y": label 7 is not -1, 0 or 1; set label.positive to say which values are 1`,
		`dir/rows.csv:12: column "w": the weight -1 is not a finite number from 0`,
		`dir/rows.csv:13: column "x": +Inf is not a finite number of 32 bits`,
		`dir/rows.csv:14: column "x": NaN is not a finite number of 32 bits`,
		`dir/rows.csv:15: column "v": the row has 1 numbers, want 2`,
		`dir/rows.csv:16: column "e": NaN is not a finite number of 32 bits`,
		`dir/rows.csv:17: column "y": the label is missing`,
		`dir/rows.csv:18: column "x": 1e+39 is not a finite number of 32 bits`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bad rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{1, 2}, r.Weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if len(r.Groups) != 2 || r.Groups[0] != r.Groups[1] {
		t.Errorf("groups %v", r.Groups)
	}
	if m := f.Features[0].Moments[0]; m.Count != 2 || m.Mean != 6 {
		t.Errorf("bad rows count in the mean: %+v", m)
	}
}

// Rows that are not meant count for nothing, and one of which that cannot be told
// is bad.
func TestFilter(t *testing.T) {
	fields := fieldsOf("y:number x:number part:text")
	b := block(t, fields, "1,1,a", "0,3,b", "1,5,a", "7,5,b", "1,9,?")
	meant := func(b *table.Block, row int) (int, bool, string) {
		if b.Columns[2].Missing[row] {
			return 2, false, "no part"
		}
		return 2, string(text(&b.Columns[2], row)) == "a", ""
	}
	fitter, err := NewFitter(yes(Feature{Kind: Number, Column: "x", Normalize: "minmax"}), fields)
	if err != nil {
		t.Fatal(err)
	}
	fitter.Filter(meant)
	if err := fitter.Add(b); err != nil {
		t.Fatal(err)
	}
	f, err := fitter.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	r := applyWith(t, f, fields, b, Options{Filter: meant})
	if diff := cmp.Diff([]float32{0, 1}, r.Dense); diff != "" || f.Rows != 2 {
		t.Errorf("dense values (-want +got):\n%s", diff)
	}
	if len(r.Bad) != 1 || r.Bad[0].Error() != `dir/rows.csv:5: column "part": no part` {
		t.Errorf("bad rows %v", r.Bad)
	}
}

// Without declarations every column becomes a feature, but for those with a role.
func TestAutomatic(t *testing.T) {
	fields := fieldsOf("id:integer y:number a:number b:integer c:text l:texts e:entries v:numbers:2 w:number g:text")
	b := block(t, fields, "1,1,5,6,u,p q,1:2,1 2,1,g", "2,0,7,8,v,q,2:2,3 4,1,g")
	s := Spec{Label: Label{Column: "y"}, Task: Binary, Weight: "w", Ignore: []string{"id", "g"}}
	f := fit(t, s, fields, b)
	var got []string
	for _, x := range f.Features {
		got = append(got, string(x.Kind)+" "+x.Column+" "+x.Normalize)
	}
	want := []string{"number a standard", "number b standard", "category c ", "category l ", "category e ", "number v standard"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	if r := apply(t, f, fields, b); f.Dense() != 4 || len(r.Dense) != 8 || r.Dense[0] != -1 || r.Dense[4] != 1 {
		t.Errorf("dense values %v", r.Dense)
	}
}

// An exact vocabulary beyond the limit is refused with what to do, or hashed where
// nothing was declared.
func TestTooManyValues(t *testing.T) {
	fields := fieldsOf("y:number c:text")
	b := block(t, fields, "1,a", "0,b", "0,c", "1,d")
	add := func(s Spec) (*Fitter, error) {
		f, err := newFitter(s, fields, 3)
		if err != nil {
			t.Fatal(err)
		}
		return f, f.Add(b)
	}
	_, err := add(yes(Feature{Kind: Category, Column: "c"}))
	if d := (*DeclError)(nil); !errors.As(err, &d) || d.Field != "features[0].buckets" || !strings.Contains(d.Fix, "more than 3 distinct values") {
		t.Errorf("got %v", err)
	}
	fitter, err := add(yes())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fitter.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	if x := f.Features[0]; x.Buckets != AutoBuckets || x.Values != nil || f.IDs() != AutoBuckets+1 {
		t.Errorf("got %+v", x)
	}
	if r := apply(t, f, fields, b); r.IDs[0] == r.IDs[1] {
		t.Errorf("ids %v", r.IDs)
	}
}

// Applying allocates nothing once warm.
func TestApplyAllocatesNothing(t *testing.T) {
	fields := fieldsOf("y:text x:number n:integer c:text l:texts e:entries g:text")
	b := block(t, fields, "p,1,2,a,u v,1:2,g", "q,?,3,b,,5:1 6:1,h", "p,3,?,?,u,,g")
	s := Spec{Label: Label{Column: "y", Positive: []string{"p"}}, Task: Binary}
	s.Features = []Feature{
		{Kind: Number, Column: "x", Normalize: "standard"},
		{Kind: Number, Column: "n", Quantiles: 2},
		{Kind: Category, Column: "c"},
		{Kind: Category, Column: "l", UnitNorm: true},
		{Kind: Category, Column: "e"},
		{Kind: Cross, Columns: []string{"c", "n"}, Buckets: 100},
	}
	f := fit(t, s, fields, b)
	a, err := f.Bind(fields, Options{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	var r Rows
	a.Apply(b, &r)
	if n := testing.AllocsPerRun(20, func() { a.Apply(b, &r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
