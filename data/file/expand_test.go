package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob/memblob"
)

// tree makes a directory with some files; the content of each is its name.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExpand(t *testing.T) {
	names := []string{
		"part-10.csv", "part-2.csv", "part-1.csv.gz", "part-1.csv", ".part-0.csv", "train.csv",
		"a/x.csv", "b/x.csv", "b/y.csv", "part-d/x", "odd[1].csv", "empty/sub/x",
	}
	dir := tree(t, names...)
	makePipe(t, filepath.Join(dir, "pipe"))
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { bucket.Close() })
	for _, name := range names {
		if err := bucket.WriteAll(t.Context(), "data/"+name, []byte(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx := WithBucket(t.Context(), "mem://store/", bucket)
	tests := []struct {
		patterns []string
		want     []string // without the directory
		err      string
	}{
		{patterns: []string{"train.csv", "a/x.csv"}, want: []string{"train.csv", "a/x.csv"}},
		{patterns: []string{"part-*.csv"}, want: []string{"part-1.csv", "part-10.csv", "part-2.csv"}},
		{patterns: []string{"part-?.csv*"}, want: []string{"part-1.csv", "part-1.csv.gz", "part-2.csv"}},
		{patterns: []string{"[ab]/*"}, want: []string{"a/x.csv", "b/x.csv", "b/y.csv"}},
		{patterns: []string{".part*"}, want: []string{".part-0.csv"}},
		{patterns: []string{"part-*"}, want: []string{"part-1.csv", "part-1.csv.gz", "part-10.csv", "part-2.csv"}},
		{patterns: []string{"odd[1].csv"}, want: []string{"odd[1].csv"}},
		{patterns: []string{"file://DIR/train.csv"}, want: []string{"train.csv"}},
		{patterns: []string{"trian.csv"}, err: "trian.csv: there is no such file; near to it are train.csv, "},
		{patterns: []string{"prat-*.csv"}, err: "prat-*.csv: no file matches; near to it are part-"},
		{patterns: []string{"nowhere/x"}, err: "nowhere: no such file or directory"},
		{patterns: []string{"empty/*"}, err: "no file matches; near to it is sub"},
		{patterns: []string{"a"}, err: "it is a directory, want a file; for all its files write DIR/a/*"},
		{patterns: []string{"pipe"}, err: "it is a pipe"},
		{patterns: []string{"part-1.csv", "part-?.csv"}, err: `named twice, by "part-1.csv" and by "part-?.csv"`},
		{patterns: []string{"**/x.csv"}, err: "** is not known"},
		{patterns: []string{"part-[1.csv"}, err: "the glob is malformed"},
		{patterns: []string{" "}, err: "is empty"},
		{patterns: nil, err: "no file is named"},
		{patterns: []string{"a\x00b"}, err: "zero bytes"},
		{patterns: []string{"file://train.csv"}, err: "want file:///path"},
		{patterns: []string{"s3://bucket/x"}, err: "import data/file/cloud"},
		{patterns: []string{"s4://bucket/x"}, err: `did you mean "s3"?`},
		{patterns: []string{"mimi://other/x"}, err: "knows no object store mimi://"},
		{patterns: []string{"mem://store"}, err: "the key is absent"},
	}
	for _, place := range []string{dir, "mem://store/data"} {
		for _, test := range tests {
			test.err = strings.ReplaceAll(test.err, "DIR", place)
			patterns := strings.Split(strings.ReplaceAll(strings.Join(test.patterns, "\n"), "DIR", dir), "\n")
			if test.patterns == nil {
				patterns = nil
			}
			if onlyLocal := test.err + strings.Join(patterns, ""); place != dir && (strings.Contains(onlyLocal, "directory") ||
				strings.Contains(onlyLocal, "pipe") || strings.Contains(onlyLocal, "sub") || strings.Contains(onlyLocal, "file://") || strings.Contains(onlyLocal, "?")) {
				continue
			}
			got, err := Expand(ctx, place, patterns)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%q in %s: got %q, %v; want %q", patterns, place, got, err, test.err)
				}
				continue
			}
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], place+"/")
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%q in %s: %v (-want +got):\n%s", patterns, place, err, diff)
			}
		}
	}
}

// A path without a directory is relative to that of the process, and stays so.
func TestExpandHere(t *testing.T) {
	t.Chdir(tree(t, "x.csv"))
	got, err := Expand(t.Context(), "", []string{"*.csv"})
	if diff := cmp.Diff([]string{"x.csv"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A file's version changes with its content and with nothing else.
func TestStat(t *testing.T) {
	dir := tree(t, "x")
	path := filepath.Join(dir, "x")
	first, err := Stat(t.Context(), path)
	if err != nil || first.Size != 1 || first.Version == "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if again, err := Stat(t.Context(), "file://"+path); err != nil || again != first {
		t.Errorf("got %+v, %v; want %+v", again, err, first)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime().Add(1)); err != nil {
		t.Fatal(err)
	}
	if later, err := Stat(t.Context(), path); err != nil || later == first {
		t.Errorf("got %+v, %v after a change", later, err)
	}
	if _, err := Stat(t.Context(), path+"y"); err == nil || !strings.Contains(err.Error(), "near to it is x") {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := tree(t, "x")
	makePipe(t, filepath.Join(dir, "pipe"))
	for name, want := range map[string]string{"": "directory", "pipe": "pipe", "z": "near to it are", "x/y": "not a directory"} {
		r, err := Open(t.Context(), filepath.Join(dir, name))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %q", name, r, err, want)
		}
	}
}
