package data

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTextRows: windows, the bytes that follow, and the numbers of both.
func TestTextRows(t *testing.T) {
	path := tempFile(t, gzipped(t, []byte("abcabdcab"))) // 0 1 2 0 1 3 2 0 1
	for name, c := range map[string]struct {
		spec   Spec
		tokens [][]int64 // of every row; its label is one byte further
		next   []float32 // the last label of every row
	}{
		"side by side": {Spec{Context: 3}, [][]int64{{0, 1, 2}, {0, 1, 3}}, []float32{0, 2}},
		"overlapping":  {Spec{Context: 3, Stride: 2}, [][]int64{{0, 1, 2}, {2, 0, 1}, {1, 3, 2}}, []float32{0, 3, 0}},
		"one a byte":   {Spec{Context: 7, Stride: 1}, [][]int64{{0, 1, 2, 0, 1, 3, 2}, {1, 2, 0, 1, 3, 2, 0}}, []float32{0, 1}},
		"limit":        {Spec{Context: 2, Limit: 2}, [][]int64{{0, 1}, {2, 0}}, []float32{2, 1}},
		"begin":        {Spec{Context: 2, To: .6}, [][]int64{{0, 1}, {2, 0}}, []float32{2, 1}}, // 5 bytes
		"end":          {Spec{Context: 2, From: .6}, [][]int64{{3, 2}}, []float32{0}},          // 4 bytes
		"all":          {Spec{Context: 8, From: 0, To: 1}, [][]int64{{0, 1, 2, 0, 1, 3, 2, 0}}, []float32{1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Format, c.spec.Path = "text", path
			src := mustOpen(t, c.spec)
			context := c.spec.Context
			specs := []ColumnSpec{{Name: "label", Kind: DenseColumn, Dim: context}, {Name: "tokens", Kind: RaggedColumn, Dim: 4, PerRow: context}}
			if diff := cmp.Diff(specs, src.Columns()); diff != "" {
				t.Error(diff)
			}
			var b Batch
			if err := src.Read(rowRange(0, src.Rows()), &b); err != nil {
				t.Fatal(err)
			}
			label, tokens := b.Columns[0], b.Columns[1]
			var got [][]int64
			var next []float32
			for r := range b.Rows {
				row := tokens.IDs[tokens.Offsets[r]:tokens.Offsets[r+1]]
				got = append(got, row)
				y := label.Values[r*context : (r+1)*context]
				for i := range context - 1 {
					if y[i] != float32(row[i+1]) {
						t.Errorf("row %d: after token %d stands %d, its label is %v", r, i, row[i+1], y[i])
					}
				}
				next = append(next, y[context-1])
			}
			if diff := cmp.Diff(c.tokens, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.next, next); diff != "" {
				t.Error(diff)
			}
			for _, w := range tokens.Values {
				if w != 1 {
					t.Errorf("weight %v", w)
				}
			}
		})
	}
}

// A test file is numbered as its training file; what that does not have is an
// error with its place.
func TestTextVocabulary(t *testing.T) {
	vocabulary := tempFile(t, []byte("zyxab\n"))
	src := mustOpen(t, Spec{Format: "text", Path: tempFile(t, []byte("baz")), Vocabulary: vocabulary, Context: 2})
	var b Batch
	if err := src.Read([]int{0}, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{2, 1}, b.Columns[1].IDs); diff != "" {
		t.Error(diff)
	}
	if got := src.Columns()[1].Dim; got != 6 {
		t.Errorf("%d tokens", got)
	}
	path := tempFile(t, []byte("ab\nab\naq\n"))
	_, err := Open(t.Context(), Spec{Format: "text", Path: path, Vocabulary: vocabulary, Context: 2})
	row, ok := errors.AsType[*RowError](err)
	if !ok || row.Line != 3 || !strings.Contains(err.Error(), `'q'`) {
		t.Errorf("got %v", err)
	}
}

func TestTextErrors(t *testing.T) {
	path := tempFile(t, []byte("abc"))
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"short":       {Spec{Path: path, Context: 3}, "3 bytes are fewer"},
		"short part":  {Spec{Path: path, Context: 2, To: .5}, "2 bytes are fewer"},
		"empty":       {Spec{Path: tempFile(t, nil), Context: 3}, "empty"},
		"no context":  {Spec{Path: path}, "needs Context"},
		"negative":    {Spec{Path: path, Context: 1, Stride: -1}, "Stride"},
		"range":       {Spec{Path: path, Context: 1, From: .5, To: .5}, "From 0.5 and To 0.5"},
		"from":        {Spec{Path: path, Context: 1, From: 1}, "From 1"},
		"to":          {Spec{Path: path, Context: 1, To: 1.5}, "To 1.5"},
		"no file":     {Spec{Path: path + "x", Context: 1}, "no such file"},
		"vocabulary":  {Spec{Path: path, Vocabulary: path + "x", Context: 1}, "no such file"},
		"other field": {Spec{Path: path, Context: 1, Buckets: 5}, "Buckets"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Format = "text"
			if _, err := Open(t.Context(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Open(t.Context(), Spec{Format: "libsvm", Path: path, Context: 5}); err == nil || !strings.Contains(err.Error(), "Context") {
		t.Errorf("a context of libsvm: %v", err)
	}
}

// TestTextReal counts what Python counts in a real text.
func TestTextReal(t *testing.T) {
	path := realData(t, "text/tinyshakespeare.txt")
	train := mustOpen(t, Spec{Format: "text", Path: path, Context: 64, To: .9})
	test := mustOpen(t, Spec{Format: "text", Path: path, Context: 64, From: .9})
	if a, b := train.Rows(), test.Rows(); a != 15685 || b != 1742 {
		t.Errorf("%d rows to train on and %d to test on, want 15685 and 1742", a, b)
	}
	if a, b := train.Columns()[1].Dim, test.Columns()[1].Dim; a != 65 || b != 65 {
		t.Errorf("%d and %d tokens, want 65", a, b)
	}
	other := mustOpen(t, Spec{Format: "text", Path: realData(t, "text/republic.txt"), Context: 64})
	if a, b := other.Rows(), other.Columns()[1].Dim; a != 18974 || b != 85 {
		t.Errorf("%d rows of %d tokens, want 18974 of 85", a, b)
	}
}
