// Command fuzzall runs every fuzz target of the module for a time each, since
// go test -fuzz takes one at a time.
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
	var errs []error
	for _, t := range targets {
		cmd := exec.Command("go", "test", t.dir, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "-fuzzminimizetime", "20x")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", t.name, t.dir, err))
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(targets)-len(errs), len(errs))
	return errors.Join(errs...)
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
