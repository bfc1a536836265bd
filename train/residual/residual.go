// Package residual carries what compressed gradients have lost, and not made up for yet,
// through checkpoints, and reports of it.
//
// In a checkpoint the residuals of a parameter w are arrays beside it, by worker or by range,
// whatever bucket w was in:
//
//	w/residual.2    what worker 2 lost of its own gradients
//	w/residual.sum  what was lost of sums, each range by the worker that summed it
//	w/factor        the factors that a low-rank sum begins with, the same on all workers
//
// So a run goes on with another number of workers, other buckets and another codec: the sum
// of all that was lost stays the same (see compress.State).
package residual

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
)

// What stands behind the name of a parameter.
const (
	ofWorker = "/residual." // and its number
	ofSum    = "/residual.sum"
	ofFactor = "/factor"
)

// Pieces are what one worker has to save: memory of the buckets, valid until they run again.
// Buckets without feedback have none.
func Pieces(buckets []*compressed.Bucket) []checkpoint.Piece {
	var all []checkpoint.Piece
	for _, b := range buckets {
		s := b.State()
		if !b.Spec.Feedback {
			continue
		}
		for k, part := range b.Parts {
			lo, hi := b.Range(k)
			all = add(all, part.Name+ofWorker+strconv.Itoa(b.Index), part.Shape, 0, s.First[lo:hi])
			if from, to := max(lo, s.Lo), min(hi, s.Lo+len(s.Second)); from < to {
				all = add(all, part.Name+ofSum, part.Shape, from-lo, s.Second[from-s.Lo:to-s.Lo])
			}
			if from, to := b.Warm(k); b.Index == 0 {
				all = add(all, part.Name+ofFactor, tensor.Shape{to - from}, 0, s.Warm[from:to])
			}
		}
	}
	return all
}

// add adds a piece, unless it is empty.
func add(all []checkpoint.Piece, name string, shape tensor.Shape, lo int, v []float32) []checkpoint.Piece {
	if len(v) == 0 {
		return all
	}
	return append(all, checkpoint.Piece{Name: name, Shape: shape, Lo: lo, Hi: lo + len(v), Data: tensor.From(v, len(v))})
}

// target is a bucket that takes over what a checkpoint has.
type target struct {
	*compressed.Bucket
	found  bool
	old    []compress.State
	sums   []float32 // what was lost of sums, whole
	factor []float32
}

// place is a part of a bucket.
type place struct {
	*target
	part int
}

// Restore gives buckets, of which all workers call it, their share of what a checkpoint has.
// A parameter of which it has nothing begins with nothing lost. It returns the parameters
// whose residuals nobody takes over, since they are not compressed, or without feedback: what
// they lost is lost for ever. It reads all shards once.
func Restore(buckets []*compressed.Bucket, c *checkpoint.Checkpoint) (left []string, err error) {
	places := make(map[string]place)
	var targets []*target
	for _, b := range buckets {
		if !b.Spec.Feedback {
			continue
		}
		t := &target{Bucket: b, factor: slices.Clone(b.State().Warm)}
		targets = append(targets, t)
		for k, part := range b.Parts {
			places[part.Name] = place{t, k}
		}
	}
	for _, name := range c.Names() {
		param, what := split(name)
		if _, ok := places[param]; !ok && what != "" && what != ofFactor && !slices.Contains(left, param) {
			left = append(left, param)
		}
	}
	if len(targets) == 0 {
		return left, nil
	}
	wanted := func(name string) bool {
		param, what := split(name)
		_, ok := places[param]
		return ok && what != ""
	}
	err = c.Pieces(wanted, func(p checkpoint.Piece) error {
		param, what := split(p.Name)
		return places[param].take(what, p)
	})
	for _, t := range targets {
		if err == nil && t.found {
			err = t.restore()
		}
	}
	return left, err
}

// split cuts the name of an array into parameter and what of it; what is empty for arrays that
// are no residuals.
func split(name string) (param, what string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		param, what = name[:i], name[i:]
	}
	if n, ok := strings.CutPrefix(what, ofWorker); what == ofFactor || what == ofSum || ok && number(n) >= 0 {
		return param, what
	}
	return name, ""
}

// number reads the number of a worker, -1 if it is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n >= workersMax || strconv.Itoa(n) != s {
		return -1
	}
	return n
}

// workersMax bounds the workers of a run that wrote a checkpoint.
const workersMax = 1 << 16

// take copies a piece to its place.
func (at place) take(what string, p checkpoint.Piece) error {
	if p.Data.DType() != tensor.F32 || p.Keys != nil {
		return fmt.Errorf("%w: a residual is %v", checkpoint.ErrCorrupt, p.Data.DType())
	}
	v := p.Data.F32()
	if what == ofFactor {
		if lo, hi := at.Warm(at.part); hi-lo == len(v) { // else of another rank, and of no use
			copy(at.factor[lo:], v)
		}
		return nil
	}
	shape := at.Parts[at.part].Shape
	if !p.Shape.Equal(shape) || p.Lo < 0 || p.Hi > shape.Elems() {
		return fmt.Errorf("%w: a residual of shape %v, from %d to %d, of a parameter of shape %v", checkpoint.ErrCorrupt, p.Shape, p.Lo, p.Hi, shape)
	}
	at.found = true
	lo, _ := at.Range(at.part)
	lo += p.Lo
	if what == ofSum {
		if at.sums == nil {
			at.sums = make([]float32, at.Elems())
		}
		copy(at.sums[lo:], v)
		return nil
	}
	worker := number(strings.TrimPrefix(what, ofWorker))
	for len(at.old) <= worker {
		at.old = append(at.old, compress.State{})
	}
	if compress.Heir(worker, at.Ranks) != at.Index {
		return nil
	}
	s := &at.old[worker]
	if s.First == nil {
		s.First = make([]float32, at.Elems())
	}
	copy(s.First[lo:], v)
	return nil
}

// restore hands a bucket its share of what was found.
func (t *target) restore() error {
	if len(t.old) == 0 {
		t.old = make([]compress.State, 1)
	}
	for worker := range t.old {
		if s := &t.old[worker]; s.First == nil && compress.Heir(worker, t.Ranks) == t.Index {
			s.First = make([]float32, t.Elems())
		}
	}
	if t.sums == nil {
		t.sums = make([]float32, t.Elems())
	}
	first := &t.old[0]
	if t.Spec.Kind == compress.KindPowerSGD { // which has no second stage
		for i, x := range t.sums[:len(first.First)] {
			first.First[i] += x
		}
	} else {
		first.Second = t.sums
	}
	first.Warm = t.factor
	if err := t.Restore(t.old); err != nil {
		return fmt.Errorf("residuals of bucket %s: %w", t.Name, err)
	}
	return nil
}
