// Package draft writes a job for a file that it is shown: what the file seems to
// be, a model for its labels, and comments that say what is guessed.
package draft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangline/gangline/data/detect"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/job"
)

// Draft is a job in the making.
type Draft struct {
	// Guess is what the file seems to be.
	Guess detect.Guess
	// Notes say what was guessed, a sentence each.
	Notes []string
	// Text is the job.
	Text []byte
}

// headOf reads the first bytes of a file, compression undone.
func headOf(ctx context.Context, path string) (head []byte, err error) {
	r, err := file.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if head, err = io.ReadAll(io.LimitReader(r, detect.HeadBytes)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return head, nil
}

// Guess tells the format of a file by what it holds, compression undone.
func Guess(ctx context.Context, path string) (detect.Guess, error) {
	head, err := headOf(ctx, path)
	if err != nil {
		return detect.Guess{}, err
	}
	g, err := detect.Head(head, len(head) < detect.HeadBytes)
	if err != nil {
		return g, fmt.Errorf("%s: cannot tell its format: %w", path, err)
	}
	return g, nil
}

// For drafts a job for a file of training rows, to be written to jobFile: paths in
// it are relative to that.
func For(ctx context.Context, path, jobFile string) (*Draft, error) {
	g, err := Guess(ctx, path)
	if err != nil {
		return nil, err
	}
	w := &writer{d: &Draft{Guess: g}, path: path, jobFile: jobFile}
	write, ok := map[string]func(context.Context) error{
		"libsvm": w.libsvm, "criteo": w.criteo, "idx": w.idx, "text": w.text,
	}[g.Format]
	if !ok {
		write = w.table
	}
	if err := write(ctx); err != nil {
		return nil, err
	}
	w.d.Text = w.job()
	if _, err := job.Parse(jobFile, w.d.Text, nil); err != nil {
		return nil, fmt.Errorf("%s: no job comes of it: %w", path, err)
	}
	return w.d, nil
}

// writer collects the parts of a job.
type writer struct {
	d             *Draft
	path, jobFile string
	model         string   // fields of the model
	source        string   // further fields of a source
	columns       []string // further fields of data, a line each
	eval          string   // fields of the rows to test on; "": a comment
	rule          string
	batch, epochs int
}

// note keeps what was guessed.
func (w *writer) note(format string, args ...any) {
	w.d.Notes = append(w.d.Notes, fmt.Sprintf(format, args...))
}

// relative is a path as the job has it: from where the job is, so that both may move
// together, but what was said from the root and is not below the job stays so.
func (w *writer) relative(path string) string {
	dir, err := filepath.Abs(filepath.Dir(w.jobFile))
	if err != nil {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && (filepath.IsLocal(rel) || !filepath.IsAbs(path)) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(abs)
}

// job puts the text together.
func (w *writer) job() []byte {
	var b strings.Builder
	name := strings.TrimSuffix(filepath.Base(w.jobFile), filepath.Ext(w.jobFile))
	fmt.Fprintf(&b, "# A job for %s, which seems to be %s: %s.\n", filepath.Base(w.path), w.d.Guess.Format, w.d.Guess.Why)
	for _, n := range w.d.Notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	fmt.Fprintf(&b, "#   gangline data stats %s\n#   gangline train %s\n", filepath.Base(w.jobFile), filepath.Base(w.jobFile))
	fmt.Fprintf(&b, "name: %s\nmodel: {%s}\ndata:\n", quote(name), w.model)
	for _, line := range w.columns {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	train := fmt.Sprintf("format: %s, path: %s%s", w.d.Guess.Format, quote(w.relative(w.path)), w.source)
	fmt.Fprintf(&b, "  train: {%s}\n", train)
	if w.eval != "" {
		fmt.Fprintf(&b, "  eval: {%s}\n", w.eval)
	} else {
		fmt.Fprintf(&b, "  # Name rows to test on; without them nothing is tested:\n  # eval: {format: %s, path: test-file%s}\n", w.d.Guess.Format, w.source)
	}
	fmt.Fprintf(&b, "batch: %d     # examples a step\nepochs: %d\noptimizer: {%s}\n", w.batch, w.epochs, w.rule)
	b.WriteString("# More processes: allreduce adds gradients up over workers, ps keeps parameters on servers.\n# strategy: {kind: allreduce, workers: 2}\n")
	fmt.Fprintf(&b, "# checkpoint: {dir: %s, every: 1000}\n", quote(name+"-checkpoints"))
	return []byte(b.String())
}

// quote is a text of YAML, in quotes where it needs them.
func quote(s string) string {
	plain := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" &&
		strings.ContainsAny(s[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_./")
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", ".inf", ".nan":
		plain = false
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// sibling finds the file of another part of the same data: train in the name
// becomes test, or .t is added, as data sets of libsvm have it. "" if there is none.
func sibling(path string, changes ...[2]string) string {
	dir, name := filepath.Split(path)
	for _, c := range changes {
		other := name + c[1]
		if c[0] != "" {
			if other = strings.Replace(name, c[0], c[1], 1); other == name {
				continue
			}
		}
		if info, err := os.Stat(filepath.Join(dir, other)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, other)
		}
	}
	return ""
}

// tests finds the test file beside a training file.
func tests(path string) string {
	return sibling(path, [2]string{"train", "test"}, [2]string{"Train", "Test"}, [2]string{".tr.", ".te."}, [2]string{"", ".t"})
}

// classes says what labels ask for: logistic, softmax or linear, and how the
// classes are numbered.
type classes struct {
	kind        string
	n, base     int
	explanation string
}

// most is how many classes are taken for classes, and not for values.
const mostClasses = 100

// classesOf judges labels, ascending.
func classesOf(labels []float64) classes {
	whole := len(labels) > 0
	for _, v := range labels {
		whole = whole && v == math.Trunc(v)
	}
	if !whole || len(labels) >= detect.LabelsMax {
		return classes{kind: "linear", explanation: "are numbers"}
	}
	lo, hi := labels[0], labels[len(labels)-1]
	switch {
	case hi <= 1 && lo >= -1 && len(labels) <= 2 && (lo >= 0 || len(labels) == 1 || hi == 1):
		return classes{kind: "logistic", explanation: fmt.Sprintf("are %s", list(labels))}
	case lo == 1 && hi == 2:
		return classes{kind: "logistic", base: 1, explanation: "are 1 and 2"}
	case (lo == 0 || lo == 1) && hi-lo < mostClasses:
		return classes{kind: "softmax", n: int(hi-lo) + 1, base: int(lo), explanation: fmt.Sprintf("are %g to %g", lo, hi)}
	}
	return classes{kind: "linear", explanation: fmt.Sprintf("are %g to %g", lo, hi)}
}

func list(v []float64) string {
	words := make([]string, len(v))
	for i := range v {
		words[i] = fmt.Sprintf("%g", v[i])
	}
	return strings.Join(words, " and ")
}

// fields are those of a model for classes.
func (c classes) fields() string {
	if c.kind == "softmax" {
		return fmt.Sprintf("kind: softmax, classes: %d", c.n)
	}
	return "kind: " + c.kind
}
