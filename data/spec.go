package data

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/generate"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/internal/nearest"
)

// Formats returns the names of the formats that Open knows.
func Formats() []string {
	return []string{"libsvm", "criteo", "idx", "text", "generated", "cache", "csv", "vw", "libffm", "npy", "npz", "parquet"}
}

// tables are the formats of named columns, of which features are made.
const tables = "csv, vw, libffm, npy, npz, parquet"

// Spec says where rows come from. Fields that the format does not use must be
// left at zero.
type Spec struct {
	// Format is one of Formats().
	Format string
	// Path is the file, or a pattern of files of lines and tables: see file.Expand.
	// gzip, bzip2 and zstd are undone by what the file holds, whatever its name. For
	// idx these are the images.
	Path string
	// More are further files, or patterns, that are read after Path.
	More []string
	// Labels is the idx file of labels.
	Labels string
	// Limit keeps only the first so many rows, of those that Split means and Negatives
	// samples; 0 keeps all.
	Limit int
	// MaxBadRows is how many malformed rows of a text file are skipped and
	// counted; one more is an error. At 0 the first is.
	MaxBadRows int

	// Features (libsvm) is the Dim of column x. An index beyond it is an error.
	// 0 takes the largest index in the file; a test file then needs the number
	// of its training file.
	Features int
	// ZeroBased (libsvm) says that indexes count from 0 instead of 1.
	ZeroBased bool
	// LabelMap (libsvm) is "" for labels as they are, or "binary" for -1, 0
	// and +1, of which -1 becomes 0.
	LabelMap string
	// LabelBase (libsvm) is the number of the first class and is taken off
	// every label: 1 for files that number classes from 1. At 0 labels may be
	// any numbers.
	LabelBase int
	// Classes (libsvm, idx) is how many classes there are: a label, LabelBase taken
	// off, must be a whole number below it. At 0 nothing is asked.
	Classes int

	// Buckets (criteo, generated) is the number of ids that categories are
	// hashed into, the Dim of column cat.
	Buckets int

	// Context (text) is the bytes of a row, Stride the bytes from the start of one
	// row to that of the next; 0 is Context.
	Context, Stride int
	// From and To (text) are the shares of the file between which rows are cut,
	// in [0, 1]; To 0 is the end. A row's label reaches one byte further than the row.
	From, To float64
	// Vocabulary (text) is the file whose distinct bytes are the tokens, in
	// ascending order; "" is Path. A test file needs that of its training file.
	Vocabulary string

	// UnitNorm (libsvm) scales the values of every row to a Euclidean norm of 1.
	UnitNorm bool

	// Table (tables) says how the file is read; Format, Paths and Select are left
	// to this package.
	Table format.Spec
	// Fitted (tables) makes the features: Fit of the training rows.
	Fitted *feature.Fitted
	// Unlabelled (tables) says that rows need neither label nor weight: where the
	// files have no column for the label (see Labelled), labels are 0 and weights 1.
	Unlabelled bool
	// Group (tables) is the column of the file that becomes GroupColumn; "": none.
	Group string

	// Rows (generated) is the number of rows, First the number of the first.
	// Ranges that do not overlap are independent samples of one distribution:
	// train and evaluate on disjoint ones.
	Rows, First int
	// Seed (generated) plants the weights. Each seed is another problem.
	Seed uint64

	// Intake says which rows are kept, and where.
	Intake
}

// Validate tells whether the spec is meaningful, without touching files. The
// error names every field that is wrong.
func (s *Spec) Validate() error {
	if !slices.Contains(Formats(), s.Format) {
		return fmt.Errorf("data: unknown format %q%s", s.Format, nearest.Hint(s.Format, Formats()))
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("data: "+format, args...)) }
	for _, f := range s.fields() {
		switch {
		case f.negative:
			bad("%s must not be negative", f.name)
		case f.set && !strings.Contains(f.formats, s.Format):
			bad("%s has no meaning for format %s (only for %s)", f.name, s.Format, f.formats)
		case !f.set && strings.Contains(f.required, s.Format):
			bad("format %s needs %s", s.Format, f.name)
		}
	}
	if s.Features > rows.MaxID || s.Buckets > rows.MaxID {
		bad("Features and Buckets are limited to %d", rows.MaxID)
	}
	if maps := []string{"binary"}; s.LabelMap != "" && !slices.Contains(maps, s.LabelMap) {
		bad("unknown LabelMap %q%s", s.LabelMap, nearest.Hint(s.LabelMap, maps))
	}
	if !(s.From >= 0 && s.From < 1) || !(s.To == 0 || s.To > s.From && s.To <= 1) {
		bad("From %v and To %v are no range of shares: want 0 <= From < To <= 1", s.From, s.To)
	}
	if s.LabelMap != "" && s.LabelBase != 0 {
		bad("LabelMap and LabelBase exclude each other")
	}
	if s.LabelMap != "" && s.Classes != 0 {
		bad("LabelMap and Classes exclude each other")
	}
	errs = append(errs, s.check(s.Format))
	return errors.Join(errs...)
}

