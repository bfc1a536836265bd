package data

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/data/rows"
)

// textLimit is the most bytes that are read of a file of text.
const textLimit = 1 << 31

// text is a Source of windows over a text of bytes. Row r is the Context bytes
// from lo + r·stride on, as numbers of the vocabulary, and as label the bytes
// that follow each of them. Windows are cut when read: memory is one byte a
// byte of the file.
type text struct {
	badRows // none: every sequence of bytes is a text
	tokens  []uint8
	context int
	stride  int
	size    int // of the vocabulary
	rows    int
}

// readText reads a file of text, and the one that its vocabulary is of.
func readText(ctx context.Context, spec *Spec) (*text, error) {
	all, err := readBytes(ctx, spec.Path)
	if err != nil {
		return nil, err
	}
	vocabulary := all
	if spec.Vocabulary != "" && spec.Vocabulary != spec.Path {
		if vocabulary, err = readBytes(ctx, spec.Vocabulary); err != nil {
			return nil, err
		}
	}
	number, size := numberBytes(vocabulary)
	t := &text{context: spec.Context, stride: spec.Stride, size: size}
	if t.stride == 0 {
		t.stride = t.context
	}
	lo, hi := textRange(len(all), spec.From, spec.To)
	if t.tokens, err = encode(spec, all, lo, hi, number); err != nil {
		return nil, err
	}
	if n := len(t.tokens) - 1 - t.context; n >= 0 {
		t.rows = n/t.stride + 1
	}
	if t.rows == 0 {
		return nil, fmt.Errorf("data: %s: %d bytes are fewer than a row of %d and the byte after it", spec.Path, hi-lo, t.context)
	}
	if spec.Limit > 0 {
		t.rows = min(t.rows, spec.Limit)
	}
	return t, nil
}

// readBytes reads a whole file, unpacked.
func readBytes(ctx context.Context, path string) ([]byte, error) {
	r, err := openStream(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("data: text: %w", err)
	}
	all, err := io.ReadAll(io.LimitReader(r, textLimit+1))
	if closed := r.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("data: %s: %w", path, err)
	case len(all) > textLimit:
		return nil, fmt.Errorf("data: %s is longer than the limit of %d bytes", path, textLimit)
	case len(all) == 0:
		return nil, fmt.Errorf("data: %s is empty", path)
	}
	return all, nil
}

// numberBytes numbers the distinct bytes of a text in ascending order; -1 is a
// byte that it does not have.
func numberBytes(all []byte) (number [256]int, size int) {
	var there [256]bool
	for _, b := range all {
		there[b] = true
	}
	for b := range number {
		number[b] = -1
		if there[b] {
			number[b] = size
			size++
		}
	}
	return number, size
}

// textRange is the part of n bytes between two shares of them; 0 is the end as
// well as the beginning.
func textRange(n int, from, to float64) (lo, hi int) {
	at := func(share float64) int { return int(math.Round(share * float64(n))) }
	if to == 0 {
		return at(from), n
	}
	return at(from), at(to)
}

// encode replaces the bytes lo to hi of a text by their numbers.
func encode(spec *Spec, all []byte, lo, hi int, number [256]int) ([]uint8, error) {
	tokens, line := make([]uint8, 0, hi-lo), 1
	for i, b := range all[:hi] {
		if i >= lo && number[b] < 0 {
			return nil, fmt.Errorf("data: %w", &RowError{
				File: spec.Path, Line: line, Reason: fmt.Sprintf("the byte %q is not in the vocabulary, that of %s", b, spec.Vocabulary),
			})
		}
		if i >= lo {
			tokens = append(tokens, uint8(number[b]))
		}
		if b == '\n' {
			line++
		}
	}
	return tokens, nil
}

// Columns implements Source.
func (t *text) Columns() []ColumnSpec {
	return []ColumnSpec{
		{Name: "label", Kind: DenseColumn, Dim: t.context},
		{Name: "tokens", Kind: RaggedColumn, Dim: t.size, PerRow: t.context},
	}
}

func (t *text) Rows() int    { return t.rows }
func (t *text) Close() error { return nil }

// Read implements Source. Cost: about 2 ns a byte.
func (t *text) Read(at []int, b *Batch) error {
	if err := rows.Check(at, t.rows); err != nil {
		return err
	}
	b.Reset(len(at), 2)
	label, tokens := &b.Columns[0], &b.Columns[1]
	n := len(at) * t.context
	label.Values = rows.Resize(label.Values, n)
	tokens.IDs = rows.Resize(tokens.IDs, n)
	tokens.Values = rows.Resize(tokens.Values, n)
	tokens.Offsets = rows.Resize(tokens.Offsets, len(at)+1)
	tokens.Offsets[0] = 0
	rows.Ones(tokens.Values)
	for i, row := range at {
		to := i * t.context
		window := t.tokens[row*t.stride : row*t.stride+t.context+1]
		for j := range t.context {
			tokens.IDs[to+j] = int64(window[j])
			label.Values[to+j] = float32(window[j+1])
		}
		tokens.Offsets[i+1] = int64(to + t.context)
	}
	return nil
}
