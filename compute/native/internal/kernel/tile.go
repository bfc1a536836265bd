package kernel

import (
	"unsafe"

	"github.com/gangline/gangline/tensor"
)

// TileFor returns the register tile for an element type: of assembly if asm is
// set, which needs Assembly.
func TileFor[T tensor.Float](asm bool) *Tile[T] {
	t := &Tile[T]{Rows: 2, Cols: 4, Run: tile2x4[T], packRows: packRows[T], packColumns: packColumns[T]}
	if !asm {
		return t
	}
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

// packRows32 is Tile.packRows in assembly, for panels of 6 and 16.
func packRows32(dst, src []float32, stride, width, k int) {
	blocks := k / 8
	if blocks > 0 {
		_, _ = src[(width-1)*stride+k-1], dst[width*k-1]
		if width == 6 {
			_ = dst[6*8*blocks+1] // it writes two elements too many
			packTranspose6(&dst[0], 4*width, &src[0], 4*stride, blocks, 4*width*stride)
		} else {
			packTranspose8(&dst[0], 4*width, &src[0], 4*stride, blocks, 4*width*stride)
			packTranspose8(&dst[8], 4*width, &src[8*stride], 4*stride, blocks, 4*width*stride)
		}
	}
	if at := 8 * blocks; at < k {
		packEdge(dst[at*width:], src[at:], stride, 1, width, k-at, width)
	}
}

// packColumns32 is Tile.packColumns in assembly, for panels of 6 and 16.
func packColumns32(dst, src []float32, stride, width, k int) {
	_, _ = src[(k-1)*stride+width-1], dst[width*k-1]
	if width == 6 {
		packCopy6(&dst[0], &src[0], 4*stride, k)
		return
	}
	packCopy16(&dst[0], &src[0], 4*stride, k)
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
