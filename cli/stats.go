package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/stats"
	"github.com/gangline/gangline/draft"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
)

func newDataStats(ext job.Extensions) *cobra.Command {
	f := common{ext: ext}
	var eval, asJSON bool
	cmd := &cobra.Command{
		Use:   "stats [JOB.yaml | FILE]",
		Short: "Count rows, missing values, different values and duplicates",
		Long: `Stats reads all rows of a job, or of a data file whose format it tells by what the
file holds, and prints for every column: missing values, different values (with ~
in front, an estimate with a standard error of .8 %), moments of numbers, and the
most frequent values with their share. Malformed rows of a file are counted.`,
		Example: `  gangline data stats examples/adult.yaml --data-dir DIR
  gangline data stats clicks.csv.gz --json`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: anyFile,
		RunE: func(c *cobra.Command, args []string) error {
			t, err := f.stats(c.Context(), args, eval)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(t)
			}
			return printStats(c.OutOrStdout(), t)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&eval, "eval", false, "of the job's eval rows instead of its training rows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// stats reads what the arguments name.
func (c *common) stats(ctx context.Context, args []string, eval bool) (*stats.Table, error) {
	if len(args) == 1 && !isJob(args[0]) {
		if eval || len(c.settings) > 0 {
			return nil, requestError{fmt.Errorf("%s is a data file: --eval and --set are of jobs", args[0])}
		}
		return fileStats(ctx, args[0])
	}
	j, err := c.job(ctx, args)
	if err != nil {
		return nil, err
	}
	if from := j.Data.Train; from.IsTable() {
		if eval {
			from = j.Data.Eval
		}
		return tableStats(ctx, from, c.dataDir)
	}
	src, err := input.OpenSource(ctx, j, c.dataDir, eval)
	if err != nil {
		return nil, err
	}
	t, err := stats.OfSource(ctx, src)
	return t, errors.Join(err, src.Close())
}

// tableStats reads the columns of a job's file as they are, before features are
// made of them. Malformed rows are counted.
func tableStats(ctx context.Context, s job.Source, dataDir string) (*stats.Table, error) {
	if s.Format == "" {
		return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing"}
	}
	paths, err := file.Expand(ctx, dataDir, s.Path)
	if err != nil {
		return nil, requestError{err}
	}
	in, err := format.Open(ctx, format.Spec{
		Format: s.Format, Paths: paths, Columns: s.Types, Missing: s.Missing, Suffix: s.Suffix, Header: s.Header, Names: s.Columns,
		Delimiter: s.Delimiter, NoQuotes: s.NoQuotes, Encoding: s.Encoding, Namespaces: s.Namespaces, NumericIDs: s.NumericIDs,
	})
	if err != nil {
		return nil, err
	}
	t, err := stats.OfTable(ctx, in)
	return t, errors.Join(err, in.Close())
}

// isJob reports whether a name is that of a job file.
func isJob(name string) bool {
	return filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml"
}

// fileStats reads a file by what it holds.
func fileStats(ctx context.Context, path string) (*stats.Table, error) {
	g, err := draft.Guess(ctx, path)
	if err != nil {
		return nil, requestError{err}
	}
	const anyNumber = 1 << 30 // malformed rows are counted, not refused
	spec := data.Spec{Format: g.Format, Path: path}
	switch g.Format {
	case "libsvm":
		spec.ZeroBased, spec.MaxBadRows, spec.Features = g.ZeroBased, anyNumber, rows.MaxID
	case "criteo":
		spec.Buckets, spec.MaxBadRows = 1<<24, anyNumber
	case "text":
		spec.Context = 1
	case "idx":
		return nil, requestError{fmt.Errorf("%s is idx, of which images and labels are two files: name a job that has both (gangline init %s writes one)", path, path)}
	default:
		in, err := format.Open(ctx, format.Spec{Format: g.Format, Paths: []string{path}, Header: g.Header, Delimiter: g.Delimiter})
		if err != nil {
			return nil, err
		}
		t, err := stats.OfTable(ctx, in)
		return t, errors.Join(err, in.Close())
	}
	src, err := data.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	t, err := stats.OfSource(ctx, src)
	return t, errors.Join(err, src.Close())
}

// printStats writes a table for people.
func printStats(w io.Writer, t *stats.Table) error {
	fmt.Fprintf(w, "%d rows, %s%d equal to an earlier one", t.Rows, about(t.DuplicatesExact), t.Duplicates)
	if t.BadRows > 0 {
		fmt.Fprintf(w, ", and %d malformed ones that are left out:\n  %s", t.BadRows, strings.Join(t.BadSamples, "\n  "))
	}
	fmt.Fprint(w, "\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "column\tkind\tmissing\tdifferent\tmin\tmean\tmax\tstd\tskewness\tmost frequent")
	for _, c := range t.Columns {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s%d\t%s\t%s\n", c.Name, c.Kind, c.Missing, about(c.Exact), c.Distinct, momentsText(c.Numbers), frequentText(&c))
		if c.PerRow != nil {
			fmt.Fprintf(tw, "  a row\t\t\t\t%s\t\n", momentsText(c.PerRow))
		}
	}
	return tw.Flush()
}

// about marks an estimate.
func about(exact bool) string {
	if exact {
		return ""
	}
	return "~"
}

func momentsText(n *stats.Numbers) string {
	if n == nil {
		return "\t\t\t\t"
	}
	return fmt.Sprintf("%.5g\t%.5g\t%.5g\t%.5g\t%.3g", n.Min, n.Mean, n.Max, n.Std, n.Skewness)
}

// frequentText shows the first few values and their share.
func frequentText(c *stats.Column) string {
	const most = 3
	var words []string
	for _, v := range c.Top[:min(most, len(c.Top))] {
		words = append(words, fmt.Sprintf("%s %.3g%%", v.Text, 100*float64(v.Count)/float64(c.Values)))
	}
	return strings.Join(words, ", ")
}
