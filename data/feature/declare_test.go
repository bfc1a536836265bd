package feature

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What does not fit is refused, with the field at fault and what to change.
func TestDeclarations(t *testing.T) {
	fields := fieldsOf("y:number x:number name:text l:texts v:numbers z:entries")
	num := func(change func(f *Feature)) Spec {
		f := Feature{Kind: Number, Column: "x"}
		change(&f)
		return yes(f)
	}
	for _, c := range []struct {
		want string
		s    Spec
	}{
		{"label.column: is missing", Spec{Task: Binary}},
		{`label.column: the file has no column "yy": did you mean "y"?`, Spec{Task: Binary, Label: Label{Column: "yy"}}},
		{"label.positive: is missing: the column \"name\" is text", Spec{Task: Binary, Label: Label{Column: "name"}}},
		{"label.positive: is for two classes", Spec{Task: Regression, Label: Label{Column: "y", Positive: []string{"1"}}}},
		{"label.positive: is missing: say which values are 1", Spec{Task: Binary, Label: Label{Column: "y", Negative: []string{"1"}}}},
		{"label.classes: has 3 values, the model 2", Spec{Task: Multiclass, Classes: 2, Label: Label{Column: "y", Classes: []string{"1", "2", "3"}}}},
		{`label: the value "a" is there twice`, Spec{Task: Binary, Label: Label{Column: "name", Positive: []string{"a"}, Negative: []string{"a"}}}},
		{`label: "a" is no number`, Spec{Task: Binary, Label: Label{Column: "y", Positive: []string{"a"}}}},
		{`label.column: "name" is text, the model predicts a number`, Spec{Task: Regression, Label: Label{Column: "name"}}},
		{`label.column: "l" is texts`, Spec{Task: Binary, Label: Label{Column: "l"}}},
		{`weight: "name" is text`, Spec{Task: Binary, Label: Label{Column: "y"}, Weight: "name"}},
		{"features[0].kind: is missing", yes(Feature{Column: "x"})},
		{`features[0].kind: "numbr" is not known: did you mean "number"?`, yes(Feature{Kind: "numbr", Column: "x"})},
		{"features[0].column: is missing", yes(Feature{Kind: Number})},
		{`features[1].name: "x" is that of features[0]`, yes(Feature{Kind: Number, Column: "x"}, Feature{Kind: Number, Column: "x", Log: "signed"})},
		{`features[0].column: "name" is text, not number`, num(func(f *Feature) { f.Column = "name" })},
		{`features[0].column: "v" has lists of different lengths`, num(func(f *Feature) { f.Column = "v" })},
		{`features[0].column: "v" is a vector of numbers`, yes(Feature{Kind: Category, Column: "v"})},
		{"features[0].clip: must be [lowest, highest], is [2 1]", num(func(f *Feature) { f.Clip = []float64{2, 1} })},
		{"features[0].boundaries: must be finite and ascending", num(func(f *Feature) { f.Boundaries = []float64{1, 1} })},
		{"features[0].quantiles: must be 2 to", num(func(f *Feature) { f.Quantiles = 1 })},
		{"features[0].quantiles: are boundaries that the rows decide", num(func(f *Feature) { f.Boundaries, f.Quantiles = []float64{1}, 4 })},
		{"features[0].normalize: changes no id", num(func(f *Feature) { f.Normalize, f.Quantiles = "minmax", 4 })},
		{"features[0].fill: is not needed", num(func(f *Feature) { f.Fill, f.Quantiles = "mean", 4 })},
		{"features[0].indicator: is not needed", num(func(f *Feature) { f.Indicator, f.Quantiles = true, 4 })},
		{`features[0].fill: must be mean or a finite number, is "median"`, num(func(f *Feature) { f.Fill = "median" })},
		{`features[0].fill: must be mean or a finite number, is "NaN"`, num(func(f *Feature) { f.Fill = "NaN" })},
		{`features[0].log: "sined" is not known: did you mean "signed"?`, num(func(f *Feature) { f.Log = "sined" })},
		{`features[0].normalize: "std" is not known`, num(func(f *Feature) { f.Normalize = "std" })},
		{"features[0].min_count: has no meaning for kind number", num(func(f *Feature) { f.MinCount = 2 })},
		{"features[0].log: has no meaning for kind category", yes(Feature{Kind: Category, Column: "name", Log: "signed"})},
		{"features[0].min_count: counts the values of an exact vocabulary", yes(Feature{Kind: Category, Column: "name", MinCount: 2, Buckets: 5})},
		{"features[0].buckets: must be 1 to", yes(Feature{Kind: Category, Column: "name", Buckets: -5})},
		{"features[0].unit_norm: is for lists", yes(Feature{Kind: Category, Column: "name", UnitNorm: true})},
		{"features[0].columns: must name at least two", yes(Feature{Kind: Cross, Columns: []string{"x"}, Buckets: 5})},
		{"features[0].buckets: is missing", yes(Feature{Kind: Cross, Columns: []string{"x", "name"}})},
		{`features[0].columns: "x" is there twice`, yes(Feature{Kind: Cross, Columns: []string{"x", "x"}, Buckets: 5})},
		{`features[0].columns: "l" has several values a row`, yes(Feature{Kind: Cross, Columns: []string{"x", "l"}, Buckets: 5})},
		{`features[0].columns: the file has no column "nam": did you mean "name"?`, yes(Feature{Kind: Cross, Columns: []string{"x", "nam"}, Buckets: 5})},
	} {
		_, err := NewFitter(c.s, fields)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q in it", err, c.want)
		}
		if _, ok := errors.AsType[*DeclError](err); err != nil && !ok {
			t.Errorf("%v is no DeclError", err)
		}
	}
	if _, err := NewFitter(yes(), fieldsOf("y:number")); err == nil || !strings.Contains(err.Error(), "nothing to predict from") {
		t.Errorf("got %v", err)
	}
	big := yes(Feature{Kind: Category, Column: "name", Buckets: MaxIDs - 1}, Feature{Kind: Category, Column: "l", Buckets: 5})
	f, err := NewFitter(big, fields)
	if err == nil {
		_, err = f.Fitted()
	}
	if err == nil || !strings.Contains(err.Error(), "features[1]: with it there are more than 2147483647 ids") {
		t.Errorf("got %v", err)
	}
}

