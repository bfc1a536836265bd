package data

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/split"
)

// A file of named columns is read through its features: as many rows as the spec
// says, with malformed ones counted up to the limit.
func TestTable(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		y := fmt.Sprint(i % 2)
		if i%10 == 7 {
			y = "5"
		}
		fmt.Fprintf(&text, "%s,%d,v%d\n", y, i, i%4)
	}
	spec := Spec{Format: "csv", Path: tempFile(t, []byte(text.String())), Table: format.Spec{Names: []string{"y", "x", "c"}}, MaxBadRows: 10}
	pipeline := feature.Spec{Label: feature.Label{Column: "y"}, Task: feature.Binary}
	for limit, want := range map[int]int{0: 90, 40: 40} {
		spec := spec
		spec.Limit = limit
		fitted, err := Fit(t.Context(), spec, pipeline)
		if err != nil {
			t.Fatal(err)
		}
		spec.Fitted = fitted
		src, err := Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := Columns(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(columns, src.Columns()); diff != "" || len(columns) != 3 {
			t.Errorf("columns (-before +after reading):\n%s", diff)
		}
		if src.Rows() != want || int(fitted.Rows) != want || src.(Reporter).BadRows() != map[int]int{0: 10, 40: 4}[limit] {
			t.Errorf("%d rows, %d learned from, %d bad", src.Rows(), fitted.Rows, src.(Reporter).BadRows())
		}
		spec.MaxBadRows = 3
		if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "more than 3 bad rows") || !strings.Contains(err.Error(), `:38: column "y": label 5 is not`) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "needs Fitted") {
		t.Errorf("got %v", err)
	}
}

// Rows of libsvm are scaled to a norm of 1 where the spec says so.
func TestUnitNorm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("1 1:3 5:4\n0\n1 2:1 3:1 4:1 5:1\n0 7:-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Open(t.Context(), Spec{Format: "libsvm", Path: path, UnitNorm: true})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := src.Read([]int{0, 1, 2, 3}, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{.6, .8, .5, .5, .5, .5, -1}, b.Columns[1].Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// What is wrong with the columns or the split of a table is said with what there is.
func TestTableRefuses(t *testing.T) {
	const rows = "y,a,b,day\n1,1.7e308,u,1\n0,-1.7e308,v,2\n1,1.7e308,w,3\n"
	label := feature.Label{Column: "y"}
	for want, test := range map[string]struct {
		split    split.Rule
		features []feature.Feature
		group    string
	}{
		`features[0].column: the file has no column "q": did you mean "y"? There are y, a, b, day`:                                 {features: []feature.Feature{{Kind: feature.Number, Column: "q"}}},
		`group: the file has no column "grp": there are y, a, b, day`:                                                              {features: []feature.Feature{{Kind: feature.Category, Column: "b"}}, group: "grp"},
		`features[1].column: "y" is the label`:                                                                                     {features: []feature.Feature{{Kind: feature.Number, Column: "a"}, {Kind: feature.Number, Column: "y"}}},
		`features[0].columns: "y" is the label`:                                                                                    {features: []feature.Feature{{Kind: feature.Cross, Columns: []string{"b", "y"}, Buckets: 9}}},
		`f (3 rows read): feature: there are no rows to learn from, all were refused; the first: f:2: column "a": 1.7e+308 is not`: {},
		`f (3 rows read, split by time): feature: there are no rows to learn from`:                                                 {split: split.Rule{By: split.ByTime, Column: "day", Validation: []string{"0"}}},
		`none of the 3 rows of f is of the part that is meant`: {
			split: split.Rule{By: split.ByTime, Column: "day", Part: split.Test, Test: []string{"4"}}, features: []feature.Feature{{Kind: feature.Category, Column: "b", Buckets: 5}},
		},
	} {
		spec := Spec{Format: "csv", Path: tempFile(t, []byte(rows)), Table: format.Spec{Header: true}, Group: test.group}
		if test.split.By != "" {
			spec.Split = &test.split
		}
		var err error
		spec.Fitted, err = Fit(t.Context(), spec, feature.Spec{Label: label, Task: feature.Binary, Features: test.features})
		if err == nil {
			_, err = Open(t.Context(), spec)
		}
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), spec.Path, "f"), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
