package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
)

// A job names a codec with its settings, and needs none of them.
func TestCompression(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                             "",
		"{kind: none, min: 0}":           "",
		"{kind: f16}":                    "f16",
		"{kind: bf16, feedback: on}":     "bf16+feedback",
		"{kind: int8}":                   "int8(256)+feedback",
		"{kind: int8, feedback: off}":    "int8(256)",
		"{kind: onebit, block: 64}":      "onebit(64)+feedback",
		"{kind: topk, feedback: auto}":   "topk(0.01)+feedback",
		"{kind: topk, ratio: 0.1}":       "topk(0.1)+feedback",
		"{kind: powersgd}":               "powersgd(2)+feedback",
		"{kind: powersgd, rank: 4}":      "powersgd(4)+feedback",
		"{kind: onebit, min: 1KB}":       "onebit(512)+feedback",
		"{kind: topk, ratio: 1, min: 0}": "topk(1)+feedback",
	} {
		j, err := job.Parse("adult.yaml", []byte(adult+"strategy: {kind: allreduce, compression: "+text+"}\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		s := j.Strategy.Compression.Spec()
		if s.Kind == "" && want == "" {
			continue
		}
		if s.String() != want || s.Validate() != nil {
			t.Errorf("%s is %v (%v), want %s", text, s, s.Validate(), want)
		}
	}
}

func TestWrongCompression(t *testing.T) {
	for _, c := range []struct{ set, field, fix string }{
		{"strategy.compression.kind=onebyte", "kind", `"onebyte" is not known: did you mean "onebit"?`},
		{"strategy.compression.feedback=yes", "feedback", `"yes" is not known`},
		{"strategy.compression.ratio=0.1", "ratio", "is of topk, and kind is onebit: leave it out"},
		{"strategy.compression.rank=3", "rank", "is of powersgd, and kind is onebit"},
		{"strategy.compression={kind: f16, block: 64}", "", "holds fields"},
		{"strategy.compression.block=100", "block", "must be a multiple of 64 (onebit), is 100"},
		{"strategy.compression.min=-1", "min", "must not be negative"},
		{"strategy.compression.feedback=off", "feedback", "does not converge by onebit without"},
		{"strategy.kind=ps", "kind", "ps sums no gradients between workers"},
		{"strategy.kind=serial", "kind", "serial sums no gradients between workers"},
		{"precision=f64", "kind", "only gradients of f32 are compressed, precision is f64"},
	} {
		text := adult + "strategy: {kind: allreduce, compression: {kind: onebit}}\n"
		_, err := job.Parse("adult.yaml", []byte(text), []string{c.set})
		f, ok := errors.AsType[*job.FieldError](err)
		if c.field == "" && err != nil && strings.Contains(err.Error(), c.fix) || c.field == "min" && err != nil {
			continue // refused when it is read
		}
		if !ok || f.Field != "strategy.compression."+c.field || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%s: got %v, want %s of %s", c.set, err, c.fix, c.field)
		}
	}
	for _, c := range []struct{ compression, fix string }{
		{"{kind: topk, ratio: 2}", "ratio: must be above 0 and at most 1, is 2"},
		{"{kind: topk, ratio: .nan}", "ratio: must be above 0 and at most 1"},
		{"{kind: int8, block: -3}", "block: must be at least 1, is -3"},
		{"{kind: powersgd, rank: 5000}", "rank: must be 1 to 1024, is 5000"},
		{"{block: 64}", "block: is of int8 or onebit, and kind is none"},
		{"{kin: f16}", `unknown field "kin" in strategy.compression: did you mean "kind"?`},
	} {
		_, err := job.Parse("adult.yaml", []byte(adult+"strategy: {kind: allreduce, compression: "+c.compression+"}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), c.fix) {
			t.Errorf("%s: got %v, want %q", c.compression, err, c.fix)
		}
	}
}
