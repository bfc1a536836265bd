package detect_test

import (
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/data/detect"
)

func TestHead(t *testing.T) {
	criteo := "1\t" + strings.Repeat("5\t", 12) + "\t" + strings.Repeat("68fd1e64\t", 25) + "\n"
	for name, c := range map[string]struct {
		text string
		want detect.Guess // Why is not compared
	}{
		"libsvm":                  {"-1 3:1 7:0.5\n+1 1:1\n+1\n", detect.Guess{Format: "libsvm", Labels: []float64{-1, 1}}},
		"libsvm from 0":           {"2 0:1 7:0.5\n3 1:1 # a word\n", detect.Guess{Format: "libsvm", Labels: []float64{2, 3}, ZeroBased: true}},
		"libffm":                  {"1 0:1:0.5 2:3:1\n0 1:1:1\n", detect.Guess{Format: "libffm", Labels: []float64{0, 1}}},
		"vw":                      {"1 |f a:1 b\n-1 2.0 'tag|f c:2 d\n|f a b\n", detect.Guess{Format: "vw", Labels: []float64{-1, 1}}},
		"criteo":                  {criteo + criteo, detect.Guess{Format: "criteo", Labels: []float64{1}}},
		"csv":                     {"a,b\n1,x\n2,y\n", detect.Guess{Format: "csv", Delimiter: ",", Header: true}},
		"csv of words":            {"a,b\nx,y\nx,z\n", detect.Guess{Format: "csv", Delimiter: ",", Header: true}},
		"csv no header":           {"39, State-gov, <=50K\n50, Private, >50K\n", detect.Guess{Format: "csv", Delimiter: ","}},
		"csv of words, no header": {"red,round\nblue,square\nred,round\n", detect.Guess{Format: "csv", Delimiter: ","}},
		"tsv":                     {"a\tb\n1\t2\n", detect.Guess{Format: "csv", Delimiter: "tab", Header: true}},
		"pipes":                   {"1|2|3\n4|5|6\n", detect.Guess{Format: "csv", Delimiter: "|"}},
		"quotes":                  {"a;b\n\"x;y\";1\n\"u\";2\n", detect.Guess{Format: "csv", Delimiter: ";", Header: true}},
		"bom and crlf":            {"\ufeffa,b\r\n1,2\r\n", detect.Guess{Format: "csv", Delimiter: ",", Header: true}},
		"text":                    {"First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n", detect.Guess{Format: "text"}},
		"parquet":                 {"PAR1\x15\x04", detect.Guess{Format: "parquet"}},
		"npy":                     {"\x93NUMPY\x01\x00", detect.Guess{Format: "npy"}},
		"npz":                     {"PK\x03\x04\x14\x00", detect.Guess{Format: "npz"}},
		"idx of images":           {"\x00\x00\x08\x03\x00\x00\x27\x10\x00\x00\x00\x1c\x00\x00\x00\x1c", detect.Guess{Format: "idx", Record: 784, Records: 10000}},
		"idx of labels":           {"\x00\x00\x08\x01\x00\x00\x27\x10\x05", detect.Guess{Format: "idx", Record: 1, Records: 10000}},
		"one bad line":            {strings.Repeat("1 3:1\n", 20) + "oops\n", detect.Guess{Format: "libsvm", Labels: []float64{1}}},
		"not yet whole":           {"1 3:1\n2 1:1\n3 oops", detect.Guess{Format: "libsvm", Labels: []float64{1, 2}}},
	} {
		got, err := detect.Head([]byte(c.text), name != "not yet whole")
		if err != nil || got.Why == "" {
			t.Errorf("%s: %v", name, err)
		}
		if got.Why = ""; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for _, text := range []string{"", "ab\x00cd", "\x1f\x8b\x08", "caf\xe9"} {
		if g, err := detect.Head([]byte(text), true); err == nil {
			t.Errorf("%q is %+v", text, g)
		}
	}
}

// Whatever it is given, it does not panic, and its words are those of a format.
func FuzzHead(f *testing.F) {
	for _, s := range []string{"1 3:1\n", "a,b\n1,2\n", "\x00\x00\x08\x08", "1 |f a\n", "\"", "\n", "a|b"} {
		f.Add([]byte(s), true)
	}
	known := []string{"libsvm", "criteo", "csv", "vw", "libffm", "idx", "npy", "npz", "parquet", "text"}
	f.Fuzz(func(t *testing.T, head []byte, whole bool) {
		g, err := detect.Head(head, whole)
		if err == nil && !slices.Contains(known, g.Format) {
			t.Errorf("%+v", g)
		}
	})
}

// Real files are what their README says.
func TestRealFiles(t *testing.T) {
	const dir = "../../../shared/data"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the shared data is not here: %v", err)
	}
	for path, want := range map[string]string{
		"libsvm/a9a": "libsvm", "libsvm/dna.scale": "libsvm", "libsvm/agaricus.txt.train": "libsvm", "libsvm/heart_scale": "libsvm", "libsvm/news20.bz2": "libsvm",
		"libsvm/rcv1_small.vw": "vw", "mnist/t10k-images-idx3-ubyte.gz": "idx", "mnist/t10k-labels-idx1-ubyte.gz": "idx",
		"text/tinyshakespeare.txt": "text", "text/republic.txt": "text", "tabular/adult-train.csv": "csv", "tabular/adult-test.csv": "csv",
		"tabular/iris.csv": "csv", "tabular/penguins.csv": "csv", "tabular/winequality-white.csv": "csv", "ctr/criteo_sample_200.txt": "csv",
		"ctr/libffm_bigdata.tr.txt": "libffm", "parquet/alltypes_plain.parquet": "parquet",
	} {
		f, err := os.Open(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		var r io.Reader = f
		switch filepath.Ext(path) {
		case ".gz":
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		case ".bz2":
			r = bzip2.NewReader(f)
		}
		head, err := io.ReadAll(io.LimitReader(r, detect.HeadBytes))
		if err != nil {
			t.Fatal(err)
		}
		g, err := detect.Head(head, false)
		if err != nil || g.Format != want {
			t.Errorf("%s is %+v (%v), want %s", path, g, err, want)
		}
		if named := strings.Contains("tabular/penguins.csv ctr/criteo_sample_200.txt", path); want == "csv" && g.Header != named {
			t.Errorf("%s: header %v", path, g.Header)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
