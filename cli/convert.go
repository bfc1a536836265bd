package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
)

// convertFlags say what to convert where there is no job.
type convertFlags struct {
	spec   data.Spec
	binary bool
}

func newConvert(ext job.Extensions) *cobra.Command {
	f := common{ext: ext}
	var flags convertFlags
	var eval bool
	cmd := &cobra.Command{
		Use:   "convert (JOB.yaml | --format FORMAT --path FILE) OUT",
		Short: "Convert rows to a cache file, which loads at the speed of memory",
		Long: `Convert writes the rows of a job, or of a file, to a cache file. A job reads it with

  data: {train: {format: cache, path: OUT}}

Rows are as the model gets them: features are made, labels mapped, splits and samples
taken. A file of named columns needs the job that says which features; the cache
keeps them, so that a model trained on it tests and predicts raw files, too.`,
		Example: `  gangline data convert job.yaml rows.gcache --data-dir DIR
  gangline data convert job.yaml test.gcache --eval
  gangline data convert --format criteo --path day_0.gz --buckets 1000000 day_0.gcache
  gangline data convert --format libsvm --path 'part-*.svm' --binary rows.gcache`,
		Args: func(_ *cobra.Command, args []string) error {
			want := 2
			if flags.spec.Format != "" {
				want = 1
			}
			if len(args) != want {
				return requestError{errors.New("want a job and the file to write, or --format, --path and the file to write")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out := args[len(args)-1]
			if err := command.CheckOut("OUT", out); err != nil {
				return err
			}
			h, err := f.convert(c.Context(), &flags, args, eval, out)
			if err != nil {
				return err
			}
			return printConverted(c.OutOrStdout(), out, h)
		},
	}
	f.add(cmd)
	s := &flags.spec
	cmd.Flags().BoolVar(&eval, "eval", false, "convert the job's eval rows instead of its training rows")
	cmd.Flags().StringVar(&s.Format, "format", "", "without a job: libsvm, criteo, idx or text")
	cmd.Flags().StringVar(&s.Path, "path", "", "without a job: the file, or a pattern of files")
	cmd.Flags().StringVar(&s.Labels, "labels", "", "file of the labels (idx)")
	cmd.Flags().IntVar(&s.Features, "features", 0, "number of features (libsvm); 0: the largest in the file")
	cmd.Flags().BoolVar(&s.ZeroBased, "zero-based", false, "features count from 0 (libsvm)")
	cmd.Flags().BoolVar(&flags.binary, "binary", false, "labels are -1, 0 and 1 (libsvm)")
	cmd.Flags().IntVar(&s.LabelBase, "label-base", 0, "what the file calls its first class (libsvm)")
	cmd.Flags().IntVar(&s.Buckets, "buckets", 0, "ids that categories are hashed into (criteo)")
	cmd.Flags().IntVar(&s.Context, "context", 0, "bytes of a row (text)")
	return cmd
}

// convert converts the rows of a job, or without one those of the flags.
func (c *common) convert(ctx context.Context, flags *convertFlags, args []string, eval bool, out string) (*cache.Header, error) {
	spec := flags.spec
	if spec.Format == "" {
		j, err := c.job(ctx, args[:1])
		if err != nil {
			return nil, err
		}
		if err := c.spare("OUT", out); err != nil {
			return nil, err
		}
		return input.Convert(ctx, j, c.dataDir, eval, out)
	}
	if eval || len(c.settings) > 0 || c.dataDir != "" {
		return nil, requestError{errors.New("--eval, --set and --data-dir are of jobs, --format is without one")}
	}
	if flags.binary {
		spec.LabelMap = "binary"
	}
	if err := spec.Validate(); err != nil {
		return nil, requestError{err}
	}
	found, err := file.Expand(ctx, "", []string{spec.Path})
	if err != nil {
		return nil, requestError{fmt.Errorf("--path: %w", err)}
	}
	c.reads("--path", found)
	c.reads("--labels", []string{spec.Labels})
	if err := c.spare("OUT", out); err != nil {
		return nil, err
	}
	return data.Convert(ctx, spec, out)
}

// printConverted says what a cache file holds.
func printConverted(w io.Writer, path string, h *cache.Header) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	bad := ""
	if h.BadRows > 0 {
		bad = fmt.Sprintf(", %d malformed ones skipped", h.BadRows)
	}
	_, err = fmt.Fprintf(w, "%s: %d rows in %s%s, %.1f MB, %.1f MB in memory\n",
		path, h.Rows, plural(len(h.Blocks), "block"), bad, float64(info.Size())/1e6, float64(h.Memory)/1e6)
	return err
}
