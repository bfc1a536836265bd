package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Errors of a fault.
var (
	errSurvived = errors.New("SURVIVED: the test passes with the fault in place")
	errStale    = errors.New("the list is stale")
)

// outputMax bounds what is shown of the output of a build or test, in bytes.
const outputMax = 2000

// planter plants faults in one tree.
type planter struct {
	root, dir string
	timeout   time.Duration
	out       io.Writer
}

// all sees that the tests pass as things are, then plants fault after fault.
func (p *planter) all(ctx context.Context, list []fault) error {
	passed, failed := 0, 0
	sound := map[catcher]error{}
	for i := range list {
		f := &list[i]
		start := time.Now()
		err, seen := sound[f.by]
		if !seen {
			err = p.baseline(ctx, f.by)
			sound[f.by] = err
		}
		if err == nil {
			err = p.plant(ctx, f)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		verdict := f.by.String()
		if err != nil {
			verdict = err.Error()
			failed++
		} else {
			passed++
		}
		fmt.Fprintf(p.out, "%-60s  %-42s %6.1fs\n", f.name, verdict, time.Since(start).Seconds())
	}
	fmt.Fprintf(p.out, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d faults were not caught as the list says", failed, len(list))
	}
	return nil
}

// baseline runs a test without a fault.
func (p *planter) baseline(ctx context.Context, c catcher) error {
	caught, output, err := p.test(ctx, c, "")
	if err == nil && caught {
		err = fmt.Errorf("the test fails without any fault:\n%s", output)
	}
	return err
}

// plant returns nil if the fault is caught.
func (p *planter) plant(ctx context.Context, f *fault) error {
	changed, err := f.apply(p.root)
	if err != nil {
		return err
	}
	copied := filepath.Join(p.dir, "changed.go")
	if err := os.WriteFile(copied, changed, 0o644); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(p.root, f.file): copied}})
	if err != nil {
		return err
	}
	path := filepath.Join(p.dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		return err
	}
	caught, _, err := p.test(ctx, f.by, path)
	if err == nil && !caught {
		err = errSurvived
	}
	return err
}

// apply returns the fault's file with the fault in it.
func (f *fault) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStale, err)
	}
	if n := bytes.Count(text, []byte(f.old)); n != 1 {
		return nil, fmt.Errorf("%w: %s has its text %d times, want once", errStale, f.file, n)
	}
	return bytes.Replace(text, []byte(f.old), []byte(f.new), 1), nil
}

// test builds a catcher, with an overlay or none, and runs it. caught says that
// it failed of itself; a test that does not compile, does not exist, is skipped
// or does not end in time is an error, for it says nothing about the fault.
func (p *planter) test(ctx context.Context, c catcher, overlay string) (caught bool, output string, err error) {
	binary := filepath.Join(p.dir, "catcher.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", overlay, "./"+c.pkg)
	build.Dir = p.root
	if text, err := build.CombinedOutput(); err != nil {
		return false, "", fmt.Errorf("%w: it does not compile: %w:\n%s", errStale, err, tail(text))
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	args := []string{"-test.v", "-test.run", pattern(c.test)}
	if rapid, err := usesRapid(filepath.Join(p.root, c.pkg)); err != nil {
		return false, "", err
	} else if rapid {
		// What is found must not depend on luck, nor be left in the tree.
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile")
	}
	run := exec.CommandContext(ctx, binary, args...)
	run.Dir = filepath.Join(p.root, c.pkg)
	run.WaitDelay = 10 * time.Second
	if overlay != "" { // the programs that a test of chaos builds have the fault, too
		run.Env = append(os.Environ(), "GANGLINE_CHAOS_BUILD=-overlay="+overlay)
	}
	text, err := run.CombinedOutput()
	output = tail(text)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, output, fmt.Errorf("the test %s did not end within %v:\n%s", c, p.timeout, output)
	case errors.As(err, &exit):
		return true, output, nil
	case err != nil:
		return false, output, err
	case !bytes.Contains(text, []byte("--- PASS: "+c.test)):
		return false, output, fmt.Errorf("%w: there is no test %s, or it was skipped:\n%s", errStale, c, output)
	}
	return false, output, nil
}

// pattern is what -test.run wants for one test, or for a subtest.
func pattern(test string) string { return "^" + strings.ReplaceAll(test, "/", "$/^") + "$" }

// usesRapid reports whether the tests of a directory know the flags of rapid.
func usesRapid(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return true, nil
		}
	}
	return false, nil
}

// tail is the end of an output, as far as it is of interest.
func tail(text []byte) string {
	s := strings.TrimSpace(string(text))
	if len(s) > outputMax {
		s = "..." + s[len(s)-outputMax:]
	}
	return s
}
