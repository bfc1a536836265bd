package draft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/table"
)

// labelNames are what a column is called that is to be predicted.
const labelNames = "label target y class click clicked outcome species income survived default churn quality"

// rowsLooked is how many rows decide what a column is.
const rowsLooked = 20_000

// valuesLooked is how many different values of the label are told apart.
const valuesLooked = 1000

// Spec is how a file of named columns is opened, by a guess.
func (d *Draft) spec(path string) format.Spec {
	return format.Spec{Format: d.Guess.Format, Paths: []string{path}, Header: d.Guess.Header, Delimiter: d.Guess.Delimiter}
}

// table: columns with names. One is the label, all others become features.
func (w *writer) table(ctx context.Context) (err error) {
	in, err := format.Open(ctx, w.d.spec(w.path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	fields := in.Fields()
	at, why := labelOf(fields)
	if at < 0 && w.d.Guess.Format == "npy" {
		return fmt.Errorf("%s holds one array and no labels: put it into an .npz with an array of labels, as numpy.savez(file, x=x, y=y) does", w.path)
	}
	if at < 0 {
		return fmt.Errorf("%s: no column can be a label: its columns are %s", w.path, columnsText(fields))
	}
	v, err := valuesOf(in, at)
	if err != nil {
		return err
	}
	c, label := v.judge(fields[at].Name)
	w.model, w.rule, w.batch, w.epochs = c.fields(), adam, 256, 5
	w.columns = append(w.columns, "label: "+label)
	w.note("Guess: column %s is the label, because %s.", fields[at].Name, why)
	w.note("Guess: the model is %s, because labels in the first rows %s.", c.kind, c.explanation)
	w.besides(fields)
	if w.d.Guess.Format == "csv" {
		if w.d.Guess.Header {
			w.source += ", header: true"
		}
		w.source += ", delimiter: " + quote(w.d.Guess.Delimiter)
	}
	w.columns = append(w.columns, "# Without features, numbers are normalised and all else is a category. docs/job.md has the others:",
		"# features: [{kind: number, column: a, log: signed}, {kind: category, column: b, buckets: 1000}]")
	if w.testFile(); w.eval != "" && len(v.texts) > 0 {
		return w.suffix(ctx, fields[at].Name, v)
	}
	return nil
}

// suffix looks for a mark that the test file has after its labels and the training
// file has not, as the halves of Adult do.
func (w *writer) suffix(ctx context.Context, label string, v *values) (err error) {
	in, err := format.Open(ctx, w.d.spec(tests(w.path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	at := slices.IndexFunc(in.Fields(), func(f table.Field) bool { return f.Name == label && f.Kind == table.Text })
	if at < 0 {
		return nil
	}
	test, err := valuesOf(in, at)
	if err != nil {
		return err
	}
	marked := len(test.texts) > 0
	for text := range test.texts {
		marked = marked && v.texts[text] == 0 && v.texts[strings.TrimSuffix(text, ".")] > 0
	}
	if marked {
		w.eval += fmt.Sprintf(", suffix: {%s: '.'}", quote(label))
		w.note("The labels to test on end in a dot, which is cut off.")
	}
	return nil
}

// besides declares the columns that are no features.
func (w *writer) besides(fields []table.Field) {
	ignore := map[string]string{"vw": "tag", "libffm": "field"}[w.d.Guess.Format]
	for _, f := range fields {
		switch {
		case w.d.Guess.Format == "vw" && f.Name == "weight":
			w.columns = append(w.columns, "weight: weight")
		case f.Name == ignore:
			w.columns = append(w.columns, fmt.Sprintf("ignore: [%s]", quote(f.Name)))
		}
	}
}

// labelOf chooses the column to predict: by its name, or else the last one with a
// value a row.
func labelOf(fields []table.Field) (at int, why string) {
	single := func(f table.Field) bool {
		return f.Kind == table.Number || f.Kind == table.Integer || f.Kind == table.Text
	}
	for word := range strings.FieldsSeq(labelNames) {
		for i, f := range fields {
			if single(f) && oneOf(f.Name, word) {
				return i, "of its name"
			}
		}
	}
	for i, f := range slices.Backward(fields) {
		if single(f) {
			return i, "it is the last"
		}
	}
	return -1, ""
}

func columnsText(fields []table.Field) string {
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = fmt.Sprintf("%s (%s)", f.Name, f.Kind)
	}
	return strings.Join(words, ", ")
}

// values are those of a label and how often they stand there.
type values struct {
	numbers map[float64]int
	texts   map[string]int
	many    bool
}

// valuesOf reads the first rows of a column. Malformed rows do not count.
func valuesOf(in table.Reader, at int) (*values, error) {
	v := &values{numbers: map[float64]int{}, texts: map[string]int{}}
	var b table.Block
	for rows := 0; rows < rowsLooked && !v.many; {
		b.Rows = 0
		err := in.Read(&b, 1000)
		if b.Rows > 0 {
			v.add(&b.Columns[at], in.Fields()[at].Kind, b.Rows)
		}
		rows += b.Rows
		if _, bad := errors.AsType[*table.RowError](err); bad {
			rows++
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *values) add(c *table.Column, kind table.Kind, n int) {
	for i := range n {
		if c.Missing != nil && c.Missing[i] {
			continue
		}
		switch kind {
		case table.Number:
			v.numbers[c.Numbers[i]]++
		case table.Integer:
			v.numbers[float64(c.Integers[i])]++
		case table.Text, table.Texts, table.Numbers, table.Entries: // a label is no list
			lo := 0
			if i > 0 {
				lo = c.Ends[i-1]
			}
			v.texts[string(c.Bytes[lo:c.Ends[i]])]++
		}
	}
	v.many = len(v.numbers) > valuesLooked || len(v.texts) > valuesLooked
}

// judge says which model the values ask for, and how the label is declared.
func (v *values) judge(name string) (c classes, label string) {
	label = fmt.Sprintf("{column: %s}", quote(name))
	if len(v.texts) == 0 {
		c = classesOf(slices.Sorted(maps.Keys(v.numbers)))
		switch {
		case c.kind == "softmax" && c.n != len(v.numbers) && c.base == 0:
			c.explanation += ", not all of which are there"
		case c.kind == "linear" || c.base > 0:
			c = v.wholes(c)
		}
		if c.kind == "logistic" && c.base == 1 {
			c.base, label = 0, fmt.Sprintf("{column: %s, positive: ['2']}", quote(name))
		}
		return c, label
	}
	words := slices.SortedFunc(maps.Keys(v.texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(v.texts[a], v.texts[b]), strings.Compare(a, b))
	})
	if len(words) == 2 { // the rarer is what one looks for
		return classes{kind: "logistic", explanation: fmt.Sprintf("are %q and %q", words[1], words[0])},
			fmt.Sprintf("{column: %s, positive: [%s]}", quote(name), quote(words[0]))
	}
	return classes{kind: "softmax", n: max(len(words), 2), explanation: fmt.Sprintf("are %d texts", len(words))}, label
}

// fewWholes is how many different whole numbers are classes, and not values.
const fewWholes = 12

// wholes makes classes of a few whole numbers that do not begin at 0.
func (v *values) wholes(c classes) classes {
	if c.base > 0 && c.kind == "logistic" {
		return c
	}
	if len(v.numbers) > fewWholes || len(v.numbers) < 2 {
		return classes{kind: "linear", explanation: c.explanation}
	}
	for n := range v.numbers {
		if n != float64(int(n)) {
			return c
		}
	}
	return classes{kind: "softmax", n: len(v.numbers), explanation: "are " + strconv.Itoa(len(v.numbers)) + " whole numbers"}
}
