package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/scores"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	common
	from, path, out, format string
}

func newPredict(ext job.Extensions) *cobra.Command {
	f := predictFlags{common: common{ext: ext}}
	cmd := &cobra.Command{
		Use:   "predict JOB.yaml",
		Short: "Write what a model says of every row of a file",
		Long: `Predict reads the job's eval rows, or --path, and writes a line for each in the
order of the input: row (from 0), prediction, and label. A prediction is the
probability of label 1, a class with its probability, or a value, as the model
has it; classes are called as in the input. Of a model of text (gpt) it writes the
log likelihood of each row of data.eval.context tokens, in nats, and the perplexity.

The file is CSV, JSON lines or Parquet, by its extension or by --format. It
appears whole or not at all; - is stdout.`,
		Example: `  gangline predict job.yaml --checkpoint ckpt --out scores.csv
  gangline predict job.yaml --checkpoint ckpt --path new.svm --out scores.parquet
  gangline predict job.yaml --checkpoint ckpt --out - --format jsonl`,
		Args: cobra.ExactArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.from, "checkpoint", "", "checkpoint directory, or a directory of them (default: the job's checkpoint.dir)")
	cmd.Flags().StringVar(&f.path, "path", "", "file to read instead of the job's eval rows, of the same form")
	cmd.Flags().StringVar(&f.out, "out", "", "file to write; - is stdout (required)")
	cmd.Flags().StringVar(&f.format, "format", "", "csv, jsonl or parquet (default: by the extension of --out; csv on stdout)")
	command.Complete(cmd, "format", command.Words(scores.Formats()...))
	return cmd
}

func (f *predictFlags) run(c *cobra.Command, args []string) error {
	if err := f.check(args[0]); err != nil {
		return err
	}
	// A checkpoint knows what was learned of the training rows.
	if f.absent = []string{"data.train"}; f.path != "" {
		f.absent = append(f.absent, "data.eval")
	}
	j, err := f.job(c.Context(), args)
	if err != nil {
		return err
	}
	if f.path != "" {
		found, err := file.Expand(c.Context(), "", []string{f.path})
		if err != nil {
			return requestError{fmt.Errorf("--path: %w", err)}
		}
		f.reads("--path", found)
	}
	if err := f.spare("--out", f.out); err != nil {
		return err
	}
	if f.from == "" {
		f.from = j.Checkpoint.Dir
	}
	write := func(w io.Writer) error { return f.predict(c.Context(), j, w, c.ErrOrStderr()) }
	if f.out == "-" {
		return write(c.OutOrStdout())
	}
	var failed error
	err = command.WriteWhole(f.out, func(to *os.File) error {
		failed = write(to)
		return failed
	})
	if failed != nil {
		return failed // and not of the file
	}
	return err
}

// check refuses what cannot be written, before any work.
func (f *predictFlags) check(jobFile string) error {
	if f.format == "" && f.out == "-" {
		f.format = "csv"
	}
	if f.format == "" {
		f.format = scores.FormatOf(f.out)
	}
	known := scores.Formats()
	switch {
	case f.out == "":
		return requestError{fmt.Errorf("--out is missing: name the file to write, or - for stdout")}
	case f.format == "":
		return requestError{fmt.Errorf("--out %s: its extension is none of .csv, .jsonl and .parquet: set --format", f.out)}
	case !slices.Contains(known, f.format):
		return requestError{fmt.Errorf("--format %q is not known%s", f.format, nearest.Hint(f.format, known))}
	case f.out == "-":
		return nil
	case sameFile(f.out, jobFile):
		return requestError{fmt.Errorf("--out %s is the job file: name another", f.out)}
	}
	return command.CheckOut("--out", f.out)
}

// predict writes all rows to w.
func (f *predictFlags) predict(ctx context.Context, j job.Job, w io.Writer, stderr io.Writer) error {
	var out scores.Writer
	var rows []scores.Row
	base := int64(j.Data.Eval.LabelBase)
	if j.Data.Eval.Format == "" {
		base = int64(j.Data.Train.LabelBase)
	}
	skipped, err := train.Predict(ctx, j, f.dataDir, f.from, f.path, func(s *train.Scored) (err error) {
		if out == nil {
			if out, err = scores.New(f.format, w, formOf(s)); err != nil {
				return err
			}
		}
		rows = rows[:0]
		for i, v := range s.Value {
			r := scores.Row{Row: int64(s.First + i), Value: v}
			switch s.Task {
			case graph.Tokens:
				r.Perplexity = s.Perplexity(i)
			case graph.Multiclass:
				r.Class, r.Label = int64(s.Class[i])+base, s.Label[i]+float64(base)
			case graph.Binary, graph.Regression:
				r.Label = s.Label[i]
			}
			rows = append(rows, r)
		}
		return out.Write(rows)
	})
	if err != nil {
		return err
	}
	if skipped > 0 {
		fmt.Fprintf(stderr, "%d malformed rows are skipped and have no number\n", skipped)
	}
	return out.Close()
}

// formOf says what is written of rows.
func formOf(s *train.Scored) scores.Form {
	if s.Task == graph.Tokens {
		return scores.Form{Text: true}
	}
	return scores.Form{Classes: s.Task == graph.Multiclass, Names: s.Names, Labels: labelled(s.Label)}
}

// labelled reports whether any row has a label.
func labelled(labels []float64) bool {
	return slices.ContainsFunc(labels, func(v float64) bool { return !math.IsNaN(v) })
}
