package draft

import (
	"context"
	"fmt"
	"strings"

	"github.com/gangline/gangline/data/detect"
)

// adam is the rule of linear models.
const adam = "kind: adam, lr: 0.01"

// libsvm: the labels decide.
func (w *writer) libsvm(context.Context) error {
	c := classesOf(w.d.Guess.Labels)
	w.model, w.rule, w.batch, w.epochs = c.fields(), adam, 256, 5
	w.note("Guess: the model is %s, because labels in the first lines %s.", c.kind, c.explanation)
	if c.base > 0 {
		w.source += fmt.Sprintf(", label_base: %d", c.base)
	}
	if w.d.Guess.ZeroBased {
		w.source += ", zero_based: true"
	}
	w.testFile()
	return nil
}

// testFile takes the file beside the training file, if there is one.
func (w *writer) testFile() {
	if test := tests(w.path); test != "" {
		w.eval = fmt.Sprintf("format: %s, path: %s%s", w.d.Guess.Format, quote(w.relative(test)), w.source)
		w.note("Guess: the rows to test on are those of %s.", w.relative(test))
	}
}

// criteo: clicks.
func (w *writer) criteo(context.Context) error {
	w.model, w.rule, w.batch, w.epochs = "kind: ctr, hidden: [64], dim: 8", "kind: adagrad, lr: 0.02", 1024, 1
	w.source = ", buckets: 262144"
	w.testFile()
	return nil
}

// text: tokens are the bytes that occur.
func (w *writer) text(context.Context) error {
	w.model, w.rule, w.batch, w.epochs = "kind: gpt, dim: 64, layers: 2, heads: 4", "kind: adamw, lr: 0.001", 32, 1
	path := quote(w.relative(w.path))
	w.source = ", context: 64, to: 0.9"
	w.eval = fmt.Sprintf("format: text, path: %s, context: 64, from: 0.9", path)
	w.note("Guess: the last tenth of the file is to test on.")
	return nil
}

// idx: images, whose labels are in a file of their own.
func (w *writer) idx(ctx context.Context) error {
	pair := [2]string{"images", "labels"}
	changes := [][2]string{{"images-idx3", "labels-idx1"}, {"images.idx3", "labels.idx1"}, pair}
	if w.d.Guess.Record == 1 {
		return fmt.Errorf("%s is a file of labels (a record has one byte): name the file of the images", w.path)
	}
	labels := sibling(w.path, changes...)
	if labels == "" {
		return fmt.Errorf("%s holds %d records of %d bytes; no file of labels is beside it: its name must be the same with labels-idx1 in place of images-idx3",
			w.path, w.d.Guess.Records, w.d.Guess.Record)
	}
	n, err := idxClasses(ctx, labels)
	if err != nil {
		return err
	}
	w.model, w.rule, w.batch, w.epochs = fmt.Sprintf("kind: mlp, hidden: [128], classes: %d", n), "kind: adam, lr: 0.001", 128, 5
	w.source = ", labels: " + quote(w.relative(labels))
	w.note("Guess: labels are in %s, in which the greatest of the first is %d.", w.relative(labels), n-1)
	test := sibling(w.path, [2]string{"train", "t10k"}, [2]string{"train", "test"})
	if test == "" {
		return nil
	}
	if l := sibling(test, changes...); l != "" {
		w.eval = fmt.Sprintf("format: idx, path: %s, labels: %s", quote(w.relative(test)), quote(w.relative(l)))
		w.note("Guess: the rows to test on are those of %s.", w.relative(test))
	}
	return nil
}

// idxClasses is one more than the greatest of the first labels of a file, at least 2.
func idxClasses(ctx context.Context, path string) (int, error) {
	const header = 8
	head, err := headOf(ctx, path)
	if err != nil {
		return 0, err
	}
	g, err := detect.Head(head, false)
	if err != nil || g.Format != "idx" || g.Record != 1 {
		return 0, fmt.Errorf("%s is no idx file of labels", path)
	}
	n := 2
	for _, v := range head[min(header, len(head)):] {
		n = max(n, int(v)+1)
	}
	return n, nil
}

// oneOf reports whether a name is one of some words, whatever its case.
func oneOf(name, words string) bool {
	for w := range strings.FieldsSeq(words) {
		if strings.EqualFold(name, w) {
			return true
		}
	}
	return false
}
