package feature

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

// everything is a pipeline with every kind of feature.
func everything() (Spec, []table.Field) {
	s := Spec{Label: Label{Column: "y", Positive: []string{"p"}}, Task: Binary, Weight: "w"}
	s.Features = []Feature{
		{Kind: Number, Column: "x", Normalize: "standard", Indicator: true},
		{Name: "x2", Kind: Number, Column: "x", Quantiles: 4, Log: "signed"},
		{Kind: Category, Column: "c", MinCount: 2},
		{Kind: Category, Column: "l", UnitNorm: true},
		{Kind: Category, Column: "e"},
		{Name: "eh", Kind: Category, Column: "e", Buckets: 7},
		{Kind: Cross, Columns: []string{"c", "x2"}, Buckets: 100},
	}
	return s, fieldsOf("w:number y:text x:number c:text l:texts e:entries")
}

// drawRows draws rows of everything's fields, bad ones among them.
func drawRows(t *rapid.T, n int) []string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	rows := make([]string, n)
	for i := range rows {
		rows[i] = strings.Join([]string{
			pick("w", "1", "2", "-1"), pick("y", "p", "n", "m", "?"), pick("x", "1", "2.5", "-7", "1e9", "?", "Inf"),
			pick("c", "a", "b", "c", "d", "?", ""), pick("l", "u", "u v", "", "w u u", "?"), pick("e", "1:2", "", "9:1 3:-4", "?"),
		}, ",")
	}
	return rows
}

// cutBlocks makes blocks of consecutive rows, with lines as in one file.
func cutBlocks(t *rapid.T, fields []table.Field, rows []string) []*table.Block {
	var blocks []*table.Block
	for at := 0; at < len(rows); {
		n := rapid.IntRange(1, len(rows)-at).Draw(t, "n")
		b := block(t, fields, rows[at:at+n]...)
		b.First = at + 1
		blocks = append(blocks, b)
		at += n
	}
	return blocks
}

// What is learned does not depend on how rows are cut into blocks, and parts that
// are merged learn the same, but for the last bits of means. A document makes the
// features that the pipeline makes which it was written from.
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, fields := everything()
		rows := append(drawRows(t, rapid.IntRange(0, 12).Draw(t, "rows")), "1,p,3,a,u,1:1", "1,n,4,a,u,2:2")
		whole := block(t, fields, rows...)
		f := fit(t, s, fields, whole)
		cut := cutBlocks(t, fields, rows)
		if diff := cmp.Diff(mustEncode(t, f), mustEncode(t, fit(t, s, fields, cut...))); diff != "" {
			t.Fatalf("blocks count (-whole +cut):\n%s", diff)
		}
		merged, err := NewFitter(s, fields)
		for _, b := range cut {
			one, err := NewFitter(s, fields)
			if err == nil {
				err = one.Add(b)
			}
			if err == nil {
				err = merged.Merge(one)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := merged.Fitted()
		if err != nil {
			t.Fatal(err)
		}
		near(t, f, m)
		again, err := Decode([]byte(mustEncode(t, f)))
		if err != nil {
			t.Fatal(err)
		}
		a, b := apply(t, f, fields, whole), apply(t, again, fields, whole)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("features (-fitted +read):\n%s", diff)
		}
		checkRows(t, f, a)
	})
}

// near compares two pipelines, moments to 1e-12 of their size.
func near(t *rapid.T, a, b *Fitted) {
	for i := range a.Features {
		for j, m := range a.Features[i].Moments {
			n := &b.Features[i].Moments[j]
			size := 1e-12 * max(math.Abs(m.Min), math.Abs(m.Max))
			if math.Abs(m.Mean-n.Mean) > size || math.Abs(m.Deviation-n.Deviation) > size {
				t.Fatalf("moments are %+v, merged %+v", m, n)
			}
			n.Mean, n.Deviation = m.Mean, m.Deviation
		}
	}
	if diff := cmp.Diff(mustEncode(t, a), mustEncode(t, b)); diff != "" {
		t.Fatalf("merging counts (-whole +merged):\n%s", diff)
	}
}

// checkRows holds the promises of Rows.
func checkRows(t *rapid.T, f *Fitted, r *Rows) {
	if len(r.Labels) != r.N || len(r.Weights) != r.N || len(r.Dense) != r.N*f.Dense() || len(r.Offsets) != r.N+1 || len(r.Values) != len(r.IDs) {
		t.Fatalf("lengths of %+v", r)
	}
	for i, id := range r.IDs {
		if id < 0 || int(id) >= f.IDs() {
			t.Fatalf("id %d is %d of %d", i, id, f.IDs())
		}
	}
	for row := range r.N {
		if r.Offsets[row] > r.Offsets[row+1] {
			t.Fatalf("offsets %v", r.Offsets)
		}
	}
}

