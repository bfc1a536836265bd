// Command crosscheck type-checks the packages of the module for other systems:
//
//	go run ./internal/cmd/crosscheck [-tags LIST] linux/arm64 darwin/arm64 windows/amd64
//
// What a build for another machine finds, beyond what one for this machine does, are
// names and types that are not the same there. To find these takes no code: a build makes
// it for every package, those of the library too, and throws it away. Of packages that are
// not ours the bodies of functions are not looked at either.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	tags := flag.String("tags", "nocloud", "build tags, with commas between them")
	flag.Parse()
	if err := run(".", *tags, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crosscheck:", err)
		os.Exit(1)
	}
}

// errorsMost bounds the errors that are shown of one system.
const errorsMost = 20

// run checks the module that dir is in for each system.
func run(dir, tags string, systems []string, out io.Writer) error {
	var errs []error
	for _, system := range systems {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			return fmt.Errorf("system %q: want GOOS/GOARCH", system)
		}
		packages, err := list(dir, tags, goos, goarch)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		found := check(packages, goarch)
		fmt.Fprintf(out, "%s: %d packages, %d errors\n", system, len(packages), len(found))
		for _, err := range found[:min(len(found), errorsMost)] {
			errs = append(errs, fmt.Errorf("%s: %w", system, err))
		}
	}
	return errors.Join(errs...)
}

// source is a package as go list tells of it.
type source struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct {
		Main      bool
		GoVersion string
	}
}

func (s *source) ours() bool { return s.Module != nil && s.Module.Main }

// list returns the packages and what they import, which comes first.
func list(dir, tags, goos, goarch string) ([]*source, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags", tags, "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*source
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var s source
		switch err := d.Decode(&s); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, &s)
	}
}

// check type-checks packages in order and returns the errors in ours.
func check(packages []*source, goarch string) (found []error) {
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for _, s := range packages {
		if s.ImportPath == "unsafe" {
			continue
		}
		files, err := s.parse(fset)
		if err != nil {
			found = append(found, err)
			continue
		}
		cfg := types.Config{
			IgnoreFuncBodies: !s.ours(),
			Sizes:            types.SizesFor("gc", goarch),
			Importer:         importer{s, done},
			Error: func(err error) {
				if s.ours() {
					found = append(found, err)
				}
			},
		}
		if s.Module != nil && s.Module.GoVersion != "" {
			cfg.GoVersion = "go" + s.Module.GoVersion
		}
		done[s.ImportPath], _ = cfg.Check(s.ImportPath, fset, files, nil) // Error has it
	}
	return found
}

// parse reads the files of a package.
func (s *source) parse(fset *token.FileSet) (files []*ast.File, err error) {
	for _, name := range s.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(s.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// importer finds what a package imports among those that are done.
type importer struct {
	of   *source
	done map[string]*types.Package
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if mapped, ok := i.of.ImportMap[path]; ok {
		path = mapped
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s was not listed", path)
}
