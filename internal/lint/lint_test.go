// Package lint holds the house rules that a linter does not know, as tests: the
// floors of ARCHITECTURE.md, the size of files, functions and packages, and what
// pure packages must not do.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The limits on what a reader has to hold in the head.
const (
	functionLinesMax = 70
	fileLinesMax     = 500
	packageLinesMax  = 2500 // without tests and generated code
)

const modulePath = "github.com/gangline/gangline"

// root is the module's directory.
const root = "../.."

// source is one parsed file.
type source struct {
	path  string // relative to the root
	pkg   string // directory relative to the root
	text  string
	lines int
	fset  *token.FileSet
	file  *ast.File
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) generated() bool { return ast.IsGenerated(s.file) }

// sources parses every Go file of the module.
func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, &source{
			path: filepath.ToSlash(rel), pkg: packageOf(rel), text: string(text),
			lines: strings.Count(string(text), "\n"), fset: fset, file: file,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found %d Go files: the walk is broken", len(all))
	}
	return all
}

// packageOf is the directory of a file; the root's package goes by its name.
func packageOf(rel string) string {
	if dir := filepath.ToSlash(filepath.Dir(rel)); dir != "." {
		return dir
	}
	return filepath.Base(modulePath)
}

// floor is a row of the table in ARCHITECTURE.md.
type floor struct {
	level int
	pure  bool
}

// floors reads the table.
func floors(t *testing.T) map[string]floor {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\|.*\\| *(yes)? *\\|$")
	out := map[string]floor{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		level, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		out[m[2]] = floor{level, m[3] == "yes"}
	}
	if len(out) < 20 {
		t.Fatalf("the floors table has %d rows: its form changed", len(out))
	}
	return out
}

// Imports go to lower floors only; internal packages below internal/ are free.
func TestFloors(t *testing.T) {
	table := floors(t)
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
		own, ok := table[s.pkg]
		if free(s.pkg) {
			continue
		}
		if !ok {
			t.Errorf("%s: package %s is not in the floors table of ARCHITECTURE.md", s.path, s.pkg)
			continue
		}
		if s.test() {
			continue
		}
		for _, imp := range s.file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			dep, ours := strings.CutPrefix(path, modulePath+"/")
			if path == modulePath {
				dep, ours = filepath.Base(modulePath), true
			}
			if !ours || free(dep) {
				continue
			}
			if below, ok := table[dep]; !ok || below.level >= own.level {
				t.Errorf("%s: %s (floor %d) imports %s (floor %d)", s.path, s.pkg, own.level, dep, below.level)
			}
		}
	}
	for pkg := range table {
		if !seen[pkg] {
			t.Errorf("ARCHITECTURE.md lists %s, which does not exist", pkg)
		}
	}
}

// free reports whether a package stands outside the floors: helpers below
// internal/ and programs of users below examples/.
func free(pkg string) bool {
	return strings.Contains("/"+pkg+"/", "/internal/") || strings.HasPrefix(pkg, "examples")
}

// Pure packages do no I/O, hold no goroutines and read no clock.
func TestPure(t *testing.T) {
	table := floors(t)
	banned := []string{"net", "os", "sync", "context", "math/rand", "math/rand/v2", "sync/atomic", "os/exec"}
	for _, s := range sources(t) {
		if !table[s.pkg].pure || s.test() {
			continue
		}
		for _, imp := range s.file.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); slices.Contains(banned, path) {
				t.Errorf("%s: pure package %s imports %s", s.path, s.pkg, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: pure package starts a goroutine", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Sleep") {
					t.Errorf("%s: pure package reads the clock", s.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// Functions, files and packages stay small.
func TestSizes(t *testing.T) {
	perPackage := map[string]int{}
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		if s.lines > fileLinesMax {
			t.Errorf("%s has %d lines, the limit is %d", s.path, s.lines, fileLinesMax)
		}
		if s.test() {
			continue
		}
		perPackage[s.pkg] += s.lines
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > functionLinesMax {
				t.Errorf("%s: %s has %d lines, the limit is %d", s.fset.Position(f.Pos()), f.Name.Name, n, functionLinesMax)
			}
		}
	}
	for pkg, n := range perPackage {
		if n > packageLinesMax {
			t.Errorf("package %s has %d lines, the limit is %d", pkg, n, packageLinesMax)
		}
	}
}

// Unfinished marks, exits outside programs and init functions are refused.
func TestForbidden(t *testing.T) {
	marks := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		if m := marks.FindString(s.text); m != "" {
			t.Errorf("%s: unfinished mark %s", s.path, m)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: init function", s.fset.Position(n.Pos()))
				}
			case *ast.CallExpr:
				call := callee(n)
				if !s.test() && s.file.Name.Name != "main" && (call == "os.Exit" || strings.HasPrefix(call, "log.Fatal")) {
					t.Errorf("%s: %s outside a program", s.fset.Position(n.Pos()), call)
				}
			}
			return true
		})
	}
}

// callee is "pkg.Name" of a call, if it has that form.
func callee(c *ast.CallExpr) string {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + sel.Sel.Name
}

// Every direct dependency has a line in ARCHITECTURE.md that says what it is for.
func TestDependenciesExplained(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	arch, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	found := direct.FindAllStringSubmatch(string(mod), -1)
	if len(found) == 0 {
		t.Fatal("go.mod has no direct dependency: its form changed")
	}
	for _, m := range found {
		if !strings.Contains(string(arch), "`"+m[1]+"`") {
			t.Errorf("ARCHITECTURE.md does not say what %s is for", m[1])
		}
	}
}
