package cache

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// floats fills out with the numbers of raw, 4 bytes each, little endian. Cost: a copy
// on machines that are little endian themselves.
func floats(out []float32, raw []byte) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), 4*len(out)), raw)
		return
	}
	swapped(out, raw)
}

// swapped is floats on any machine.
func swapped(out []float32, raw []byte) {
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

// widen fills out with the ids of raw, of 1 to 4 bytes each, little endian. It reports
// whether all are in [0, most], which is an int32.
//
// The loops have no branch but their own: below 0 is what any difference to most is, and
// so what all of them are when joined, if an id is above it.
func widen(out []int32, raw []byte, width int, most int64) bool {
	over := int64(0)
	switch width {
	case 1:
		raw = raw[:len(out)]
		for i, b := range raw {
			out[i] = int32(b)
			over |= most - int64(b)
		}
	case 2:
		for i := range out {
			v := binary.LittleEndian.Uint16(raw[:2])
			raw = raw[2:]
			out[i] = int32(v)
			over |= most - int64(v)
		}
	case 3:
		return widen3(out, raw, most)
	default:
		for i := range out {
			v := binary.LittleEndian.Uint32(raw[:4])
			raw = raw[4:]
			out[i] = int32(v)
			over |= most - int64(v)
		}
	}
	return over >= 0
}

// widen3 is widen of ids of 3 bytes, those of most tables: four in two loads.
func widen3(out []int32, raw []byte, most int64) bool {
	const mask = 1<<24 - 1
	over := int64(0)
	for len(out) >= 4 && len(raw) >= 12 {
		first, last := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[4:])
		a, b, c, d := first&mask, first>>24&mask, last>>16&mask, last>>40
		out[0], out[1], out[2], out[3] = int32(a), int32(b), int32(c), int32(d)
		over |= (most - int64(a)) | (most - int64(b)) | (most - int64(c)) | (most - int64(d))
		out, raw = out[4:], raw[12:]
	}
	for i := range out {
		v := int64(raw[3*i]) | int64(raw[3*i+1])<<8 | int64(raw[3*i+2])<<16
		out[i] = int32(v)
		over |= most - v
	}
	return over >= 0
}
