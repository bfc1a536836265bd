package format

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

// npyHeader makes a header as NumPy writes it.
func npyHeader(version byte, dictionary string) []byte {
	b := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dictionary)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dictionary)))
	}
	return append(b, dictionary...)
}

// npyOf makes a file of an array.
func npyOf(descr, shape string, data any, order binary.ByteOrder) []byte {
	b := npyHeader(1, fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }   \n", descr, shape))
	b, err := binary.Append(b, order, data)
	if err != nil {
		panic(err)
	}
	return b
}

// readNpy reads a file of an array.
func readNpy(t testing.TB, content []byte, spec Spec, n int) (shown, error) {
	t.Helper()
	if spec.Missing == nil {
		spec.Missing = DefaultMissing()
	}
	r, err := newNpy(io.NopCloser(bytes.NewReader(content)), &spec, "f", nil)
	if err != nil {
		return shown{}, err
	}
	return show(t, r, n)
}

func TestNpy(t *testing.T) {
	little, big := binary.LittleEndian, binary.BigEndian
	nan, inf := math.NaN(), math.Inf(-1)
	tests := map[string]struct {
		content []byte
		spec    Spec
		want    shown
	}{
		"f4":       {npyOf("<f4", "3,", []float32{1, .5, -3}, little), Spec{}, shown{"x number", []string{"1", "0.5", "-3"}, nil}},
		"f8 big":   {npyOf(">f8", "2,", []float64{.1, 1e300}, big), Spec{}, shown{"x number", []string{"0.1", "1e+300"}, nil}},
		"i8":       {npyOf("<i8", "2,", []int64{math.MinInt64, math.MaxInt64}, little), Spec{}, shown{"x integer", []string{"-9223372036854775808", "9223372036854775807"}, nil}},
		"i2 big":   {npyOf(">i2", "2,", []int16{-2, 300}, big), Spec{}, shown{"x integer", []string{"-2", "300"}, nil}},
		"u1":       {npyOf("|u1", "2,", []uint8{0, 255}, little), Spec{}, shown{"x integer", []string{"0", "255"}, nil}},
		"bool":     {npyOf("|b1", "2,", []uint8{0, 1}, little), Spec{}, shown{"x integer", []string{"0", "1"}, nil}},
		"u8":       {npyOf("<u8", "2,", []uint64{math.MaxUint64, 7}, little), Spec{}, shown{"x integer", []string{"7"}, []string{`f:1: column "x": 18446744073709551615 is beyond 2^63-1, the largest whole number that is kept`}}},
		"rows":     {npyOf("<f4", "2, 3", []float32{1, 2, 3, 4, 5, 6}, little), Spec{}, shown{"x numbers of width 3", []string{"[1 2 3]", "[4 5 6]"}, nil}},
		"int rows": {npyOf("<i4", "2, 2", []int32{1, -2, 3, -4}, little), Spec{}, shown{"x numbers of width 2", []string{"[1 -2]", "[3 -4]"}, nil}},
		"one wide": {npyOf("<f4", "2, 1", []float32{1, 2}, little), Spec{}, shown{"x numbers of width 1", []string{"[1]", "[2]"}, nil}},
		"empty":    {npyOf("<f4", "0,", []float32{}, little), Spec{}, shown{"x number", nil, nil}},
		"missing": {npyOf("<f8", "4,", []float64{1, nan, inf, 2}, little), Spec{}, shown{"x number", []string{"1", "-", "2"}, []string{
			`f:3: column "x": -Inf is not a finite number`,
		}}},
		"NaN is an error": {npyOf("<f8", "2,", []float64{1, nan}, little), Spec{Missing: []string{""}}, shown{"x number", []string{"1"}, []string{
			`f:2: column "x": NaN is not a finite number`,
		}}},
		"rows in error": {npyOf("<f8", "2, 2", []float64{1, nan, 3, 4}, little), Spec{}, shown{"x numbers of width 2", []string{"[3 4]"}, []string{
			`f:1: column "x": element 2 is NaN, want finite numbers`,
		}}},
		"version 2":      {append(npyHeader(2, "{\"descr\": \"<i2\", 'fortran_order': True, 'shape': (1L,)}"), 5, 0), Spec{}, shown{"x integer", []string{"5"}, nil}},
		"version 3":      {append(npyHeader(3, "{'shape': (1, 2), 'fortran_order': True, 'descr': '|i1'}"), 5, 255), Spec{}, shown{"x numbers of width 2", []string{"[5 -1]"}, nil}},
		"large elements": {npyOf("<i8", "1, 2", []int64{1, 1 << 60}, little), Spec{}, shown{"x numbers of width 2", nil, []string{`f:1: column "x": element 2 is about 1152921504606846976: whole numbers from 2^53 on are kept only in arrays of one dim`}}},
	}
	for name, test := range tests {
		got, err := readNpy(t, test.content, test.spec, 2)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestNpyRefuses(t *testing.T) {
	good := npyOf("<f4", "2, 2", []float32{1, 2, 3, 4}, binary.LittleEndian)
	header := func(dictionary string) []byte { return npyHeader(1, dictionary) }
	tests := map[string][]byte{
		"f: no npy file: it begins with \"a,b\\n1,\"":            []byte("a,b\n1,2\n"),
		"f: the file ends within its header":                     good[:40],
		"f: version 4.0 of the npy format is not known":          npyHeader(4, ""),
		"the header has 4294967295 bytes, the limit":             []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
		"but the data end in row 2: the file was cut off":        good[:len(good)-1],
		"bytes follow the 2 rows":                                append(bytes.Clone(good), 0),
		`of type "|O": objects are pickled`:                      header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"),
		"the elements are records":                               header("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}"),
		`of type "<c8"; f4, f8,`:                                 header("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}"),
		"save numpy.ascontiguousarray":                           header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}"),
		"is a single number":                                     header("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"),
		"has 3 dims":                                             header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}"),
		"have no elements":                                       header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0)}"),
		"the limit is 67108864 bytes":                            header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4611686018427387905)}"),
		"want descr, fortran_order and shape":                    header("{'descr': '<f4', 'shape': (1,)}"),
		`key "descr" stands twice`:                               header("{'descr': '<f4', 'descr': '<f4'}"),
		`want a size before "-1,)}"`:                             header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
		"want a size before \"99999999999999999999":              header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
		`"import os" follows the dictionary`:                     header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}import os"),
		`array "x" has 9223372036854775807 rows of 4 bytes, but`: header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}"),
	}
	for want, content := range tests {
		got, err := readNpy(t, content, Spec{}, 10)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", got, err, want)
		}
	}
}

