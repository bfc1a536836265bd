package native

import (
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/tensor"
)

// NewAVX2 is New with the matrix tiles of a machine that has AVX2 and no AVX-512.
func NewAVX2(options ...Option) *Backend {
	b := New(options...)
	tileOfAVX2(b.f32)
	tileOfAVX2(b.f64)
	return b
}

func tileOfAVX2[T tensor.Float](b *builder[T]) {
	b.k.Tile = kernel.TileOfAVX2[T]()
	for i := range b.work {
		b.work[i].product.Tile = b.k.Tile
	}
}

// Assembly reports whether this machine runs the assembly.
func Assembly() bool { return kernel.Assembly() }
