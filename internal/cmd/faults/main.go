package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

// docPath is the page that the list is written to.
const docPath = "docs/faults.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// command does what the arguments ask for.
func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	pattern := flags.String("run", "", "plant only the faults whose name, file or test matches this `regexp`")
	list := flags.Bool("list", false, "print the list and plant nothing")
	doc := flags.Bool("doc", false, "write the list to "+docPath+" and plant nothing")
	timeout := flags.Duration("timeout", 2*time.Minute, "how long one test may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	re, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	var chosen []fault
	for _, f := range faults() {
		if re.MatchString(f.name) || re.MatchString(f.file) || re.MatchString(f.by.String()) {
			chosen = append(chosen, f)
		}
	}
	switch {
	case *doc:
		return os.WriteFile(filepath.Join(root, docPath), []byte(page(faults())), 0o644)
	case *list:
		for _, f := range chosen {
			fmt.Fprintf(out, "%s\n    %s: %s\n", f.name, f.file, f.by)
		}
		return nil
	case len(chosen) == 0:
		return fmt.Errorf("no fault matches %q", *pattern)
	}
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return err
	}
	p := &planter{root: root, dir: dir, timeout: *timeout, out: out}
	return errors.Join(p.all(ctx, chosen), os.RemoveAll(dir))
}

// moduleRoot finds go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod above the working directory")
		}
		dir = up
	}
}
