// Command fuzzall runs every fuzz target of the module for a time each, since
// go test -fuzz takes one at a time. It builds the tests of a package once for all its
// targets.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", 10*time.Second, "how long each target runs")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

func run(each time.Duration) error {
	targets, err := find(".")
	if err != nil {
		return err
	}
	corpus, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	dir, err := os.MkdirTemp("", "fuzzall-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the binaries
	f := fuzzer{each: each, binary: filepath.Join(dir, "fuzz.test"), corpus: filepath.Join(strings.TrimSpace(string(corpus)), "fuzz")}
	var errs []error
	for _, t := range targets {
		if err := f.fuzz(t); err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", t.name, t.dir, err))
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(targets)-len(errs), len(errs))
	return errors.Join(errs...)
}

// fuzzer runs targets, those of a package one after the other.
type fuzzer struct {
	each           time.Duration
	binary, corpus string
	built          string // directory of the package that the binary is of
}

// fuzz runs one target.
func (f *fuzzer) fuzz(t target) error {
	if f.built != t.dir {
		f.built = ""
		if err := quote(exec.Command("go", "test", "-c", "-vet=off", "-fuzz", "Fuzz", "-o", f.binary, t.dir)); err != nil {
			return err
		}
		f.built = t.dir
	}
	run := exec.Command(f.binary, "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", f.each.String(),
		"-test.fuzzminimizetime", "20x", "-test.fuzzcachedir", filepath.Join(f.corpus, t.dir))
	run.Dir = t.dir // where its testdata is
	return quote(run)
}

// quote runs a command with our output.
func quote(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// target is a fuzz function and the directory of its package.
type target struct{ dir, name string }

func find(root string) ([]target, error) {
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	var all []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			all = append(all, target{"./" + filepath.Dir(path), m[1]})
		}
		return nil
	})
	return all, err
}
