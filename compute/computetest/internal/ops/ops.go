// Package ops lists the operators that there are, for tests that want all of them.
package ops

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/gangline/gangline/graph"
)

// All reads the names of the operators from the source file that declares them.
// Sources, which compute nothing, are left out.
func All(t *testing.T, path string) []graph.Op {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []graph.Op
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, x := range v.Values {
				all = append(all, name(t, x)...)
			}
		}
		return true
	})
	if len(all) < 80 {
		t.Fatalf("%s declares %d operators only", path, len(all))
	}
	return all
}

func name(t *testing.T, x ast.Expr) []graph.Op {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return nil
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	n := graph.Node{Op: graph.Op(s)}
	if n.IsSource() && n.Op != graph.Const {
		return nil
	}
	return []graph.Op{n.Op}
}
