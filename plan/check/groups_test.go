package check

import (
	"strings"
	"testing"
)

// overlapping is a plan of collectives on two groups of the same ranks, each rank's
// second one after its first.
const overlapping = `plan both window=1

values
  0  a  f32  [4]  act
  1  b  f32  [4]  act

segments
  0  make  flops=1

groups
  0  0 1
  1  0 1

ranks 0
  0  device   compute    make  seg=0                  -> a b
  1  group.0  allreduce  a     group=0 tag=1 after=0  a -> a
  2  group.1  allreduce  b     group=1 tag=2 after=1  b -> b

ranks 1
  0  device   compute    make  seg=0                  -> a b
  1  group.0  allreduce  a     group=0 tag=1 after=0  a -> a
  2  group.1  allreduce  b     group=1 tag=2 after=1  b -> b
`

// TestOverlappingGroups proves that ranks which take part in collectives of two
// groups in two orders are found to hang before anything runs; in one order, or in
// no order at all, they are not.
func TestOverlappingGroups(t *testing.T) {
	if err := Plan(mustParse(t, overlapping)); err != nil {
		t.Errorf("in one order: %v", err)
	}
	if err := Plan(mustParse(t, strings.ReplaceAll(overlapping, "after=1 ", "after=0 "))); err != nil {
		t.Errorf("in no order: %v", err)
	}
	at := strings.Index(overlapping, "ranks 1")
	crossed := overlapping[:at] + strings.NewReplacer(
		"  1  group.0  allreduce  a     group=0 tag=1 after=0  a -> a\n", "  1  group.1  allreduce  b     group=1 tag=2 after=0  b -> b\n",
		"  2  group.1  allreduce  b     group=1 tag=2 after=1  b -> b\n", "  2  group.0  allreduce  a     group=0 tag=1 after=1  a -> a\n",
	).Replace(overlapping[at:])
	err := Plan(mustParse(t, crossed))
	const want = "rank 0: task 1 (allreduce a): hangs in step 0: waits for rank 1 in group 0; rank 1 waits in task 1 (allreduce b)"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in two orders: got %v, want %q", err, want)
	}
}
