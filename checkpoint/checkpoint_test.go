package checkpoint_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
)

// write makes a checkpoint of a dense array cut in two and a table held by two
// shards, as two servers would write it.
func write(t *testing.T, root string, step int64) string {
	t.Helper()
	dir, err := checkpoint.Begin(root, step)
	if err != nil {
		t.Fatal(err)
	}
	w := []float32{1, 2, 3, 4, 5, 6}
	shape := tensor.Shape{2, 3}
	table := tensor.Shape{10, 2}
	var shards []checkpoint.Shard
	for i, pieces := range [][]checkpoint.Piece{
		{
			{Name: "w", Shape: shape, Lo: 0, Hi: 4, Data: tensor.From(w[:4], 4)},
			{Name: "t", Shape: table, Keys: []int64{2, 8}, Data: tensor.From([]float32{20, 21, 80, 81}, 2, 2)},
		},
		{
			{Name: "w", Shape: shape, Lo: 4, Hi: 6, Data: tensor.From(w[4:], 2)},
			{Name: "t", Shape: table, Keys: []int64{}, Data: tensor.New(tensor.F32, 0, 2)},
		},
	} {
		s, err := checkpoint.WriteShard(dir, []string{"server-0", "server-1"}[i], pieces)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, s)
	}
	final, err := checkpoint.Publish(dir, checkpoint.Manifest{Step: step, Job: "j", Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return final
}

// What shards of any cut wrote comes back whole; untouched rows keep their value.
func TestAssemble(t *testing.T) {
	root := t.TempDir()
	write(t, root, 7)
	c, _, err := checkpoint.Resolve(root)
	if err != nil {
		t.Fatal(err)
	}
	if c.Manifest.Step != 7 {
		t.Errorf("step %d, want 7", c.Manifest.Step)
	}
	w := tensor.New(tensor.F32, 2, 3)
	if err := c.Assemble("w", w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{1, 2, 3, 4, 5, 6}, w.F32()); diff != "" {
		t.Error(diff)
	}
	table := tensor.New(tensor.F32, 10, 2)
	table.F32()[0] = 5
	if err := c.Assemble("t", table); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 20)
	want[0], want[4], want[5], want[16], want[17] = 5, 20, 21, 80, 81
	if diff := cmp.Diff(want, table.F32()); diff != "" {
		t.Error(diff)
	}
	if err := c.Assemble("nothing", w); err == nil {
		t.Error("an array that is not there was assembled")
	}
	if err := c.Assemble("w", tensor.New(tensor.F32, 3, 2)); err == nil || !strings.Contains(err.Error(), "[2 3]") {
		t.Errorf("another shape: %v", err)
	}
}

