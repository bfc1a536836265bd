package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/gangline/gangline/tensor"
)

// TileFor returns the register tile for an element type: of assembly if asm is
// set, which needs Assembly, and of the widest vectors that the machine has. All
// assembly adds up an element in the same order, to the same bits.
func TileFor[T tensor.Float](asm bool) *Tile[T] {
	t := &Tile[T]{Rows: 2, Cols: 4, Run: tile2x4[T], packRows: packRows[T], packColumns: packColumns[T]}
	if !asm {
		return t
	}
	if t, ok := any(t).(*Tile[float32]); ok && wide() {
		*t = Tile[float32]{
			Rows: 12, Cols: 32, Strided: true, Run: tile12x32, Half: tile12x16,
			packRows: packRows32, packColumns: packColumns32,
		}
		return any(t).(*Tile[T])
	}
	return TileOfAVX2[T]()
}

// wide reports whether this machine has AVX-512.
func wide() bool { return Assembly() && cpu.X86.HasAVX512F }

// TileOfAVX2 is TileFor, with assembly, on a machine without AVX-512.
func TileOfAVX2[T tensor.Float]() *Tile[T] {
	t := new(Tile[T])
	switch t := any(t).(type) {
	case *Tile[float32]:
		*t = Tile[float32]{Rows: 6, Cols: 16, Strided: true, Run: tile6x16, packRows: packRows32, packColumns: packColumns32}
	case *Tile[float64]:
		*t = Tile[float64]{Rows: 6, Cols: 8, Strided: true, Run: tile6x8, packRows: packRows[float64], packColumns: packColumns[float64]}
	}
	return t
}