// npzOf makes an archive of files.
func npzOf(method uint16, names []string, files ...[]byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, name := range names {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = m.Write(files[i])
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// memory is a file.Random.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func readNpz(t testing.TB, content []byte, spec Spec) (shown, error) {
	t.Helper()
	r, err := newNpz(memory{bytes.NewReader(content)}, &spec, "f", nil)
	if err != nil {
		return shown{}, err
	}
	s, err := show(t, r, 2)
	if e := r.Close(); e != nil {
		t.Error(e)
	}
	return s, err
}

func TestNpz(t *testing.T) {
	x := npyOf("<f4", "3, 2", []float32{1, 2, 3, 4, 5, 6}, binary.LittleEndian)
	y := npyOf("|u1", "3,", []uint8{0, 1, 2}, binary.LittleEndian)
	short := npyOf("|u1", "2,", []uint8{0, 1}, binary.LittleEndian)
	names := []string{"x.npy", "y.npy"}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		got, err := readNpz(t, npzOf(method, names, x, y), Spec{})
		want := shown{"x numbers of width 2,y integer", []string{"[1 2]|0", "[3 4]|1", "[5 6]|2"}, nil}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	got, err := readNpz(t, npzOf(zip.Store, names, short, y), Spec{Select: []string{"y"}})
	if diff := cmp.Diff(shown{"y integer", []string{"0", "1", "2"}, nil}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	broken := npzOf(zip.Store, names, x, y)
	broken[bytes.Index(broken, []byte{0, 0, 0xa0, 0x40})] = 9 // 5 of x
	for want, content := range map[string][]byte{
		`array "y" has 3 rows, array "x" has 2`: npzOf(zip.Store, names, short, y),
		"no npz file":                           x,
		"or one that was cut off":               npzOf(zip.Store, names, x, y)[:300],
		`"a.txt" in the archive is no array`:    npzOf(zip.Store, []string{"a.txt"}, x),
		"the archive holds no array":            npzOf(zip.Store, nil),
		`array "y": no npy file`:                npzOf(zip.Store, names, x, []byte("12345678901")),
		"checksum error":                        broken,
	} {
		if got, err := readNpz(t, content, Spec{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", got, err, want)
		}
	}
	path := tempFile(t, npzOf(zip.Deflate, names, x, y))
	if fields, rows, missing := counts(t, Spec{Format: "npz", Paths: []string{path, path}}); len(fields) != 2 || rows != 6 || missing != 0 {
		t.Errorf("%v, %d rows, %d missing", fields, rows, missing)
	}
}

// What was written is what is read.
func TestNpyProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows, width := rapid.IntRange(0, 6).Draw(rt, "rows"), rapid.IntRange(1, 3).Draw(rt, "width")
		n := rows * width
		var order binary.ByteOrder = binary.LittleEndian
		mark := "<"
		if rapid.Bool().Draw(rt, "big") {
			order, mark = binary.BigEndian, ">"
		}
		var data any
		var want []string
		descr := rapid.SampledFrom([]string{"f4", "f8", "i4", "u2", "i1"}).Draw(rt, "descr")
		switch descr {
		case "f4":
			data, want = draw(rt, n, rapid.Float32Range(-1e30, 1e30), func(v float32) float64 { return float64(v) })
		case "f8":
			data, want = draw(rt, n, rapid.Float64Range(-1e300, 1e300), func(v float64) float64 { return v })
		case "i4":
			data, want = draw(rt, n, rapid.Int32(), func(v int32) float64 { return float64(v) })
		case "u2":
			data, want = draw(rt, n, rapid.Uint16(), func(v uint16) float64 { return float64(v) })
		case "i1":
			data, want = draw(rt, n, rapid.Int8(), func(v int8) float64 { return float64(v) })
		}
		got, err := readNpy(t, npyOf(mark+descr, fmt.Sprintf("%d, %d", rows, width), data, order), Spec{}, 2)
		var cells []string
		for _, row := range got.Rows {
			cells = append(cells, strings.Fields(strings.Trim(row, "[]"))...)
		}
		if err != nil || got.Errors != nil || len(got.Rows) != rows || !slices.Equal(cells, want) {
			rt.Fatalf("got %q, %q, %v; want %q", got.Rows, got.Errors, err, want)
		}
	})
}

