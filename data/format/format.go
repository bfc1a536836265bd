// Package format reads the file formats of users into blocks of package table:
//
//	csv      comma separated values, or ; tab | : columns as the header names them
//	vw       Vowpal Wabbit text: label, weight, tag and the features
//	libffm   label field:feature:value ...
//	npy      a NumPy array: its rows
//	npz      several of them, one column each
//	parquet  flat and list columns
//
// Each format is one file of this package, and all have one shape: an open
// function makes a table.Reader of one file. [Open] strings the files of a data
// set together.
//
// Readers keep the promises of table.Reader: a malformed row is a
// *table.RowError that names file, line and column, after which reading goes
// on; what is wrong with the file as a whole, as an archive that was cut off,
// ends it. Memory is bounded by the rows asked for and by the limits that the
// formats state, whatever a file claims.
package format

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/nearest"
)

// Spec says which files to read and how. The zero value of every field but
// Format and Paths means what most files are.
type Spec struct {
	// Format is one of Formats.
	Format string
	// Paths are locations as file.Expand lists them.
	Paths []string
	// Select names the columns to read, in this order; nil: all. Those that are
	// left out are not looked at.
	Select []string
	// Columns declares kinds of columns by name. csv: number, integer or text;
	// those not declared are inferred from the first rows. In the other formats
	// the file says the kinds, and what is declared has to agree.
	Columns map[string]table.Kind
	// Missing are the words that stand for no value, after spaces around them
	// are cut off; nil: DefaultMissing. In binary formats NaN is missing if "NaN"
	// is one of them, and an error of the row otherwise.
	Missing []string
	// Suffix is cut off the end of the values of a column that have it: "." of
	// the labels in the test half of Adult.
	Suffix map[string]string

	// Header (csv) says that the first line of each file names the columns.
	Header bool
	// Names (csv) names the columns of files without a header, or in place of it.
	// With neither they are c1, c2, ...
	Names []string
	// Delimiter (csv) parts the fields: one character, or "tab"; "": found out
	// among , ; tab and | by the first lines.
	Delimiter string
	// NoQuotes (csv) makes quotes ordinary characters.
	NoQuotes bool
	// Encoding of text formats is "utf-8" (also ""), or "latin1" (ISO 8859-1).
	Encoding string

	// Namespaces (vw, libffm) gives each of these namespaces, or fields, a column
	// of its own; a row with another one is in error. nil: all features are in the
	// column "x".
	Namespaces []string
	// NumericIDs (vw) takes the names of features as their ids: whole numbers
	// below 2^64. Otherwise ids are hashes of namespace and name.
	NumericIDs bool
}

// DefaultMissing are the words that stand for no value unless Spec.Missing says
// others.
func DefaultMissing() []string { return []string{"", "?", "NA", "NaN", "null"} }

// opener makes a reader of one file. like holds the columns of the files before
// it; nil for the first one.
type opener func(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error)

// openers lists the formats.
func openers() map[string]opener {
	return map[string]opener{
		"csv":     openCSV,
		"libffm":  openLibffm,
		"npy":     openNpy,
		"npz":     openNpz,
		"parquet": openParquet,
		"vw":      openVW,
	}
}

// Formats lists the names of the formats.
func Formats() []string {
	var names []string
	for name := range openers() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Open reads the files of a spec one after the other, as one table. All have to
// have the columns of the first one, by name, kind and order. The context bounds
// all later reading. The caller closes the reader.
func Open(ctx context.Context, spec Spec) (table.Reader, error) {
	open, ok := openers()[spec.Format]
	if !ok {
		return nil, fmt.Errorf("format %q is not known%s", spec.Format, nearest.Hint(spec.Format, Formats()))
	}
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if spec.Missing == nil {
		spec.Missing = DefaultMissing()
	}
	first, err := open(ctx, &spec, spec.Paths[0], nil)
	if err != nil {
		return nil, err
	}
	c := &chain{reader: first, fields: first.Fields(), paths: spec.Paths[1:]}
	c.open = func(location string) (table.Reader, error) { return open(ctx, &spec, location, c.fields) }
	return c, nil
}

// validate refuses what no file could agree with.
func (s *Spec) validate() error {
	if len(s.Paths) == 0 {
		return errors.New("no file is named")
	}
	for name, kind := range s.Columns {
		kinds := []table.Kind{table.Number, table.Integer, table.Text, table.Numbers, table.Entries, table.Texts}
		if s.Format == "csv" {
			kinds = kinds[:3]
		}
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("column %q: kind %q is none of %s", name, kind, words(kinds))
		}
	}
	switch strings.ToLower(s.Encoding) {
	case "", "utf-8", "utf8", "latin1":
	default:
		return fmt.Errorf("encoding %q is not known%s", s.Encoding, nearest.Hint(s.Encoding, []string{"utf-8", "latin1"}))
	}
	for _, list := range [][]string{s.Select, s.Names, s.Namespaces} {
		if name, ok := twice(list); ok {
			return fmt.Errorf("%q is named twice", name)
		}
	}
	return nil
}

