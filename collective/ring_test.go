package collective_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// ring is one direction of a stream in one process: memory of any size, of which pieces
// end where it does, also within an element.
type ring struct {
	data       []byte
	head, tail atomic.Int64 // bytes written and read so far
}

func (r *ring) room() []byte {
	head := int(r.head.Load())
	at, free := head%len(r.data), len(r.data)-(head-int(r.tail.Load()))
	return r.data[at:min(len(r.data), at+free)]
}

func (r *ring) view() []byte {
	tail := int(r.tail.Load())
	at := tail % len(r.data)
	return r.data[at:min(len(r.data), at+int(r.head.Load())-tail)]
}

// ringStream is what one rank has of a pair of rings.
type ringStream struct{ in, out *ring }

func (s *ringStream) Write(p []byte) (int, error) {
	n := 0
	for room := s.out.room(); n < len(p) && len(room) > 0; room = s.out.room() {
		k := copy(room, p[n:])
		s.out.head.Add(int64(k))
		n += k
	}
	return n, nil
}

func (s *ringStream) Read(p []byte) (int, error) {
	n := 0
	for view := s.in.view(); n < len(p) && len(view) > 0; view = s.in.view() {
		k := copy(p[n:], view)
		s.in.tail.Add(int64(k))
		n += k
	}
	return n, nil
}

func (s *ringStream) Peek() ([]byte, error) { return s.in.view(), nil }
func (s *ringStream) Release(n int)         { s.in.tail.Add(int64(n)) }
func (s *ringStream) Room() []byte          { return s.out.room() }
func (s *ringStream) Commit(n int) error    { s.out.head.Add(int64(n)); return nil }

// rings are a rank's.
type rings map[int]*ringStream

func (r rings) To(peer int) transport.Stream {
	if s, ok := r[peer]; ok {
		return s
	}
	return nil
}

func (r rings) Park(ctx context.Context, _, _ transport.Stream) error {
	runtime.Gosched()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (r rings) Stats() transport.Stats { return transport.Stats{} }
func (r rings) Close() error           { return nil }

// blocks are rings whose streams want blocks of a size.
type blocks struct {
	rings
	size int
}

func (b blocks) To(peer int) transport.Stream {
	if s, ok := b.rings[peer]; ok {
		return blockStream{s, b.size}
	}
	return nil
}

// Block makes longer segments of blocks that are longer.
func (b blocks) Block() int { return b.size }

type blockStream struct {
	*ringStream
	size int
}

func (b blockStream) Block() int { return b.size }

// Peek is what nobody should call who can read to memory of his own.
func (b blockStream) Peek() ([]byte, error) { return nil, errors.New("peek on a stream that copies") }

// ringsOf connects all of a group.
func ringsOf(g []int, size int) []rings {
	out := make([]rings, len(g))
	for i := range out {
		out[i] = rings{}
	}
	for i := range g {
		for j := range i {
			a, b := &ring{data: make([]byte, size)}, &ring{data: make([]byte, size)}
			out[i][g[j]], out[j][g[i]] = &ringStream{in: a, out: b}, &ringStream{in: b, out: a}
		}
	}
	return out
}

// Every schedule over rings of sizes that divide no element, and larger and smaller than
// what crosses: pieces end anywhere, and what is in flight is bounded.
func TestRings(t *testing.T) {
	for name, gen := range generators() {
		for _, n := range []int{2, 3, 4} {
			for _, size := range []int{9, 131, 1021} {
				r := ringsOf(group(n), size)
				checkRings(t, name, gen(n), min(size*5, 601), func(i int) transport.Streams { return r[i] })
			}
		}
	}
}

// checkRings runs a schedule on numbers of 8 bytes, then of 4, so that the second run begins
// where the first ended.
func checkRings(t *testing.T, name string, s *collective.Schedule, elems int, streams func(i int) transport.Streams) {
	t.Helper()
	n, g := s.N, group(s.N)
	for _, d := range []tensor.DType{tensor.F64, tensor.F32} {
		inputs, outputs := make([]*tensor.Tensor, n), make([]*tensor.Tensor, n)
		for i := range n {
			inputs[i] = tensor.New(d, elems)
			fill(inputs[i], i, 0)
			outputs[i] = inputs[i].Clone()
		}
		must(t, each(n, func(i int) error {
			run, err := collective.NewRunner(collective.Party{Streams: streams(i), Group: g, Index: i}, s, d, elems)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return run.Run(ctx, outputs[i])
		}))
		for i := range n {
			for k := range elems {
				v, known := want(s.Goal, inputs, i, k, n, elems)
				if got := at(outputs[i], k); known && got != v {
					t.Fatalf("%s of %d %v: rank %d element %d is %v, want %v", name, elems, d, i, k, got, v)
				}
			}
		}
	}
}

// Every schedule over streams that want blocks, of sizes at random: a block ends within
// an element, a part or a segment, and what is read of a sum never goes beyond its part.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := generators()
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(r, "schedule")
		n := rapid.IntRange(2, 4).Draw(r, "ranks")
		elems := rapid.OneOf(rapid.IntRange(0, 700), rapid.IntRange(1, collective.SegmentBytes/2)).Draw(r, "elems")
		block := rapid.OneOf(rapid.IntRange(1, 99), rapid.IntRange(1000, 2*collective.SegmentBytes)).Draw(r, "block")
		rings := ringsOf(group(n), rapid.IntRange(max(9, elems/8), max(9, 10*elems)).Draw(r, "ring"))
		checkRings(t, fmt.Sprintf("%s over %d, block %d", name, n, block), all[name](n), elems,
			func(i int) transport.Streams { return blocks{rings[i], block} })
	})
}

// BenchmarkAllReduce is two ranks in one process: over rings that both drive, and over
// messages of the mem transport. It needs two cores that have nothing else to do.
func BenchmarkAllReduce(b *testing.B) {
	for _, bytes := range []int{8, 4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		for _, algorithm := range []*collective.Schedule{collective.DoublingAllReduce(2), collective.RingAllReduce(2)} {
			g := group(2)
			b.Run(fmt.Sprintf("rings/%s/%d", algorithm.Name, bytes), func(b *testing.B) {
				r := ringsOf(g, 1<<20)
				allReduce(b, algorithm, bytes, func(i int) collective.Party {
					return collective.Party{Streams: r[i], Group: g, Index: i}
				})
			})
			b.Run(fmt.Sprintf("messages/%s/%d", algorithm.Name, bytes), func(b *testing.B) {
				w := world(mem.Options{})
				defer closeAll(w)
				allReduce(b, algorithm, bytes, func(i int) collective.Party {
					return collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i, Tag: 1}
				})
			})
		}
	}
}

func allReduce(b *testing.B, s *collective.Schedule, bytes int, party func(i int) collective.Party) {
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for _, err := range each(2, func(i int) error {
		r, err := collective.NewRunner(party(i), s, tensor.F32, bytes/4)
		buf := tensor.New(tensor.F32, bytes/4)
		for k := 0; err == nil && k < b.N; k++ {
			err = r.Run(b.Context(), buf)
		}
		return err
	}) {
		if err != nil {
			b.Fatal(err)
		}
	}
}