// field says which formats use a field of a Spec, and which cannot do without.
type field struct {
	name              string
	set, negative     bool
	formats, required string
}

func (s *Spec) fields() []field {
	number := func(name string, v int, formats, required string) field {
		return field{name, v != 0, v < 0, formats, required}
	}
	const files, hashed = "libsvm, criteo, idx, text, " + tables, "criteo, generated"
	return []field{
		{"Path", s.Path != "", false, files + ", cache", files + ", cache"},
		{"More", len(s.More) > 0, false, "libsvm, criteo, " + tables, ""},
		{"Labels", s.Labels != "", false, "idx", "idx"},
		number("Limit", s.Limit, files+", generated", ""),
		number("MaxBadRows", s.MaxBadRows, "libsvm, criteo, "+tables, ""),
		number("Features", s.Features, "libsvm", ""),
		{"ZeroBased", s.ZeroBased, false, "libsvm", ""},
		{"LabelMap", s.LabelMap != "", false, "libsvm", ""},
		{"LabelBase", s.LabelBase != 0, false, "libsvm", ""},
		number("Classes", s.Classes, "libsvm, idx", ""),
		{"Table", !reflect.ValueOf(s.Table).IsZero(), false, tables, ""},
		{"UnitNorm", s.UnitNorm, false, "libsvm", ""},
		{"Fitted", s.Fitted != nil, false, tables, ""},
		{"Unlabelled", s.Unlabelled, false, tables, ""},
		{"Group", s.Group != "", false, tables, ""},
		number("Buckets", s.Buckets, hashed, hashed),
		number("Context", s.Context, "text", "text"),
		number("Stride", s.Stride, "text", ""),
		{"From", s.From != 0, false, "text", ""},
		{"To", s.To != 0, false, "text", ""},
		{"Vocabulary", s.Vocabulary != "", false, "text", ""},
		number("Rows", s.Rows, "generated", "generated"),
		number("First", s.First, "generated", ""),
		{"Seed", s.Seed != 0, false, "generated", ""},
	}
}

// Open reads a file into memory, in one pass, or prepares generated rows. The
// columns are
//
//	libsvm             label (dense, 1)   x (ragged, Features)
//	criteo, generated  label (dense, 1)   num (dense, 13)   cat (ragged, Buckets, 26 a row)
//	idx                label (dense, 1)   x (dense, bytes of a record, in [0,1])
//	text               label (dense, Context)   tokens (ragged, vocabulary, Context a row)
//	cache              as the rows that were converted
//	tables             label (dense, 1)   num (dense)   cat (ragged)   and, where declared,
//	                   weight (dense, 1)   group (ragged, 1 a row: number of the group)
//
// A malformed row is a *RowError. Memory is about 8 bytes an entry of libsvm (4
// where all values are 1), 160 a row of criteo, one a pixel or byte of text, none for
// generated rows. Rows of lines and tables that take more than Memory are read from a
// cache file instead, which is made if it is not there. The context bounds the reading
// of all but cache files. The sources it returns are Reporters; generated ones are Oracles too.
func Open(ctx context.Context, spec Spec) (Source, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	switch spec.Format {
	case "idx":
		return source(readIdx(ctx, &spec))
	case "text":
		t, err := readText(ctx, &spec)
		if err != nil {
			return nil, err
		}
		return t, nil
	case "csv", "vw", "libffm", "npy", "npz", "parquet":
		return openPrepared(ctx, &spec)
	case "cache":
		return openCached(spec.Path, spec.memory(), "")
	case "generated":
		n := spec.Rows
		if spec.Limit > 0 {
			n = min(n, spec.Limit)
		}
		return generate.New(spec.Seed, spec.Buckets, spec.First, n), nil
	}
	return readLines(ctx, &spec)
}

// source keeps a nil *memory from becoming a Source that is not nil.
func source(m *memory, err error) (Source, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Reporter is a source that skipped malformed rows. Every source of Open is one.
type Reporter interface {
	// BadRows is the number of rows skipped.
	BadRows() int
	// BadSamples returns the first few of them.
	BadSamples() []RowError
}

// Oracle is a source that knows its own distribution. Scoring rows with it
// gives the best metrics that any model can reach on them. Generated sources
// are Oracles.
type Oracle interface {
	// Probability is that of label 1, given everything else of the row.
	Probability(row int) float64
}
