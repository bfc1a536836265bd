package compress

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangline/gangline/internal/nearest"
)

// The kinds of a Spec.
const (
	KindF16      = "f16"
	KindBF16     = "bf16"
	KindInt8     = "int8"
	KindOneBit   = "onebit"
	KindTopK     = "topk"
	KindPowerSGD = "powersgd" // LowRank, which is no Codec
)

// Kinds returns all of them.
func Kinds() []string {
	return []string{KindF16, KindBF16, KindInt8, KindOneBit, KindTopK, KindPowerSGD}
}

// feedbackMark ends the text of a Spec with feedback.
const feedbackMark = "+feedback"

// Spec says how a sum over ranks is compressed. Its text, such as "onebit(512)+feedback", is
// what plans and reports have of it: that of the codec, and whether what is lost comes later.
type Spec struct {
	Kind     string
	Block    int     // of int8 and onebit: elements that share a scale
	Density  float64 // of topk: the share of elements that are sent
	Rank     int     // of powersgd
	Feedback bool
}

// String is the text of a Spec.
func (s Spec) String() string {
	text := s.Kind
	switch s.Kind {
	case KindInt8, KindOneBit:
		text = fmt.Sprintf("%s(%d)", s.Kind, s.Block)
	case KindTopK:
		text = fmt.Sprintf("%s(%v)", s.Kind, s.Density)
	case KindPowerSGD:
		text = fmt.Sprintf("%s(%d)", s.Kind, s.Rank)
	}
	if s.Feedback {
		text += feedbackMark
	}
	return text
}

// ParseSpec is the inverse of String. A text that is not the one that String writes, and
// settings that no codec has, are errors.
func ParseSpec(text string) (Spec, error) {
	var s Spec
	body, feedback := strings.CutSuffix(text, feedbackMark)
	s.Feedback = feedback
	kind, arg, _ := strings.Cut(strings.TrimSuffix(body, ")"), "(")
	s.Kind = kind
	var err error
	switch kind {
	case KindInt8, KindOneBit:
		s.Block, err = strconv.Atoi(arg)
	case KindTopK:
		s.Density, err = strconv.ParseFloat(arg, 64)
	case KindPowerSGD:
		s.Rank, err = strconv.Atoi(arg)
	case KindF16, KindBF16:
	default:
		return s, fmt.Errorf("compress: unknown codec %q%s", text, nearest.Hint(kind, Kinds()))
	}
	if err == nil && s.String() == text {
		return s, s.Validate()
	}
	return s, fmt.Errorf("compress: codec %q: want f16, bf16, int8(256), onebit(512), topk(0.01) or powersgd(2), with %s behind it or not", text, feedbackMark)
}

// Validate reports settings that no codec has.
func (s Spec) Validate() error {
	if s.Kind != KindPowerSGD {
		_, err := s.Codec()
		return err
	}
	switch {
	case s.Rank < 1:
		return fmt.Errorf("compress: powersgd of rank %d: want 1 at least", s.Rank)
	case !s.Feedback:
		return fmt.Errorf("compress: powersgd does not converge without feedback")
	}
	return nil
}

// Codec makes the codec, for one runner alone. Of powersgd there is none, and so no error
// either.
func (s Spec) Codec() (Codec, error) {
	switch s.Kind {
	case KindF16:
		return F16{}, nil
	case KindBF16:
		return BF16{}, nil
	case KindInt8:
		return NewInt8(s.Block)
	case KindOneBit:
		return NewOneBit(s.Block)
	case KindTopK:
		return NewTopK(s.Density)
	case KindPowerSGD:
		return nil, nil //nolint:nilnil // it is no codec, which is no error
	}
	return nil, fmt.Errorf("compress: unknown codec %q%s", s.Kind, nearest.Hint(s.Kind, Kinds()))
}

// Factors returns the elements of the two factors that LowRank sums of a vector of n: P, with
// all that belongs to no matrix or to one that does not gain behind it, and Q.
func Factors(n, rank int, matrices []Matrix) (p, q int) {
	p = n
	for _, m := range matrices {
		if gains(rank, m) {
			p += rank*m.Rows - m.Rows*m.Cols
			q += rank * m.Cols
		}
	}
	return p, q
}

// gains reports whether the factors of a matrix are smaller than it is.
func gains(rank int, m Matrix) bool { return rank*(m.Rows+m.Cols) < m.Rows*m.Cols }
