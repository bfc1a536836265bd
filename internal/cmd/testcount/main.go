// Command testcount reads what go test -json prints, shows the output of what
// failed and a line a package, and ends with the number of tests that passed,
// failed and were skipped. It fails if a test failed or none ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is what test2json says.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath                    string
}

func main() {
	c := counter{output: map[string]*strings.Builder{}}
	if err := c.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
	if !c.summary(os.Stdout) {
		os.Exit(1)
	}
}

// counter counts tests; subtests count, packages do not.
type counter struct {
	passed, failed, skipped int
	broken                  int // packages that failed outside a test
	output                  map[string]*strings.Builder
	skips                   []string
}

func (c *counter) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(lines.Text()) // of the go command itself
			continue
		}
		c.take(e)
	}
	return lines.Err()
}

func (c *counter) take(e event) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if c.output[key] == nil {
			c.output[key] = &strings.Builder{}
		}
		c.output[key].WriteString(e.Output)
		if e.Action == "build-output" {
			fmt.Print(e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			fmt.Printf("%-5s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
			if e.Action == "fail" {
				c.broken++
				c.show(key)
			}
			return
		}
		c.count(e, key)
	}
}

func (c *counter) count(e event, key string) {
	switch e.Action {
	case "pass":
		c.passed++
	case "fail":
		c.failed++
		c.show(key)
	case "skip":
		c.skipped++
		reason := ""
		if b := c.output[key]; b != nil {
			reason = lastLine(b.String())
		}
		c.skips = append(c.skips, fmt.Sprintf("%s: %s", key, reason))
	}
	delete(c.output, key)
}

// lastLine is the last line of a test's output that the test itself wrote.
func lastLine(text string) string {
	lines := slices.Collect(strings.Lines(text))
	for _, l := range slices.Backward(lines) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			return l
		}
	}
	return ""
}

func (c *counter) show(key string) {
	if b := c.output[key]; b != nil {
		fmt.Print(b.String())
	}
}

// summary prints the closing lines and reports whether all is well.
func (c *counter) summary(w io.Writer) bool {
	for _, s := range c.skips {
		fmt.Fprintln(w, "skipped", s)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", c.passed, c.failed+c.broken, c.skipped)
	return c.failed == 0 && c.broken == 0 && c.passed > 0
}
