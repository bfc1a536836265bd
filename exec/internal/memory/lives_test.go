package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Lives of a value share memory if one lane alone touches them, one after the other.
func TestSharedLives(t *testing.T) {
	p, err := plan.Parse(`plan step window=1

values
  0  w   f32  [2]    param
  1  x   f32  [? 2]  act
  2  h   f32  [? 2]  act
  3  g   f32  [2]    grad   of=w
  4  k   f32  [2]    act
  5  a   f32  [2]    act    arena=1

segments
  0  s

rank 0
  0  reader    feed     batch                  -> x x@1 x@2
  1  device    compute  s      seg=0  after=0  x w -> h g a
  2  device    compute  s      seg=0           h -> k
  3  device    compute  s      seg=0           x@1 w -> h@1 g@1
  4  device    compute  s      seg=0           h@1 -> k@1
  5  device    compute  s      seg=0           x@2 w -> h@2 g@2 k@2
  6  device    add      g                      g g@1 -> g
  7  device.1  compute  s      seg=0  after=6  h@2 k -> k@0:1
`)
	if err != nil {
		t.Fatal(err)
	}
	// h@1 takes the place of h; h@2 is touched by another lane too. g and g@1 are both
	// read by the add, g@2 is written before it. k is read on the second device.
	want := map[plan.Ref]plan.Ref{
		{Value: 2, Micro: 1}: {Value: 2},
		{Value: 4, Micro: 2}: {Value: 4, Micro: 1},
	}
	if d := cmp.Diff(want, sharedLives(p, p.Ranks[0])); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	values := New(p, 0, nil, transport.Ordinary)
	memory := func(micro int) *tensor.Tensor {
		copies, err := values.Get(plan.Ref{Value: 2, Micro: micro})
		if err != nil {
			t.Fatal(err)
		}
		return copies[0]
	}
	if memory(1) != memory(0) || memory(2) == memory(0) {
		t.Errorf("h is at %p, h@1 at %p, h@2 at %p: want the first two in one place", memory(0), memory(1), memory(2))
	}
}
