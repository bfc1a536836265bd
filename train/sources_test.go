package train

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangline/gangline/data"
)

// writeImages makes idx files of random images of so many bytes, whose brightest
// third says the class.
func writeImages(t *testing.T, size, classes int) data.Source {
	t.Helper()
	const rows = 91 // batches of 30 leave one, so some workers have none
	rng := rand.New(rand.NewPCG(4, uint64(size)))
	images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 2}, rows)
	images = binary.BigEndian.AppendUint32(images, uint32(size))
	labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, rows)
	for range rows {
		class := rng.IntN(classes)
		labels = append(labels, byte(class))
		for i := range size {
			v := rng.IntN(128)
			if i*classes/size == class {
				v += 100
			}
			images = append(images, byte(v))
		}
	}
	dir := t.TempDir()
	spec := data.Spec{Format: "idx", Path: filepath.Join(dir, "images"), Labels: filepath.Join(dir, "labels")}
	for path, content := range map[string][]byte{spec.Path: images, spec.Labels: labels} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, spec)
}

// writeText makes a text of random words, in rows of 8 bytes.
func writeText(t *testing.T) data.Source {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	words := []string{"ring ", "of ", "ranks ", "and ", "servers ", "sums ", "a ", "gradient\n"}
	var text []byte
	for range 300 {
		text = append(text, words[rng.IntN(len(words))]...)
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return open(t, data.Spec{Format: "text", Path: path, Context: 8, Limit: 91})
}