// tile6x16 is Tile.Run in assembly.
func tile6x16(rows, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, cRow int, add bool) {
	const size = int(unsafe.Sizeof(float32(0)))
	_, _, _ = a[(rows-1)*aRow+(k-1)*aStep], b[(k-1)*bStep+15], c[(rows-1)*cRow+15]
	pa, pb, pc := &a[0], &b[0], &c[0]
	aRow, aStep, bStep, cRow = aRow*size, aStep*size, bStep*size, cRow*size
	switch rows {
	case 1:
		tile1x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 2:
		tile2x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 3:
		tile3x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 4:
		tile4x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 5:
		tile5x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	default:
		tile6x16F32(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	}
}

// tile6x8 is Tile.Run in assembly.
func tile6x8(rows, k int, a []float64, aRow, aStep int, b []float64, bStep int, c []float64, cRow int, add bool) {
	const size = int(unsafe.Sizeof(float64(0)))
	_, _, _ = a[(rows-1)*aRow+(k-1)*aStep], b[(k-1)*bStep+7], c[(rows-1)*cRow+7]
	pa, pb, pc := &a[0], &b[0], &c[0]
	aRow, aStep, bStep, cRow = aRow*size, aStep*size, bStep*size, cRow*size
	switch rows {
	case 1:
		tile1x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 2:
		tile2x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 3:
		tile3x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 4:
		tile4x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	case 5:
		tile5x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	default:
		tile6x8F64(k, pa, aRow, aStep, pb, bStep, pc, cRow, add)
	}
}

// wideTile is a function of assembly for some rows, strides in bytes.
type wideTile func(k int, a *float32, aRow, aStep int, b *float32, bStep int, c *float32, cRow int, add bool)

// tile12x32 is Tile.Run in assembly for AVX-512.
func tile12x32(rows, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, cRow int, add bool) {
	_, _, _ = a[(rows-1)*aRow+(k-1)*aStep], b[(k-1)*bStep+31], c[(rows-1)*cRow+31]
	tileWide(pick32, rows, k, a, aRow, aStep, b, bStep, c, cRow, add)
}

// tile12x16 is tile12x32 for half as many columns.
func tile12x16(rows, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, cRow int, add bool) {
	_, _, _ = a[(rows-1)*aRow+(k-1)*aStep], b[(k-1)*bStep+15], c[(rows-1)*cRow+15]
	tileWide(pick16, rows, k, a, aRow, aStep, b, bStep, c, cRow, add)
}

// pick32 returns the function for the most of rows, and how many it takes.
func pick32(rows int) (wideTile, int) {
	switch {
	case rows >= 12:
		return wide12x32, 12
	case rows >= 8:
		return wide8x32, 8
	case rows >= 4:
		return wide4x32, 4
	case rows >= 2:
		return wide2x32, 2
	default:
		return wide1x32, 1
	}
}

// pick16 is pick32 for half as many columns.
func pick16(rows int) (wideTile, int) {
	switch {
	case rows >= 12:
		return wide12x16, 12
	case rows >= 8:
		return wide8x16, 8
	case rows >= 4:
		return wide4x16, 4
	case rows >= 2:
		return wide2x16, 2
	default:
		return wide1x16, 1
	}
}

// tileWide computes rows in runs for which there is a function.
func tileWide(pick func(rows int) (wideTile, int), rows, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, cRow int, add bool) {
	const size = int(unsafe.Sizeof(float32(0)))
	for {
		run, n := pick(rows)
		run(k, &a[0], aRow*size, aStep*size, &b[0], bStep*size, &c[0], cRow*size, add)
		if rows -= n; rows == 0 {
			return
		}
		a, c = a[n*aRow:], c[n*cRow:]
	}
}

// packRows32 is Tile.packRows in assembly, for panels of 6, 12, 16 and 32.
func packRows32(dst, src []float32, stride, width, k int) {
	if blocks := k / 8; blocks > 0 {
		_, _ = src[(width-1)*stride+k-1], dst[width*k-1]
		step, row, ahead := 4*width, 4*stride, 4*width*stride
		switch width {
		case 6:
			_ = dst[width*8*blocks+1] // it writes two elements too many
			packTranspose6(&dst[0], step, &src[0], row, blocks, ahead)
		case 12:
			_ = dst[width*8*blocks+3] // the first writes four elements too many
			packTranspose4(&dst[8], step, &src[8*stride], row, blocks, ahead)
			packTranspose8(&dst[0], step, &src[0], row, blocks, ahead)
		default:
			for r := 0; r < width; r += 8 {
				packTranspose8(&dst[r], step, &src[r*stride], row, blocks, ahead)
			}
		}
	}
	if at := k &^ 7; at < k {
		packEdge(dst[at*width:], src[at:], stride, 1, width, k-at, width)
	}
}

// packColumns32 is Tile.packColumns in assembly, for the same panels.
func packColumns32(dst, src []float32, stride, width, k int) {
	_, _ = src[(k-1)*stride+width-1], dst[width*k-1]
	switch width {
	case 6:
		packCopy6(&dst[0], &src[0], 4*stride, k)
	case 12:
		packCopy12(&dst[0], &src[0], 4*stride, k)
	case 16:
		packCopy16(&dst[0], &src[0], 4*stride, k)
	default:
		packCopy32(&dst[0], &src[0], 4*stride, k)
	}
}

// tile2x4 is Tile.Run in Go. Its 8 sums, 2 + 4 operands and one product fit the
// 15 registers that the compiler has on amd64; four steps a turn hide the cost
// of moving the slices on.
func tile2x4[T tensor.Float](rows, k int, a []T, _, _ int, b []T, _ int, c []T, cRow int, add bool) {
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	a, b = a[:2*k], b[:4*k]
	for len(a) >= 8 && len(b) >= 16 {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[2], a[3]
		b0, b1, b2, b3 = b[4], b[5], b[6], b[7]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[4], a[5]
		b0, b1, b2, b3 = b[8], b[9], b[10], b[11]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[6], a[7]
		b0, b1, b2, b3 = b[12], b[13], b[14], b[15]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		a, b = a[8:], b[16:]
	}
	for len(a) >= 2 && len(b) >= 4 {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		a, b = a[2:], b[4:]
	}
	sums := [8]T{s00, s01, s02, s03, s10, s11, s12, s13}
	for r := range rows {
		dst := c[r*cRow : r*cRow+4]
		if !add {
			copy(dst, sums[4*r:])
			continue
		}
		for j := range dst {
			dst[j] += sums[4*r+j]
		}
	}
}