// twice returns a word that stands twice in a list.
func twice(list []string) (string, bool) {
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			return s, true
		}
		seen[s] = true
	}
	return "", false
}

func words[T ~string](list []T) string {
	var s []string
	for _, w := range list {
		s = append(s, string(w))
	}
	return strings.Join(s, ", ")
}

// chain reads files one after the other.
type chain struct {
	reader table.Reader
	fields []table.Field
	paths  []string // still to be read
	open   func(location string) (table.Reader, error)
}

// Fields implements table.Reader.
func (c *chain) Fields() []table.Field { return c.fields }

// Read implements table.Reader. A block is of one file.
func (c *chain) Read(b *table.Block, n int) error {
	for {
		if c.reader == nil {
			b.Reset(c.fields, "")
			b.Finish(c.fields)
			if len(c.paths) == 0 {
				return io.EOF
			}
			next, err := c.open(c.paths[0])
			if err != nil {
				return err
			}
			c.reader, c.paths = next, c.paths[1:]
		}
		err := c.reader.Read(b, n)
		if !errors.Is(err, io.EOF) {
			return err
		}
		err = c.reader.Close()
		c.reader = nil
		if err != nil {
			return err
		}
		if b.Rows > 0 {
			return nil
		}
	}
}

// Close implements table.Reader.
func (c *chain) Close() error {
	if c.reader == nil {
		return nil
	}
	err := c.reader.Close()
	c.reader, c.paths = nil, nil
	return err
}

// selected applies Select, Columns and like to the columns that a file has: it
// returns them in the order of Select, with the index of each in the file.
func selected(spec *Spec, location string, has []table.Field, like []table.Field) (fields []table.Field, index []int, err error) {
	names, at := make([]string, len(has)), make(map[string]int, len(has))
	for i, f := range has {
		names[i], at[f.Name] = f.Name, i
	}
	if name, ok := twice(names); ok {
		return nil, nil, fmt.Errorf("%s: two columns are named %q", location, name)
	}
	for name := range spec.Columns {
		if _, ok := at[name]; !ok {
			return nil, nil, fmt.Errorf("%s: there is no column %q%s", location, name, nearest.Hint(name, names))
		}
	}
	for name := range spec.Suffix {
		if _, ok := at[name]; !ok {
			return nil, nil, fmt.Errorf("%s: there is no column %q whose suffix to cut off%s", location, name, nearest.Hint(name, names))
		}
	}
	want := spec.Select
	if want == nil {
		want = names
	}
	for _, name := range want {
		i, ok := at[name]
		if !ok {
			return nil, nil, fmt.Errorf("%s: there is no column %q%s", location, name, nearest.Hint(name, names))
		}
		fields = append(fields, has[i])
		index = append(index, i)
	}
	if like != nil {
		err = sameFields(location, fields, like)
	}
	return fields, index, err
}

// sameFields demands of a later file what the first one has. Kinds that are still
// to be inferred are left open.
func sameFields(location string, got, like []table.Field) error {
	if len(got) != len(like) {
		return fmt.Errorf("%s: the file has %d columns, the files before it have %d", location, len(got), len(like))
	}
	for i, f := range got {
		if f.Name != like[i].Name {
			return fmt.Errorf("%s: column %d is %q, in the files before it %q", location, i+1, f.Name, like[i].Name)
		}
		if f.Kind != "" && (f.Kind != like[i].Kind || f.Width != like[i].Width) {
			return fmt.Errorf("%s: column %q is %s, in the files before it %s", location, f.Name, describe(f), describe(like[i]))
		}
	}
	return nil
}

func describe(f table.Field) string {
	if f.Width > 0 {
		return fmt.Sprintf("%s of width %d", f.Kind, f.Width)
	}
	return string(f.Kind)
}

// agree demands that the declared kinds are those of the file.
func agree(spec *Spec, location string, fields []table.Field) error {
	for _, f := range fields {
		if kind, ok := spec.Columns[f.Name]; ok && kind != f.Kind {
			return fmt.Errorf("%s: column %q is declared as %s, the file has %s", location, f.Name, kind, describe(f))
		}
	}
	return nil
}
