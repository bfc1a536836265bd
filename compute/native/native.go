// Package native is the fast backend: float32 and float64 on the processor,
// with threads; 16-bit floats are computed in float32 and rounded.
//
// The arithmetic is in internal/kernel, on plain slices: assembly where the
// machine has AVX2 and FMA, portable Go elsewhere. Here every family of
// operators has a file that says how shapes become calls of those, and how the
// work is cut for threads. Inner values share memory by lifetime, and
// element-wise operators work in place.
//
// Results are deterministic: every element is computed by one goroutine, in an
// order that depends on shapes alone, so that they have the same bits for any
// number of threads. A row of a product does not depend on how many rows there
// are. Assembly and Go differ in products of matrices only.
package native

import (
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/fuse"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/compute/native/internal/team"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Backend implements compute.Backend and compute.Holder. Its programs share
// threads and scratch memory: those that run at the same time take turns, kernel
// by kernel.
type Backend struct {
	team *team.Team
	f32  *builder[float32]
	f64  *builder[float64]
}

// Option is a setting of New.
type Option func(*settings)

type settings struct {
	threads  int
	fallback bool
}

// Threads lets programs use n goroutines at a time, the caller's among them.
// They live while a Run or a Hold lasts.
func Threads(n int) Option { return func(s *settings) { s.threads = n } }

// Fallback keeps to portable Go, as on machines without the assembly.
func Fallback() Option { return func(s *settings) { s.fallback = true } }

// New returns the backend: with one thread, and assembly where there is some,
// unless options say otherwise.
func New(options ...Option) *Backend {
	var s settings
	for _, o := range options {
		o(&s)
	}
	asm, t := kernel.Assembly() && !s.fallback, team.New(s.threads)
	return &Backend{team: t, f32: newBuilder[float32](t, asm), f64: newBuilder[float64](t, asm)}
}

// Name returns "native".
func (*Backend) Name() string { return "native" }

// Hold implements compute.Holder.
func (b *Backend) Hold() (release func()) {
	b.team.Hold()
	return b.team.Release
}

// Waiting implements compute.Crowd.
func (b *Backend) Waiting(more int) { b.team.Waiting(more) }

// Compile makes a program whose inner values share memory by lifetime.
func (b *Backend) Compile(seg *graph.Segment) (compute.Program, error) {
	p, err := compute.Build(seg, compute.Options{
		Reuse: true, InPlace: fuse.InPlace, Fuse: b.fuse, Fused: b.fused,
		Kernel: func(n *graph.Node) (compute.Kernel, error) {
			k := b.f32.kernel(n)
			if floatType(n) == tensor.F64 {
				k = b.f64.kernel(n)
			}
			if k == nil {
				return nil, fmt.Errorf("backend native has no such operator")
			}
			return k, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &program{p, b.team}, nil
}

// fuse finds groups. What can be a link is the same for all types of elements.
func (b *Backend) fuse(seg *graph.Segment) []compute.Group { return fuse.Groups(seg, b.f32.links) }

// fused returns the kernel of a group.
func (b *Backend) fused(g compute.Group) (compute.GroupKernel, error) {
	if g.Nodes[0].DType == tensor.F64 {
		return b.f64.group(g), nil
	}
	return b.f32.group(g), nil
}

// group returns what computes a group.
func (b *builder[T]) group(g compute.Group) compute.GroupKernel {
	switch g.Nodes[len(g.Nodes)-1].Op {
	case graph.Concat:
		return b.join(g)
	case graph.GatherGrad, graph.DotInteractionGrad:
		return b.cut()
	default:
		return b.chain(g)
	}
}

// floatType is the dtype that a node computes in: that of its result or, where
// this is whole numbers, of its input.
func floatType(n *graph.Node) tensor.DType {
	if !n.DType.IsFloat() && len(n.In) > 0 {
		return n.In[0].DType
	}
	return n.DType
}

// program is a compiled segment with the threads that it uses.
type program struct {
	compute.Program
	team *team.Team
}

// Run implements compute.Program.
func (p *program) Run(step int64, in, out []*tensor.Tensor) error {
	p.team.Hold()
	defer p.team.Release()
	return p.Program.Run(step, in, out)
}

// builder makes the kernels of a backend for one type of elements.
type builder[T tensor.Float] struct {
	team *team.Team
	k    *kernel.Table[T]
	half kernel.Halves
	work []scratch[T] // of every worker
}

// scratch is what one worker needs to itself. It grows to what the largest
// kernel needs and stays.
type scratch[T tensor.Float] struct {
	product kernel.Product[T]
	a, b    []T
	links   []T // what the links of a chain hand on
	wide    *tensor.Tensor
	tail    tail[T]
}

func newBuilder[T tensor.Float](t *team.Team, asm bool) *builder[T] {
	b := &builder[T]{
		team: t, k: kernel.For[T](asm), work: make([]scratch[T], t.Size()),
		half: kernel.HalvesFor(asm),
	}
	for i := range b.work {
		b.work[i].product.Tile = b.k.Tile
		b.work[i].tail.worker, b.work[i].wide = i, tensor.New(tensor.TypeOf[T](), 0)
	}
	return b
}

// grow returns memory of n elements, s if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// kernel returns what computes a node, nil if there is nothing.
func (b *builder[T]) kernel(n *graph.Node) compute.Kernel {
	for _, family := range []func(*graph.Node) compute.Kernel{
		b.elements, b.binary, b.products, b.norms, b.reductions, b.losses, b.rows, b.moves, b.images, b.updates, b.casts,
	} {
		if k := family(n); k != nil {
			return k
		}
	}
	return nil
}
