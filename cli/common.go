package cli

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/tune"
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
	overlay  string
	inputs   []readFile // what the job reads, itself among it
	absent   []string   // sources, as data.train, whose files need not be there
}

// readFile is a file that is read.
type readFile struct{ name, path string }

func (c *common) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.dataDir, "data-dir", "", "directory that relative data paths are resolved against (default: the job file's)")
	f.StringVar(&c.overlay, "overlay", "", "lay the settings that gangline tune has found over the job, from this file; --set goes before them")
	f.StringArrayVar(&c.settings, "set", nil, "lay a value over the job, as path.to.field=value (repeatable)")
}

// addReport adds the flag of the commands that write a report.
func addReport(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "report", "", "write a report as one JSON object to this file")
}

// job reads the job named by the arguments, or the built-in one, and finds its files.
func (c *common) job(ctx context.Context, args []string) (job.Job, error) {
	j, err := c.read(args)
	if err == nil && len(args) > 0 {
		err = c.files(ctx, j)
	}
	return j, err
}

// read is job for who opens none of the files.
func (c *common) read(args []string) (job.Job, error) {
	tuned, settings := (*tune.Overlay)(nil), c.settings
	if c.overlay != "" {
		var err error
		if tuned, err = tune.ReadOverlay(c.overlay); err != nil {
			return job.Job{}, requestError{fmt.Errorf("--overlay: %w", err)}
		}
		settings = slices.Concat(tuned.Set, c.settings)
	}
	j, err := c.parse(args, settings)
	if err == nil && tuned != nil {
		if err = tuned.Fits(&j); err != nil {
			err = fmt.Errorf("--overlay %s: %w", c.overlay, err)
		}
	}
	return j, asRequest(err)
}

// parse reads the job with settings laid over it.
func (c *common) parse(args, settings []string) (job.Job, error) {
	if len(args) == 0 {
		return c.ext.Parse("built-in job", builtin, settings)
	}
	if c.dataDir == "" {
		c.dataDir = filepath.Dir(args[0])
	}
	c.inputs = []readFile{{"the job file", args[0]}}
	return c.ext.Read(args[0], settings)
}

// files finds the files of a job, and refuses one that would write over them.
func (c *common) files(ctx context.Context, j job.Job) error {
	if err := c.checkFiles(ctx, j); err != nil {
		return asRequest(err)
	}
	if j.Data.Rejects == "" {
		return nil
	}
	return errors.Join(c.spare("data.rejects", j.Data.Rejects), c.spare("data.rejects", j.Data.Rejects+".eval"))
}

// reads notes the files that a field or a flag names.
func (c *common) reads(name string, paths []string) {
	for _, path := range paths {
		c.inputs = append(c.inputs, readFile{"a file of " + name, path})
	}
}

// spare refuses to write over a file that the job reads.
func (c *common) spare(flag, path string) error {
	for _, in := range c.inputs {
		if path != "" && sameFile(in.path, path) {
			return requestError{fmt.Errorf("%s %s is %s: name another file", flag, path, in.name)}
		}
	}
	return nil
}

// checkFiles finds missing files before anything is started.
func (c *common) checkFiles(ctx context.Context, j job.Job) error {
	if info, err := os.Stat(c.dataDir); !file.IsURL(c.dataDir) && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--data-dir %s is not a directory", c.dataDir)
	}
	for _, s := range []struct {
		field string
		paths job.Files
	}{
		{"data.train.path", j.Data.Train.Path},
		{"data.train.labels", job.Files{j.Data.Train.Labels}},
		{"data.eval.path", j.Data.Eval.Path},
		{"data.eval.labels", job.Files{j.Data.Eval.Labels}},
		{"import.path", job.Files{j.Import.Path}},
		{"network.costs", job.Files{j.Network.Costs}},
	} {
		if s.paths.First() == "" {
			continue
		}
		found, err := file.Expand(ctx, c.dataDir, s.paths)
		if errors.Is(err, file.ErrMissing) {
			if slices.Contains(c.absent, s.field[:strings.LastIndexByte(s.field, '.')]) {
				continue // it is named where it is read, if it is
			}
			err = fmt.Errorf("%w; check --data-dir (now %s)", err, c.dataDir)
		}
		if err != nil {
			return &job.FieldError{Field: s.field, Fix: err.Error()}
		}
		c.reads(s.field, found)
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
	return command.WriteWhole(path, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}
