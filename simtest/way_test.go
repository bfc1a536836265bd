package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// way is what of the ways to train that a scenario has beside its strategy.
type way int

// The ways: plain is a sum of whole gradients in float64, and one pass a step.
const (
	plain    way = iota
	micro        // several micro-batches a step
	zero         // state in slices, one a worker
	localsgd     // copies that are averaged now and then
	sma          // copies that are drawn to their average
	lossy        // gradients are compressed
	half         // bf16 or f16
	ordered      // reproducible: sums in the order of one tree
	ways
)

func (w way) String() string {
	return []string{"plain", "micro-batches", "zero", "localsgd", "sma", "compression", "16 bits", "reproducible"}[w]
}

// wayOf is what a seed draws of it.
type wayOf struct {
	way          way
	precision    tensor.DType
	scale        optim.LossScale
	micro        int
	slices       int
	stage        int
	averaging    strategy.Averaging
	compression  compress.Spec
	otherWorkers int // to go on with from a checkpoint
}

func (w wayOf) String() string {
	return fmt.Sprintf("%v (%v, scale %v, %d micro-batches, %d slices, stage %d, %+v, codec %v, then %d workers)",
		w.way, w.precision, w.scale, w.micro, w.slices, w.stage, w.averaging, w.compression, w.otherWorkers)
}

// lossy reports whether other numbers of workers come to other parameters.
func (w *wayOf) lossy() bool {
	return w.way == localsgd || w.way == sma || w.way == lossy || w.way == half
}

// vary draws the way, from numbers of its own: what is plain is as it was before there were
// others, and so are the seeds that found something then.
func (s *scenario) vary() {
	r := rand.New(rand.NewPCG(s.seed, 3))
	s.precision, s.otherWorkers = tensor.F64, 1+r.IntN(4)
	if r.IntN(2) == 0 || slices.Contains(plainSeeds(), s.seed) {
		return
	}
	s.way = 1 + way(r.IntN(int(ways)-1))
	if tables := s.table || s.model == "ctr"; s.way != micro || tables && s.strategy == "ps" { // whose rows are pulled at once
		s.strategy, s.workers, s.servers = "allreduce", 1+r.IntN(4), 0
	}
	switch s.way {
	case plain, ways: // no way of its own
	case micro:
		s.micro = 2 + r.IntN(2)
	case zero:
		s.strategy, s.stage, s.micro = "zero", 1+r.IntN(3), 1+r.IntN(2)
	case localsgd, sma:
		s.copies(r)
	case lossy:
		s.precision, s.compression = tensor.F32, codecs()[r.IntN(6)]
	case half:
		s.precision, s.micro = []tensor.DType{tensor.BF16, tensor.F16, tensor.F16}[r.IntN(3)], 1+r.IntN(3)
		s.scale = optim.LossScale{Start: float64(uint(1) << (6 + r.IntN(18))), Every: 1 + r.IntN(4)}
	case ordered:
		s.slices = 4 + r.IntN(6)
	}
	for i := range s.poisons {
		s.poisons[i].rank %= s.workers
	}
}

// copies draws how workers that train copies of their own let them meet.
func (s *scenario) copies(r *rand.Rand) {
	s.table = false // which they cannot average
	if s.model == "ctr" {
		s.model = "mlp"
	}
	a := &s.averaging
	a.Every = 1 + r.IntN(4)
	if s.way == sma {
		s.strategy, a.Alpha = "sma", .1+.9*r.Float64()
		return
	}
	s.strategy, a.Slots = "localsgd", strategy.AllSlots()[r.IntN(3)]
	if r.IntN(2) == 0 {
		a.Outer = strategy.Outer{Momentum: .5, LR: .7, Nesterov: r.IntN(2) == 0}
	}
}

// codecs are one of each kind.
func codecs() []compress.Spec {
	return []compress.Spec{
		{Kind: compress.KindF16},
		{Kind: compress.KindBF16, Feedback: true},
		{Kind: compress.KindInt8, Block: 64, Feedback: true},
		{Kind: compress.KindOneBit, Block: 64, Feedback: true},
		{Kind: compress.KindTopK, Density: .3, Feedback: true},
		{Kind: compress.KindPowerSGD, Rank: 1, Feedback: true},
	}
}