// Moments are those of the two passes that define them, in one piece and merged.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all, left, right moments
	var values []float64
	sum := 0.0
	for i := range 1000 {
		v := 1e6 + r.NormFloat64()
		values, sum = append(values, v), sum+v
		all.add(v)
		if i < 300 {
			left.add(v)
		} else {
			right.add(v)
		}
	}
	left.merge(right)
	left.merge(moments{})
	mean, squares := sum/1000, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	want := math.Sqrt(squares / 1000)
	for _, m := range []moments{all, left} {
		if math.Abs(m.mean-mean) > 1e-8 || math.Abs(m.deviation()-want) > 1e-8 || m.n != 1000 {
			t.Errorf("mean %v, deviation %v of %d; want %v, %v", m.mean, m.deviation(), m.n, mean, want)
		}
	}
}

// Quantiles are exact while rows are few, near beyond, and the same for parts.
func TestQuantiles(t *testing.T) {
	s := rowSample{size: 1000}
	for i := range 1000 {
		s.add(1, i, float64(i))
	}
	if diff := cmp.Diff([]float64{250, 500, 750}, s.boundaries(4)); diff != "" {
		t.Errorf("boundaries (-want +got):\n%s", diff)
	}
	whole, a, b := rowSample{size: 1000}, rowSample{size: 1000}, rowSample{size: 1000}
	const n = 50_000
	for i := range n {
		v := float64(i)
		whole.add(1, i, v)
		if i%3 == 0 {
			a.add(1, i, v)
		} else {
			b.add(1, i, v)
		}
	}
	a.merge(&b)
	got := whole.boundaries(4)
	if diff := cmp.Diff(got, a.boundaries(4)); diff != "" {
		t.Errorf("boundaries (-whole +merged):\n%s", diff)
	}
	if len(whole.drawn) != 1000 {
		t.Errorf("%d rows are kept", len(whole.drawn))
	}
	for i, v := range got { // 5 standard deviations of a rank among 1000
		if want := float64(i+1) / 4 * n; math.Abs(v-want) > 5*.0159*n {
			t.Errorf("boundary %d is %v, want about %v", i, v, want)
		}
	}
	same := rowSample{size: 10}
	for i := range 100 {
		same.add(1, i, 7)
	}
	if b := same.boundaries(4); b != nil {
		t.Errorf("rows that are all alike have the boundaries %v", b)
	}
}

// Which rows are sampled depends on their lines, neither on blocks nor on the
// directory of the file.
func TestSampleOfFile(t *testing.T) {
	fields := fieldsOf("y:number x:number")
	edges := func(dir string, cut int) string {
		f, err := NewFitter(yes(Feature{Kind: Number, Column: "x", Quantiles: 5}), fields)
		if err != nil {
			t.Fatal(err)
		}
		f.features[0].sample.size = 8
		rows := make([]string, 100)
		for i := range rows {
			rows[i] = fmt.Sprintf("1,%d", i)
		}
		for at := 0; at < len(rows); at += cut {
			b := block(t, fields, rows[at:at+cut]...)
			b.File, b.First = dir+"/rows.csv", at+1
			if err := f.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		fitted, err := f.Fitted()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(fitted.Features[0].Edges)
	}
	if a, b := edges("a", 100), edges("/b/c", 4); a != b || strings.Count(a, " ") != 3 {
		t.Errorf("edges are %s in one place, %s in another", a, b)
	}
}

// A document that is not one, or contradicts itself, is refused.
func TestDecodeIsStrict(t *testing.T) {
	s, fields := everything()
	f := fit(t, s, fields, block(t, fields, "1,p,3,a,u v,1:1", "1,n,4,a,u,2:2", "1,n,9,b,u,2:2"))
	text := mustEncode(t, f)
	for _, c := range []struct{ old, now, want string }{
		{"{", "", "not a document"},
		{`"version": 1`, `"version": 2`, "has version 2, this program reads 1"},
		{`"rows"`, `"rowes"`, `unknown field "rowes"`},
		{"\n}\n", "\n}\n{}", "not a document"},
		{`"a"`, `"é", "a"`, "does not come after"},
		{"[\n    1,\n    2\n", "[\n    2,\n    1\n", "key 1 does not come after 2"},
		{`"name": "x",`, `"name": "xx",`, `the file has no column "x"`},
		{`"moments": [`, `"moments": [{"count":0,"mean":0,"deviation":0,"min":0,"max":0},`, "does not fit the column"},
		{`"edges": [`, `"edges": [9,`, "has the edges"},
		{`"label": 1`, `"label": 3`, "counts as 3"},
		{`"buckets": 7`, `"buckets": 0`, ""},
		{`"kind": "entries"`, `"kind": "text"`, "does not fit the column"},
	} {
		bent := strings.Replace(text, c.old, c.now, 1)
		if bent == text {
			t.Fatalf("%q is not in the document:\n%s", c.old, text)
		}
		_, err := Decode([]byte(bent))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: got %v, want %q in it", c.now, c.old, err, c.want)
		}
	}
	a, err := f.Digest()
	b, err2 := fit(t, s, fields, block(t, fields, "1,p,3,a,u v,1:1", "1,n,4,a,u,2:2", "1,n,9,b,u,2:3")).Digest()
	if err != nil || err2 != nil || a != b {
		t.Errorf("digests %s (%v) and %s (%v) of equal features", a, err, b, err2)
	}
}