// A piece of a table without rows comes back as one: a server may own no row
// that was ever updated, and it must not be taken for a dense piece.
func TestTableWithoutRows(t *testing.T) {
	shape := tensor.Shape{10, 2}
	text, err := checkpoint.Encode("server-0", []checkpoint.Piece{{Name: "t", Shape: shape, Keys: []int64{}, Data: tensor.New(tensor.F64, 0, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.InMemory(text)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Pieces(func(string) bool { return true }, func(p checkpoint.Piece) error {
		if p.Keys == nil {
			t.Error("the piece comes back dense")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := c.Assemble("t", tensor.New(tensor.F64, shape...)); err != nil {
		t.Errorf("a table of which no row was updated: %v", err)
	}
}

// A checkpoint with one wrong byte anywhere is passed over for the one before.
func TestDamageIsPassedOver(t *testing.T) {
	for _, damage := range []func(path string) error{
		func(p string) error { return os.Truncate(p, 10) },
		os.Remove,
		func(p string) error {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			b[len(b)-1] ^= 1
			return os.WriteFile(p, b, 0o644)
		},
	} {
		for _, file := range []string{"server-1.safetensors", checkpoint.ManifestName} {
			root := t.TempDir()
			write(t, root, 3)
			newest := write(t, root, 9)
			if err := damage(filepath.Join(newest, file)); err != nil {
				t.Fatal(err)
			}
			if file == checkpoint.ManifestName {
				// Whatever the damage, it must not pass as JSON by luck.
				if err := os.WriteFile(filepath.Join(newest, file), []byte("{"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c, passed, err := checkpoint.Latest(root)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil || c.Manifest.Step != 3 || len(passed) != 1 || !errors.Is(passed[0], checkpoint.ErrCorrupt) {
				t.Errorf("%s: got %+v, passed over %v", file, c, passed)
			}
		}
	}
}

// What was begun and never published is not a checkpoint, and Prune removes it.
func TestUnpublishedDoesNotExist(t *testing.T) {
	root := t.TempDir()
	dir, err := checkpoint.Begin(root, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.WriteShard(dir, "a", nil); err != nil {
		t.Fatal(err)
	}
	if c, _, err := checkpoint.Latest(root); err != nil || c != nil {
		t.Errorf("found %v, %v", c, err)
	}
	for step := range int64(4) {
		write(t, root, step)
	}
	if err := checkpoint.Prune(root, 3, 2); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"step-000000000002", "step-000000000003"}, names); diff != "" {
		t.Error(diff)
	}
}

// A damaged checkpoint that a run fell back behind does not push out a whole one.
func TestPruneDoesNotCountLaterOnes(t *testing.T) {
	root := t.TempDir()
	for _, step := range []int64{2, 9, 3} { // 9 is damaged, 3 was written after it
		write(t, root, step)
	}
	if err := checkpoint.Prune(root, 3, 1); err != nil {
		t.Fatal(err)
	}
	dirs, err := checkpoint.List(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(root, "step-000000000009"), filepath.Join(root, "step-000000000003")}
	if diff := cmp.Diff(want, dirs); diff != "" {
		t.Error(diff)
	}
}

// Probe leaves nothing, makes no directory, and names what cannot be written.
func TestProbe(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Join(root, "new"), filepath.Join(root, "new", "deeper")} {
		if err := checkpoint.Probe(dir); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if err := checkpoint.Probe(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A write that fails leaves no file behind and says where it was.
func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := checkpoint.WriteShard(dir, "a", nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if _, err := checkpoint.Publish(t.TempDir(), checkpoint.Manifest{}); err == nil {
		t.Error("published a directory that Begin did not make")
	}
	if err := checkpoint.Abandon(t.TempDir()); err == nil {
		t.Error("abandoned a directory that Begin did not make")
	}
}

// Reading is the inverse of writing for every dtype and shape.
func TestSafetensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]*tensor.Tensor{}
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z/."é]{1,8}`), 0, 4, rapid.ID).Draw(t, "names") {
			d := rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.F64, tensor.I32, tensor.I64}).Draw(t, "dtype")
			x := tensor.New(d, rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")...)
			for i := range x.Bytes() {
				x.Bytes()[i] = byte(i * 7)
			}
			in[name] = x
		}
		var b bytes.Buffer
		if err := checkpoint.WriteSafetensors(&b, in, map[string]string{"k": "v"}); err != nil {
			t.Fatal(err)
		}
		out, meta, err := checkpoint.ReadSafetensors(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != len(in) || meta["k"] != "v" {
			t.Fatalf("%d of %d tensors, meta %v", len(out), len(in), meta)
		}
		for name, x := range in {
			y := out[name]
			if y == nil || y.DType() != x.DType() || !y.Shape().Equal(x.Shape()) || !bytes.Equal(y.Bytes(), x.Bytes()) {
				t.Fatalf("%q came back as %v", name, y)
			}
		}
	})
}

// FuzzSafetensors: no input panics, and what is read is never larger than the input.
func FuzzSafetensors(f *testing.F) {
	var b bytes.Buffer
	if err := checkpoint.WriteSafetensors(&b, map[string]*tensor.Tensor{"a": tensor.New(tensor.F32, 2, 2)}, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x10\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}        "))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, _, err := checkpoint.ReadSafetensors(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		total := 0
		for _, x := range out {
			total += len(x.Bytes())
		}
		if total > len(in) {
			t.Fatalf("read %d bytes from %d", total, len(in))
		}
	})
}

// The reference files that other programs wrote are read with their shapes.
func TestReadsOthersFiles(t *testing.T) {
	root := "../../shared/data/checkpoints"
	for _, c := range []struct {
		file string
		want map[string]string
	}{
		{"mnist_mlp_tinygrad.safetensors", map[string]string{"l1.weight": "f32 [128 784]", "l2.weight": "f32 [10 128]"}},
		{"candle_jfk-codes.safetensors", nil},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if errors.Is(err, os.ErrNotExist) {
			t.Skipf("the shared data is not here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := checkpoint.ReadSafetensors(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			if x := got[name]; x == nil || x.DType().String()+" "+x.Shape().String() != want {
				t.Errorf("%s: %q is %v, want %s", c.file, name, x, want)
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: no tensors", c.file)
		}
	}
}

// Shards that travelled through memory assemble as those of a directory do.
func TestInMemory(t *testing.T) {
	w := []float64{1, 2, 3}
	var parts [][]byte
	for i, name := range []string{"a", "b"} {
		lo, hi := 2*i, min(2*i+2, 3)
		b, err := checkpoint.Encode(name, []checkpoint.Piece{{Name: "w", Shape: tensor.Shape{3}, Lo: lo, Hi: hi, Data: tensor.From(w[lo:hi], hi-lo)}})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, b)
	}
	c, err := checkpoint.InMemory(parts...)
	if err != nil {
		t.Fatal(err)
	}
	got := tensor.New(tensor.F64, 3)
	if err := c.Assemble("w", got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got.F64()); diff != "" {
		t.Error(diff)
	}
	if _, err := checkpoint.InMemory(parts[0], parts[0]); err == nil {
		t.Error("two shards of one name were taken")
	}
	if _, err := checkpoint.InMemory([]byte("{}")); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// The best checkpoint stays whole while others come and go, is found by the name of
// its directory, and makes room for a better one.
func TestKeepBest(t *testing.T) {
	root := t.TempDir()
	best, err := checkpoint.KeepBest(root, write(t, root, 1))
	if err != nil {
		t.Fatal(err)
	}
	for step := int64(2); step < 5; step++ {
		write(t, root, step)
		if err := checkpoint.Prune(root, step, 1); err != nil {
			t.Fatal(err)
		}
	}
	c, passedOver, err := checkpoint.Resolve(checkpoint.BestDir(root))
	if err != nil || len(passedOver) > 0 || c.Dir != best || c.Manifest.Step != 1 {
		t.Errorf("the best is %+v (%v, %v), want %s", c, passedOver, err, best)
	}
	if latest, _, err := checkpoint.Latest(root); err != nil || latest.Manifest.Step != 4 {
		t.Errorf("the newest is %v, %v", latest, err)
	}
	better, err := checkpoint.KeepBest(root, write(t, root, 3)) // of a run that fell back
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := checkpoint.List(checkpoint.BestDir(root))
	if err != nil || len(dirs) != 1 || dirs[0] != better {
		t.Errorf("best ones: %v, %v; want %s alone", dirs, err, better)
	}
	if again, err := checkpoint.KeepBest(root, write(t, root, 3)); err != nil || again != better {
		t.Errorf("the same again: %s, %v", again, err)
	}
	if _, err := checkpoint.KeepBest(root, t.TempDir()); err == nil {
		t.Error("a directory that is no checkpoint is the best one")
	}
}

// What cannot be listed or made is named once: the system's error does.
func TestPathsAreNamedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, listed := checkpoint.List(file)
	_, begun := checkpoint.Begin(filepath.Join(file, "root"), 1)
	for what, err := range map[string]error{"List": listed, "Begin": begun} {
		if err == nil || strings.Count(err.Error(), file) != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
}
