// Package command holds what commands share: wrong requests, files that are written
// whole or not at all, and completion by words.
package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// RequestError is a wrong request: a flag, an argument, a job. It ends a command with a
// status of its own.
type RequestError struct{ Err error }

// Error implements error.
func (r RequestError) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r RequestError) Unwrap() error { return r.Err }

// Wrong makes a RequestError of a message.
func Wrong(format string, args ...any) error { return RequestError{fmt.Errorf(format, args...)} }

// Words completes one of some words, or the last one of a list with commas.
func Words(known ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		head := ""
		if i := strings.LastIndexByte(toComplete, ','); i >= 0 {
			head = toComplete[:i+1]
		}
		var all []cobra.Completion
		for _, w := range known {
			all = append(all, head+w)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete sets how one flag is completed. The flag is there.
func Complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("cli: " + err.Error())
	}
}

// CheckOut refuses a file that cannot be written, before any work. The proof is a
// file beside it, made as WriteWhole makes it and removed at once. What is there and
// is no file is refused too: to put a file in the place of /dev/null is a disaster.
func CheckOut(flag, path string) error {
	switch path {
	case "":
		return nil
	case "-":
		return Wrong("%s -: want the name of a file; the closing table has stdout", flag)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return Wrong("%s %s: there is no directory %s", flag, path, filepath.Dir(path))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Wrong("%s %s is a directory", flag, path)
	} else if err == nil && !info.Mode().IsRegular() {
		return Wrong("%s %s is not a regular file (%s)", flag, path, info.Mode())
	}
	proof, err := beside(path)
	if err == nil {
		err = errors.Join(proof.Close(), os.Remove(proof.Name()))
	}
	if err != nil {
		return Wrong("%s %s: cannot write there: %w", flag, path, err)
	}
	return nil
}

// beside makes a new file that may be renamed to path.
func beside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// WriteWhole lets write fill a new file and puts it in place of path.
// Where path is a link, that is the file it leads to.
func WriteWhole(path string, write func(*os.File) error) error {
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
