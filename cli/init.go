package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/draft"
)

func newInit() *cobra.Command {
	var out string
	var force bool
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a commented job for a data file",
		Long: `Init looks at the first bytes of a file, whatever its name, and writes a job that
trains on it: libsvm, criteo, csv, vw, libffm, idx, npy, npz, parquet or text. What
is guessed, such as which column is the label, is said here and in the job.`,
		Example: `  gangline init clicks.csv
  gangline init train.svm.gz --out job.yaml --force`,
		Args: cobra.ExactArgs(1),

		ValidArgsFunction: anyFile,
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				out = strings.SplitN(filepath.Base(args[0]), ".", 2)[0] + ".yaml"
			}
			if err := checkInit(args[0], out, force); err != nil {
				return err
			}
			d, err := draft.For(c.Context(), args[0], out)
			if err != nil {
				return requestError{err}
			}
			if err := command.WriteWhole(out, func(f *os.File) error { _, err := f.Write(d.Text); return err }); err != nil {
				return err
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "%s is %s: %s\n", args[0], d.Guess.Format, d.Guess.Why)
			for _, n := range d.Notes {
				fmt.Fprintln(w, n)
			}
			_, err = fmt.Fprintf(w, "wrote %s; next: gangline train %s\n", out, out)
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "job file to write (default: the name of FILE with .yaml, here)")
	cmd.Flags().BoolVar(&force, "force", false, "write over a job file that is there")
	return cmd
}

// checkInit refuses to write over a file.
func checkInit(data, out string, force bool) error {
	if sameFile(data, out) {
		return requestError{fmt.Errorf("--out %s is the data file: name another", out)}
	}
	if err := command.CheckOut("--out", out); err != nil {
		return err
	}
	if _, err := os.Stat(out); !force && !errors.Is(err, fs.ErrNotExist) {
		return requestError{fmt.Errorf("%s is there already: set --force to write over it, or --out to name another", out)}
	}
	return nil
}
