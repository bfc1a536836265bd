// Asmgen writes the assembly of compute/native/internal/kernel,
// optim/internal/vector, data/parse/internal/scan, collective/reduce, exec/internal/glance and internal/half,
// for amd64 with AVX2 and FMA, BMI1 or F16C. Run it by go generate there.
//
// Each family of kernels is one file here and one pair of files there: the
// assembly and the Go declarations of it. What is generated is committed, so
// that building needs the Go toolchain alone.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// generator builds the functions of one file.
type generator struct {
	*build.Context
	double    bool                   // vectors hold 4 float64, not 8 float32
	constants map[string]operand.Mem // by name
	labels    int                    // of so many stores
}

// family is one pair of files.
type family struct {
	name  string
	build func(g *generator)
}

// packages are the families by the name of the package that they belong to.
var packages = map[string][]family{
	"kernel": {
		{"gemm", gemm},
		{"arithmetic", arithmetic},
		{"functions", functions},
		{"sums", sums},
		{"choices", choices},
		{"images", images},
		{"rows", rows},
		{"columns", columns},
	},
	"vector": {{"update", updates}},
	"scan":   {{"entries", entries}, {"criteo", criteo}},
	"reduce": {{"combine", combines}},
	"half":   {{"convert", conversions}},
	"glance": {{"carries", carries}},
}

func main() {
	flags := flag.NewFlagSet("asmgen", flag.ExitOnError) // avo has the global one
	out := flags.String("out", ".", "directory of the package that gets the assembly")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}
	for _, f := range packages[filepath.Base(*out)] {
		if err := write(*out, f); err != nil {
			fmt.Fprintf(os.Stderr, "asmgen: %s: %v\n", f.name, err)
			os.Exit(1)
		}
	}
}

func write(dir string, f family) error {
	g := &generator{Context: build.NewContext(), constants: map[string]operand.Mem{}}
	f.build(g)
	file, err := g.Result()
	if err != nil {
		return err
	}
	cfg := printer.Config{Argv: []string{"asmgen"}, Name: "asmgen", Pkg: filepath.Base(dir)}
	g.ConstraintExpr("amd64")
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	text, err := printer.NewGoAsm(cfg).Print(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, f.name+"_amd64.s"), text, 0o644); err != nil {
		return err
	}
	if text, err = printer.NewStubs(cfg).Print(file); err != nil {
		return err
	}
	if text, err = format.Source(text); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, f.name+"_amd64.go"), text, 0o644); err != nil {
		return err
	}
	if text, err = format.Source(elsewhere(text)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, f.name+"_other.go"), text, 0o644)
}

// elsewhere turns declarations into functions for machines without the
// assembly, where nothing calls them.
func elsewhere(stubs []byte) []byte {
	declaration := regexp.MustCompile(`(?m)^func .*$`)
	text := declaration.ReplaceAllStringFunc(string(stubs), func(d string) string {
		return d + " { panic(elsewhere) }"
	})
	text = strings.ReplaceAll(text, "//go:noescape\n", "")
	text = strings.Replace(text, "//go:build amd64", "//go:build !amd64", 1)
	return bytes.TrimLeft([]byte(text), "\n")
}
