package main

import (
	"fmt"
	"strings"
)

// preface is the text before the table of the page.
const preface = `# Planted faults

A test is worth what it would notice. This page lists mistakes that somebody
could make in the code, what each would do to a user, and the one test that
notices it. ` + "`go run ./internal/cmd/faults`" + ` plants them one at a time, in a copy that
the compiler sees in place of the file (the tree is not touched), runs that test
and reports the ones that survive, or that no longer fit the code; it takes some
minutes. ` + "`-run REGEXP`" + ` chooses by name, file or test, ` + "`-list`" + ` prints the list, and
` + "`-doc`" + ` writes this page, which is made from the list in ` + "`internal/cmd/faults`" + `: change
that, not this. A fault that you find in the field belongs here, with its test.

Plans have faults of their own, planted in the plan and not in the code: see
` + "`strategy/faults_test.go`" + ` and ` + "`plan/check/check_test.go`" + `.

`

// page is docs/faults.md.
func page(list []fault) string {
	var b strings.Builder
	b.WriteString(preface)
	fmt.Fprintf(&b, "%d faults:\n\n| fault | where | what it would do to a user | caught by |\n|---|---|---|---|\n", len(list))
	for _, f := range list {
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", cell(f.name), f.file, cell(f.harm), f.by)
	}
	return b.String()
}

// cell makes text fit to stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