// draw makes n elements and how they are shown.
func draw[T any](rt *rapid.T, n int, g *rapid.Generator[T], wide func(T) float64) ([]T, []string) {
	data := rapid.SliceOfN(g, n, n).Draw(rt, "data")
	var want []string
	f := table.Field{Kind: table.Number}
	for _, v := range data {
		want = append(want, cell(f, &table.Column{Numbers: []float64{wide(v)}}, 0))
	}
	return data, want
}

func FuzzNpy(f *testing.F) {
	f.Add(npyOf("<f4", "2, 2", []float32{1, 2, 3, 4}, binary.LittleEndian))
	f.Add(npyOf(">i8", "2,", []int64{1, 2}, binary.BigEndian))
	f.Add(npyHeader(3, "{'descr': '<u8', 'fortran_order': True, 'shape': (9223372036854775807, 1), }"))
	f.Add(npyHeader(2, "{'descr': [('a', '<f4')], 'shape': ()"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if got, err := readNpy(t, content, Spec{}, 3); err != nil && !strings.HasPrefix(err.Error(), "f: ") {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func FuzzNpz(f *testing.F) {
	x := npyOf("<f4", "3, 2", []float32{1, 2, 3, 4, 5, 6}, binary.LittleEndian)
	y := npyOf("|u1", "3,", []uint8{0, 1, 2}, binary.LittleEndian)
	f.Add(npzOf(zip.Store, []string{"x.npy", "y.npy"}, x, y))
	f.Add(npzOf(zip.Deflate, []string{"x.npy", "y.npy"}, x, y))
	f.Add(npzOf(zip.Deflate, []string{"x.npy", "x.npy"}, x, y))
	f.Fuzz(func(t *testing.T, content []byte) {
		spec := Spec{Missing: DefaultMissing()}
		r, err := newNpz(memory{bytes.NewReader(content)}, &spec, "f", nil)
		if err != nil {
			return
		}
		var b table.Block
		for range 1000 { // an archive may hold as many rows as it likes
			if err = r.Read(&b, 100); err != nil {
				break
			}
			checkBlock(t, r.Fields(), &b)
		}
	})
}
