package cli

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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

// job reads the job named by the arguments, or the built-in one, and finds its files.
func (c *common) job(args []string) (job.Job, error) {
	j, err := c.read(args)
	if err == nil && len(args) > 0 {
		err = asRequest(c.checkFiles(j))
	}
	return j, err
}

// read is job for who opens none of the files.
func (c *common) read(args []string) (job.Job, error) {
	if len(args) == 0 {
		j, err := c.ext.Parse("built-in job", builtin, c.settings)
		return j, asRequest(err)
	}
	if c.dataDir == "" {
		c.dataDir = filepath.Dir(args[0])
	}
	j, err := c.ext.Read(args[0], c.settings)
	return j, asRequest(err)
}

// checkFiles finds missing files before anything is started.
func (c *common) checkFiles(j job.Job) error {
	if info, err := os.Stat(c.dataDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--data-dir %s is not a directory", c.dataDir)
	}
	for _, s := range []struct{ field, path string }{
		{"data.train.path", j.Data.Train.Path},
		{"data.train.labels", j.Data.Train.Labels},
		{"data.eval.path", j.Data.Eval.Path},
		{"data.eval.labels", j.Data.Eval.Labels},
		{"import.path", j.Import.Path},
	} {
		path := s.path
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.dataDir, path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return &job.FieldError{Field: s.field, Fix: fmt.Sprintf("there is no file %s; check --data-dir (now %s)", path, c.dataDir)}
		}
		if info.IsDir() {
			return &job.FieldError{Field: s.field, Fix: path + " is a directory"}
		}
	}
	return nil
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
