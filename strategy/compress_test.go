package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
)

// TestCompressedBuckets: buckets of f32 from the size on that the cluster says are
// compressed, others go by an algorithm as without; rows of tables never are.
func TestCompressedBuckets(t *testing.T) {
	for _, c := range []struct {
		model string
		from  int
		spec  compress.Spec
		want  []string // codecs of the all-reduces, in order
	}{
		// Gradients of 12 and 48, 16 and 80, 20 and 120 bytes, each by itself.
		{"mlp", 48, onebit(), []string{"", "onebit(512)+feedback", "", "onebit(512)+feedback", "", "onebit(512)+feedback"}},
		{"mlp", 0, compress.Spec{Kind: compress.KindF16}, slices.Repeat([]string{"f16"}, 6)},
		{"mlp", 0, compress.Spec{}, slices.Repeat([]string{""}, 6)},
		{"sparse", 0, onebit(), []string{"onebit(512)+feedback"}}, // the bias
		{"frozen", 0, onebit(), nil}, // tables of f64
	} {
		program, err := strategy.AllReduce(steps(t)[c.model], strategy.Cluster{Workers: 3, Bucket: 1, Compression: c.spec, CompressFrom: c.from})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, task := range program.Plans[strategy.StepPlan].Ranks[2] {
			switch {
			case task.Op == plan.AllReduce:
				got = append(got, task.Codec)
				if task.Codec == "" && task.Algorithm != plan.ByDoubling || task.Codec != "" && task.Algorithm != plan.ByRing {
					t.Errorf("%s: %s is summed by %v as %q", c.model, task.Name, task.Algorithm, task.Codec)
				}
			case task.Codec != "":
				t.Errorf("%s: %v %s is compressed", c.model, task.Op, task.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s from %d bytes on: codecs %q, want %q", c.model, c.from, got, c.want)
		}
	}
}

func TestWrongCompression(t *testing.T) {
	_, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 2, Compression: compress.Spec{Kind: compress.KindOneBit, Block: 7}})
	if err == nil || !strings.Contains(err.Error(), "want a multiple of 64") {
		t.Errorf("got %v", err)
	}
}
