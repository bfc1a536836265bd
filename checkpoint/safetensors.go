package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gangline/gangline/tensor"
)

// maxHeaderBytes bounds the JSON header of a safetensors file, as the format's
// own reader does.
const maxHeaderBytes = 100 << 20

// ErrCorrupt marks files that are damaged or not what they claim to be.
var ErrCorrupt = errors.New("corrupt")

// header is one entry of a safetensors header.
type header struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// WriteSafetensors writes named tensors in safetensors form: 8 bytes with the
// little-endian length of a JSON header, the header, then the data. Names are
// written in ascending order, so equal tensors give equal bytes. meta becomes
// __metadata__.
func WriteSafetensors(w io.Writer, tensors map[string]*tensor.Tensor, meta map[string]string) error {
	names := slices.Sorted(maps.Keys(tensors))
	head := make(map[string]any, len(names)+1)
	if len(meta) > 0 {
		head["__metadata__"] = meta
	}
	var at int64
	for _, name := range names {
		t := tensors[name]
		n := int64(len(t.Bytes()))
		head[name] = header{DType: fileDType(t.DType()), Shape: append([]int{}, t.Shape()...), Offsets: [2]int64{at, at + n}}
		at += n
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("safetensors header: %w", err)
	}
	for len(text)%8 != 0 { // data aligned to 8 bytes, as the format recommends
		text = append(text, ' ')
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.Write(tensors[name].Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// ReadSafetensors reads what WriteSafetensors or any other writer of the
// format wrote; size is the length of the file. It fails with ErrCorrupt on a
// header that does not describe exactly the bytes that follow, and on element
// types that gangline does not know.
func ReadSafetensors(r io.Reader, size int64) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	head, meta, dataBytes, err := readHeader(r, size)
	if err != nil {
		return nil, nil, err
	}
	names := slices.SortedFunc(maps.Keys(head), func(a, b string) int {
		if c := int(head[a].Offsets[0] - head[b].Offsets[0]); c != 0 {
			return c
		}
		return int(head[a].Offsets[1] - head[b].Offsets[1])
	})
	tensors = make(map[string]*tensor.Tensor, len(head))
	var at int64
	for _, name := range names {
		h := head[name]
		d, n, err := h.check(at)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: safetensors tensor %q: %w", ErrCorrupt, name, err)
		}
		if at+n > dataBytes {
			return nil, nil, fmt.Errorf("%w: safetensors tensor %q ends at byte %d of %d", ErrCorrupt, name, at+n, dataBytes)
		}
		t := tensor.New(d, h.Shape...)
		if _, err := io.ReadFull(r, t.Bytes()); err != nil {
			return nil, nil, fmt.Errorf("%w: safetensors tensor %q: %w", ErrCorrupt, name, err)
		}
		tensors[name] = t
		at += n
	}
	if at != dataBytes {
		return nil, nil, fmt.Errorf("%w: safetensors data has %d bytes, its header describes %d", ErrCorrupt, dataBytes, at)
	}
	return tensors, meta, nil
}

// readHeader reads the length and the JSON header, and splits off the metadata.
func readHeader(r io.Reader, size int64) (head map[string]header, meta map[string]string, dataBytes int64, err error) {
	var n uint64
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, nil, 0, fmt.Errorf("%w: safetensors length: %w", ErrCorrupt, err)
	}
	if n > maxHeaderBytes || int64(n) > size-8 {
		return nil, nil, 0, fmt.Errorf("%w: safetensors header of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, nil, 0, fmt.Errorf("%w: safetensors header: %w", ErrCorrupt, err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, nil, 0, fmt.Errorf("%w: safetensors header: %w", ErrCorrupt, err)
	}
	if m, ok := raw["__metadata__"]; ok {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, nil, 0, fmt.Errorf("%w: safetensors metadata: %w", ErrCorrupt, err)
		}
		delete(raw, "__metadata__")
	}
	head = make(map[string]header, len(raw))
	for name, m := range raw {
		var h header
		if err := json.Unmarshal(m, &h); err != nil {
			return nil, nil, 0, fmt.Errorf("%w: safetensors tensor %q: %w", ErrCorrupt, name, err)
		}
		head[name] = h
	}
	return head, meta, size - 8 - int64(n), nil
}

// check verifies an entry that must start at byte at of the data.
func (h header) check(at int64) (tensor.DType, int64, error) {
	d, err := parseFileDType(h.DType)
	if err != nil {
		return tensor.Invalid, 0, err
	}
	n := int64(d.Size())
	for _, dim := range h.Shape {
		if dim < 0 || (dim > 0 && n > (1<<50)/int64(dim)) {
			return tensor.Invalid, 0, fmt.Errorf("impossible shape %v", h.Shape)
		}
		n *= int64(dim)
	}
	if h.Offsets != [2]int64{at, at + n} {
		return tensor.Invalid, 0, fmt.Errorf("offsets %v, but %s %v starting at %d ends at %d", h.Offsets, h.DType, h.Shape, at, at+n)
	}
	return d, n, nil
}

// fileDType is the format's name of an element type.
func fileDType(d tensor.DType) string {
	return map[tensor.DType]string{tensor.F32: "F32", tensor.F64: "F64", tensor.I32: "I32", tensor.I64: "I64"}[d]
}

// parseFileDType is the inverse of fileDType.
func parseFileDType(s string) (tensor.DType, error) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.I32, tensor.I64} {
		if fileDType(d) == s {
			return d, nil
		}
	}
	return tensor.Invalid, fmt.Errorf("element type %q is not supported: want F32, F64, I32 or I64", s)
}