// A file whose columns are not those of the training rows is refused, and one that
// has them in another order is not.
func TestBind(t *testing.T) {
	fields := fieldsOf("y:number c:text x:number v:numbers:2")
	b := block(t, fields, "1,a,3,1 2", "0,b,5,3 4")
	f := fit(t, yes(), fields, b)
	for list, want := range map[string]string{
		"y:number c:text x:number":                "the file has no column \"v\"",
		"c:text x:number v:numbers:2":             "label.column: the file has no column \"y\"",
		"y:number c:integer x:number v:numbers:2": "column \"c\" is integer here and text in the training rows",
		"y:number c:text x:number v:numbers:3":    "column \"v\" is numbers[3] here and numbers[2] in the training rows",
	} {
		if _, err := f.Bind(fieldsOf(list), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", list, err, want)
		}
	}
	if _, err := f.Bind(fields, Options{Group: "v"}); err == nil || !strings.Contains(err.Error(), `group: "v" has several values`) {
		t.Errorf("got %v", err)
	}
	other := fieldsOf("v:numbers:2 more:text x:integer c:text")
	a, err := f.Bind(other, Options{Unlabelled: true})
	if err != nil {
		t.Fatal(err)
	}
	var r Rows
	a.Apply(block(t, other, "3 4,?,5,b"), &r)
	same := apply(t, f, fields, b)
	if diff := cmp.Diff(same.Dense[f.Dense():], r.Dense); diff != "" || r.IDs[0] != same.IDs[1] || !math.IsNaN(float64(r.Labels[0])) {
		t.Errorf("dense (-want +got):\n%s ids %v, want %v", diff, r.IDs, same.IDs[1:])
	}
}
