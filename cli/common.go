package cli

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/job"
)

// builtin is the job that runs when none is named: examples/ctr.yaml, of which
// a test says that it is the same.
//
//go:embed builtin.yaml
var builtin []byte

// common are the flags of every command that takes a job.
type common struct {
	ext      job.Extensions
	dataDir  string
	settings []string
}

func (c *common) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.dataDir, "data-dir", "", "directory that relative data paths are resolved against (default: the job file's)")
	f.StringArrayVar(&c.settings, "set", nil, "lay a value over the job, as path.to.field=value (repeatable)")
}

// addReport adds the flag of the commands that write a report.
func addReport(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "report", "", "write a report as one JSON object to this file")
}

// job reads the job named by the arguments, or the built-in one.
func (c *common) job(ctx context.Context, args []string) (job.Job, error) {
	if len(args) == 0 {
		j, err := c.ext.Parse("built-in job", builtin, c.settings)
		return j, asRequest(err)
	}
	if c.dataDir == "" {
		c.dataDir = filepath.Dir(args[0])
	}
	j, err := c.ext.Read(args[0], c.settings)
	if err != nil {
		return j, requestError{err}
	}
	return j, asRequest(c.checkFiles(ctx, j))
}

// checkFiles finds missing files before anything is started. What is in object stores
// is left to who reads it.
func (c *common) checkFiles(ctx context.Context, j job.Job) error {
	if info, err := os.Stat(c.dataDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--data-dir %s is not a directory", c.dataDir)
	}
	for _, s := range []struct {
		field, path string
		pattern     bool // it may name several
	}{
		{"data.train.path", j.Data.Train.Path, true},
		{"data.train.labels", j.Data.Train.Labels, false},
		{"data.eval.path", j.Data.Eval.Path, true},
		{"data.eval.labels", j.Data.Eval.Labels, false},
		{"import.path", j.Import.Path, false},
	} {
		if s.path == "" || strings.Contains(s.path, "://") {
			continue
		}
		if wrong := c.missing(ctx, s.path, s.pattern); wrong != "" {
			return &job.FieldError{Field: s.field, Fix: wrong}
		}
	}
	return nil
}

// missing says what is wrong with the path of a file, or with a pattern of paths; "":
// nothing is.
func (c *common) missing(ctx context.Context, path string, pattern bool) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.dataDir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return path + " is a directory"
	case err == nil:
		return ""
	case pattern && strings.ContainsAny(path, "*?["):
		if _, err := file.Expand(ctx, "", []string{path}); err != nil {
			return fmt.Sprintf("%v; check --data-dir (now %s)", err, c.dataDir)
		}
		return ""
	}
	return fmt.Sprintf("there is no file %s; check --data-dir (now %s)", path, c.dataDir)
}

// checkOut refuses a file that cannot be written, before any work. The proof is a
// file beside it, made as writeWhole makes it and removed at once. What is there and
// is no file is refused too: to put a file in the place of /dev/null is a disaster.
func checkOut(flag, path string) error {
	switch path {
	case "":
		return nil
	case "-":
		return requestError{fmt.Errorf("%s -: want the name of a file; the closing table has stdout", flag)}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return requestError{fmt.Errorf("%s %s: there is no directory %s", flag, path, filepath.Dir(path))}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return requestError{fmt.Errorf("%s %s is a directory", flag, path)}
	} else if err == nil && !info.Mode().IsRegular() {
		return requestError{fmt.Errorf("%s %s is not a regular file (%s)", flag, path, info.Mode())}
	}
	proof, err := beside(path)
	if err == nil {
		err = errors.Join(proof.Close(), os.Remove(proof.Name()))
	}
	if err != nil {
		return requestError{fmt.Errorf("%s %s: cannot write there: %w", flag, path, err)}
	}
	return nil
}

// sameFile reports whether two names lead to one file, be it there or not.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	if err == nil && yerr == nil {
		return os.SameFile(x, y)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// beside makes a new file that may be renamed to path.
func beside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// asRequest marks an error as a wrong request.
func asRequest(err error) error {
	if err == nil {
		return nil
	}
	return requestError{err}
}

// writeJSON writes a file whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return writeWhole(path, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// writeWhole lets write fill a new file and puts it in place of path.
// Where path is a link, that is the file it leads to.
func writeWhole(path string, write func(*os.File) error) error {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	f, err := beside(path)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