// A pipeline of which nothing is learned needs no rows.
func TestNeedsRows(t *testing.T) {
	fields := fieldsOf("y:number x:number c:text l:text")
	for i, c := range []struct {
		s    Spec
		want bool
	}{
		{yes(Feature{Kind: Number, Column: "x", Fill: "0"}, Feature{Kind: Category, Column: "c", Buckets: 5}), false},
		{yes(Feature{Kind: Number, Column: "x"}), true},
		{yes(Feature{Kind: Number, Column: "x", Boundaries: []float64{1}}), false},
		{yes(Feature{Kind: Number, Column: "x", Quantiles: 2}), true},
		{yes(Feature{Kind: Category, Column: "c"}), true},
		{Spec{Label: Label{Column: "l", Positive: []string{"p"}}, Task: Binary, Features: []Feature{{Kind: Category, Column: "c", Buckets: 5}}}, true},
	} {
		f, err := NewFitter(c.s, fields)
		if err != nil {
			t.Fatal(err)
		}
		if f.NeedsRows() != c.want {
			t.Errorf("pipeline %d: needs rows is %v", i, !c.want)
		}
		if _, err := f.Fitted(); (err != nil) != c.want {
			t.Errorf("pipeline %d without rows: %v", i, err)
		}
	}
}

// No document makes Decode or what it returns panic.
func FuzzDecode(f *testing.F) {
	s, fields := everything()
	f.Add([]byte(mustEncode(f, fit(f, s, fields, block(f, fields, "1,p,3,a,u v,1:1", "1,n,4,a,u,2:2")))))
	f.Add([]byte(mustEncode(f, fit(f, yes(), fieldsOf("y:number v:numbers:2"), block(f, fieldsOf("y:number v:numbers:2"), "1,1 2")))))
	b := block(f, fields, "1,p,3,a,u v,1:1", "1,n,?,?,?,?", "1,n,-1e30,zz,u u u,7:8")
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(text)
		if err != nil {
			return
		}
		once := mustEncode(t, p)
		q, err := Decode([]byte(once))
		if err != nil || mustEncode(t, q) != once {
			t.Fatalf("read again: %v", err)
		}
		if a, err := p.Bind(fields, Options{}); err == nil {
			a.Apply(b, &Rows{})
		}
	})
}

func BenchmarkApply(b *testing.B) {
	fields := fieldsOf("y:number x:number c:text e:entries")
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = fmt.Sprintf("1,%d,value%d,%d:1 7:2", i, i%100, i)
	}
	in := block(b, fields, rows...)
	for name, f := range map[string]Feature{
		"number": {Kind: Number, Column: "x", Normalize: "standard"}, "exact": {Kind: Category, Column: "c"},
		"hashed": {Kind: Category, Column: "c", Buckets: 1 << 20}, "entries": {Kind: Category, Column: "e", Buckets: 1 << 20},
	} {
		b.Run(name, func(b *testing.B) {
			a, err := fit(b, yes(f), fields, in).Bind(fields, Options{})
			if err != nil {
				b.Fatal(err)
			}
			var r Rows
			for b.Loop() {
				a.Apply(in, &r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
		})
	}
}
