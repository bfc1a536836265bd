package compress_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/compress"
)

// A text is that of one spec, and reads back; it begins with that of the codec.
func TestSpecText(t *testing.T) {
	for text, want := range map[string]compress.Spec{
		"f16":                  {Kind: compress.KindF16},
		"bf16+feedback":        {Kind: compress.KindBF16, Feedback: true},
		"int8(256)":            {Kind: compress.KindInt8, Block: 256},
		"onebit(512)+feedback": {Kind: compress.KindOneBit, Block: 512, Feedback: true},
		"topk(0.01)+feedback":  {Kind: compress.KindTopK, Density: .01, Feedback: true},
		"powersgd(4)+feedback": {Kind: compress.KindPowerSGD, Rank: 4, Feedback: true},
	} {
		got, err := compress.ParseSpec(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is read as %+v, which is %s: %v", text, got, got, err)
		}
		if c, err := got.Codec(); err != nil || c != nil && !strings.HasPrefix(text, c.String()) {
			t.Errorf("%s makes the codec %v: %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"":                      `unknown codec ""`,
		"onebyt(512)":           `did you mean "onebit"?`,
		"onebit":                "want f16, bf16",
		"onebit(512":            "want f16, bf16",
		"onebit(0512)":          "want f16, bf16",
		"f16(2)":                "want f16, bf16",
		"f16 +feedback":         "unknown codec",
		"onebit(100)":           "want a multiple of 64",
		"int8(0)":               "want 1 at least",
		"topk(1.5)":             "topk",
		"powersgd(0)":           "want 1 at least",
		"powersgd(2)":           "without feedback",
		"f16+feedback+feedback": "unknown codec",
	} {
		if s, err := compress.ParseSpec(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v: %v, want %q", text, s, err, want)
		}
	}
}

// Factors foretells what LowRank sums.
func TestFactors(t *testing.T) {
	matrices := []compress.Matrix{{Lo: 3, Rows: 10, Cols: 20}, {Lo: 210, Rows: 2, Cols: 3}}
	for rank := 1; rank < 9; rank++ {
		l, err := compress.NewLowRank(230, rank, matrices)
		if err != nil {
			t.Fatal(err)
		}
		if p, q := compress.Factors(230, rank, matrices); p != len(l.P()) || q != len(l.Q()) {
			t.Errorf("rank %d: %d and %d elements, LowRank has %d and %d", rank, p, q, len(l.P()), len(l.Q()))
		}
	}
}

// A rank that goes on alone with its residual has it bit by bit, also where it is -0: the
// sign decides what one bit says of it.
func TestRestoreKeepsSigns(t *testing.T) {
	minus := float32(math.Copysign(0, -1))
	first := []float32{1, 1}
	if err := compress.Restore(first, nil, 0, 0, 1, []compress.State{{First: []float32{minus, 2}}}); err != nil {
		t.Fatal(err)
	}
	if !math.Signbit(float64(first[0])) || first[1] != 2 {
		t.Errorf("-0 and 2 come back as %v", first)
	}
}
