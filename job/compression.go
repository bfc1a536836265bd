package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/internal/nearest"
)

// Compression says how gradients are made smaller on their way. How much they lose is
// decided by Kind, and whether that comes with a later step by Feedback.
type Compression struct {
	// Kind is none, f16, bf16, int8, onebit, topk or powersgd.
	Kind string `yaml:"kind"`
	// Ratio is the share of a gradient that is sent (topk); 0: 0.01.
	Ratio float64 `yaml:"ratio"`
	// Block is how many elements share a scale (int8, onebit); 0: 256 and 512.
	Block int `yaml:"block"`
	// Rank is that of the factors of a gradient (powersgd); 0: 2.
	Rank int `yaml:"rank"`
	// Feedback adds what a step loses to the next: on, off, or auto, on for all kinds but
	// f16 and bf16.
	Feedback string `yaml:"feedback"`
	// Min is the bytes of a bucket below which it goes as it is.
	Min Size `yaml:"min"`
}

const (
	// CompressNone is the kind of compression that is none.
	CompressNone = "none"
	// FeedbackAuto adds what is lost to the next step, but for f16 and bf16.
	FeedbackAuto = "auto"
	// FeedbackOn adds it.
	FeedbackOn = "on"
	// FeedbackOff forgets it.
	FeedbackOff = "off"
)

// compressMin is the least bucket that is compressed where nothing else is said. A message
// over a socket costs as much before its first byte as some tens of KB take on their way.
const compressMin = 16 << 10

// CompressKinds returns what strategy.compression.kind can be.
func CompressKinds() []string { return append([]string{CompressNone}, compress.Kinds()...) }

// Feedbacks returns what strategy.compression.feedback can be.
func Feedbacks() []string { return []string{FeedbackAuto, FeedbackOn, FeedbackOff} }

// Spec is what package compress makes of it; the zero value for none.
func (c *Compression) Spec() compress.Spec {
	s := compress.Spec{Kind: c.Kind, Feedback: c.Feedback == FeedbackOn}
	or := func(n, usual int) int {
		if n == 0 {
			return usual
		}
		return n
	}
	switch c.Kind {
	case compress.KindInt8:
		s.Block = or(c.Block, 256)
	case compress.KindOneBit:
		s.Block = or(c.Block, 512)
	case compress.KindTopK:
		if s.Density = c.Ratio; s.Density == 0 {
			s.Density = .01
		}
	case compress.KindPowerSGD:
		s.Rank = or(c.Rank, 2)
	case compress.KindF16, compress.KindBF16:
		return s
	default:
		return compress.Spec{}
	}
	s.Feedback = c.Feedback != FeedbackOff
	return s
}

// validateCompression checks the kind, that its settings are its own, and that there is
// something to compress.
func (j *Job) validateCompression() error {
	c, field := &j.Strategy.Compression, "strategy.compression."
	for _, w := range []struct {
		name, value string
		known       []string
	}{{"kind", c.Kind, CompressKinds()}, {"feedback", c.Feedback, Feedbacks()}} {
		if !slices.Contains(w.known, w.value) {
			return &FieldError{field + w.name, fmt.Sprintf("%q is not known%s", w.value, nearest.Hint(w.value, w.known))}
		}
	}
	for _, s := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"ratio", c.Ratio != 0, []string{compress.KindTopK}},
		{"block", c.Block != 0, []string{compress.KindInt8, compress.KindOneBit}},
		{"rank", c.Rank != 0, []string{compress.KindPowerSGD}},
	} {
		if s.set && !slices.Contains(s.of, c.Kind) {
			return &FieldError{field + s.name, fmt.Sprintf("is of %s, and kind is %s: leave it out, or set that kind", strings.Join(s.of, " or "), c.Kind)}
		}
	}
	switch {
	case c.Min < 0:
		return &FieldError{field + "min", "must not be negative"}
	case c.Kind == CompressNone:
		return nil
	case j.Strategy.Kind == "serial" || j.Strategy.Kind == "ps":
		return &FieldError{field + "kind", fmt.Sprintf("%s sums no gradients between workers: set strategy.kind=allreduce, or kind none", j.Strategy.Kind)}
	case j.Precision != "f32":
		return &FieldError{field + "kind", fmt.Sprintf("only gradients of f32 are compressed, precision is %s: set precision=f32, or kind none", j.Precision)}
	case c.Feedback == FeedbackOff && !slices.Contains([]string{compress.KindF16, compress.KindBF16, compress.KindInt8}, c.Kind):
		return &FieldError{field + "feedback", fmt.Sprintf("training does not converge by %s without: set auto", c.Kind)}
	case c.Ratio < 0 || c.Ratio > 1 || c.Ratio != c.Ratio:
		return &FieldError{field + "ratio", fmt.Sprintf("must be above 0 and at most 1, is %g", c.Ratio)}
	case c.Kind == compress.KindOneBit && (c.Block < 0 || c.Block%64 != 0):
		return &FieldError{field + "block", fmt.Sprintf("must be a multiple of 64 (onebit), is %d", c.Block)}
	case c.Block < 0:
		return &FieldError{field + "block", fmt.Sprintf("must be at least 1, is %d", c.Block)}
	case c.Rank < 0 || c.Rank > MaxCompressRank:
		return &FieldError{field + "rank", fmt.Sprintf("must be 1 to %d, is %d", MaxCompressRank, c.Rank)}
	}
	return nil
}

// MaxCompressRank bounds the rank of factors: above, they are no smaller than most gradients.
const MaxCompressRank = 1024
