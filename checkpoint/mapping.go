package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/tensor"
)

// Foreign says where a parameter stands in a safetensors file of somebody else.
type Foreign struct {
	// From is the tensor's name there.
	From string `yaml:"from" json:"from"`
	// Transpose says that the file has rows and columns the other way round, as
	// PyTorch's linear layers do: [out in].
	Transpose bool `yaml:"transpose,omitempty" json:"transpose,omitempty"`
}

// Mapping tells the names of parameters from those of a file. A parameter that it
// does not have is called the same there.
type Mapping map[string]Foreign

// of is where a parameter stands.
func (m Mapping) of(param string) Foreign {
	f, ok := m[param]
	if !ok || f.From == "" {
		f.From = param
	}
	return f
}

// check refuses entries of parameters that the model does not have, and two
// parameters of one tensor.
func (m Mapping) check(params map[string]*tensor.Tensor) error {
	known := slices.Sorted(maps.Keys(params))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if params[name] == nil {
			errs = append(errs, fmt.Errorf("the model has no parameter %q%s", name, nearest.Hint(name, known)))
		}
	}
	taken := map[string]string{}
	for _, name := range known {
		from := m.of(name).From
		if other, twice := taken[from]; twice {
			errs = append(errs, fmt.Errorf("parameters %q and %q are both tensor %q of the file: name one of them otherwise", other, name, from))
		}
		taken[from] = name
	}
	return errors.Join(errs...)
}

// Import fills params with the tensors of a safetensors file. It fails, naming
// everything that is wrong, unless the file has a tensor of the same type and
// shape (after transposing) for every parameter, and, without allowUnused, no
// other tensor. Memory: the file and the parameters.
func (m Mapping) Import(path string, params map[string]*tensor.Tensor, allowUnused bool) error {
	tensors, err := openSafetensors(path)
	if err != nil {
		return err
	}
	errs := []error{m.check(params)}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		f := m.of(name)
		used[f.From] = true
		if err := f.fill(params[name], tensors); err != nil {
			errs = append(errs, fmt.Errorf("parameter %q: %w", name, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if !used[name] && !allowUnused {
			errs = append(errs, fmt.Errorf("tensor %q (%v %v) of the file is not used: map a parameter to it, or allow unused ones",
				name, tensors[name].DType(), tensors[name].Shape()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	return nil
}

// openSafetensors reads a file.
func openSafetensors(path string) (map[string]*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("import %s: %w", path, err), f.Close())
	}
	tensors, _, err := ReadSafetensors(f, info.Size())
	if err != nil {
		err = fmt.Errorf("import %s: %w", path, err)
	}
	return tensors, errors.Join(err, f.Close())
}

// fill copies a tensor of the file into a parameter.
func (f Foreign) fill(dst *tensor.Tensor, tensors map[string]*tensor.Tensor) error {
	src := tensors[f.From]
	if src == nil {
		return fmt.Errorf("the file has no tensor %q%s", f.From, nearest.Hint(f.From, near(f.From, tensors)))
	}
	if f.Transpose && len(src.Shape()) != 2 {
		return fmt.Errorf("tensor %q is %v %v: only two dims can be transposed", f.From, src.DType(), src.Shape())
	}
	got := src.Shape().Clone()
	if f.Transpose {
		slices.Reverse(got)
	}
	if src.DType() != dst.DType() || !got.Equal(dst.Shape()) {
		how, fix := "", ""
		switch turned := src.Shape().Clone(); {
		case f.Transpose:
			how = ", transposed"
		case len(turned) == 2:
			slices.Reverse(turned)
			if turned.Equal(dst.Shape()) {
				fix = ": set transpose: true"
			}
		}
		return fmt.Errorf("tensor %q is %v %v%s, the model wants %v %v%s", f.From, src.DType(), got, how, dst.DType(), dst.Shape(), fix)
	}
	if i := notFinite(src); i >= 0 {
		return fmt.Errorf("tensor %q has NaN or an infinity, the first as element %d: no model computes with that", f.From, i)
	}
	if f.Transpose {
		transpose(dst, src)
	} else {
		copy(dst.Bytes(), src.Bytes())
	}
	return nil
}

// notFinite is the index of the first element that is NaN or infinite, -1 if there is
// none.
func notFinite(t *tensor.Tensor) int {
	wild := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	switch t.DType() { //nolint:exhaustive // integers are finite
	case tensor.F32:
		return slices.IndexFunc(t.F32(), func(v float32) bool { return wild(float64(v)) })
	case tensor.F64:
		return slices.IndexFunc(t.F64(), wild)
	}
	return -1
}

// near lists the tensors of a file, those first whose names are like the one that
// was asked for, and no more than can be read.
func near(name string, tensors map[string]*tensor.Tensor) []string {
	const most = 8
	names := slices.SortedStableFunc(maps.Keys(tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(nearest.Distance(name, a), nearest.Distance(name, b)), strings.Compare(a, b))
	})
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return names
}

// transpose writes src [a b] into dst [b a].
func transpose(dst, src *tensor.Tensor) {
	rows, columns, size := src.Shape()[0], src.Shape()[1], src.DType().Size()
	from, to := src.Bytes(), dst.Bytes()
	for i := range rows {
		for j := range columns {
			copy(to[(j*rows+i)*size:][:size], from[(i*columns+j)*size:])
		}
	}
}

// Export returns the parameters as a file of that mapping has them: Import undone.
func (m Mapping) Export(params map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if err := m.check(params); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	out := make(map[string]*tensor.Tensor, len(params))
	for name, t := range params {
		f := m.of(name)
		if f.Transpose {
			if len(t.Shape()) != 2 {
				return nil, fmt.Errorf("export: parameter %q is %v %v: only two dims can be transposed", name, t.DType(), t.Shape())
			}
			turned := tensor.New(t.DType(), t.Shape()[1], t.Shape()[0])
			transpose(turned, t)
			t = turned
		}
		out[f.From] = t
	}
	return out, nil
}
