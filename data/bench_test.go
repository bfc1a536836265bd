package data

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/gangline/gangline/tensor"
)

func BenchmarkOpenCriteo(b *testing.B) {
	src := testSource(b, 20_000, 1)
	text := criteoText(b, src, 0, 20_000)
	benchmarkOpen(b, Spec{Format: "criteo", Path: tempFile(b, text), Buckets: 1 << 20}, len(text))
}

func BenchmarkOpenLibsvmOnes(b *testing.B) { benchmarkLibsvm(b, "libsvm/a9a") }

func BenchmarkOpenLibsvmFloats(b *testing.B) { benchmarkLibsvm(b, "libsvm/heart_scale") }

func benchmarkLibsvm(b *testing.B, name string) {
	path := realData(b, name)
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	content = bytes.Repeat(content, 1+(4<<20)/len(content))
	benchmarkOpen(b, Spec{Format: "libsvm", Path: tempFile(b, content)}, len(content))
}

func benchmarkOpen(b *testing.B, spec Spec, size int) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFeed is one step of 2,048 rows with 26 categories each.
func BenchmarkFeed(b *testing.B) {
	planted := mustOpen(b, Spec{Format: "generated", Buckets: 1 << 20, Rows: 100_000, Seed: 1})
	read := mustOpen(b, Spec{Format: "criteo", Path: tempFile(b, criteoText(b, planted, 0, 100_000)), Buckets: 1 << 20})
	for _, bench := range []struct {
		name string
		src  Source
	}{{"criteo", read}, {"generated", planted}} {
		b.Run(bench.name, func(b *testing.B) {
			inputs := clickInputs(tensor.F32)
			feeder, err := NewFeeder(bench.src, Order{Seed: 1, Rows: 100_000, Batch: 2048, Shuffle: true}, 0, 1, inputs)
			if err != nil {
				b.Fatal(err)
			}
			out := outputs(inputs)
			b.ReportAllocs()
			for step := int64(0); b.Loop(); step++ {
				if err := feeder.Feed(step, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFeedLibsvm is one step of 2,048 rows with 50 entries each, from memory and
// from a cache file of which a sixth is in memory.
func BenchmarkFeedLibsvm(b *testing.B) {
	var text bytes.Buffer
	if err := writeLibsvm(&text, 0, 100_000); err != nil {
		b.Fatal(err)
	}
	spec := Spec{Format: "libsvm", Path: tempFile(b, text.Bytes())}
	whole := mustOpen(b, spec)
	spec.Memory, spec.CacheDir = 8<<20, b.TempDir()
	for _, bench := range []struct {
		name string
		src  Source
	}{{"memory", whole}, {"cached", mustOpen(b, spec)}} {
		b.Run(bench.name, func(b *testing.B) {
			inputs := []InputSpec{
				{"label", "dense", tensor.F32, 1}, {"x", "offsets", tensor.I64, 1}, {"x", "ids", tensor.I64, 1}, {"x", "weights", tensor.F32, 1},
			}
			feeder, err := NewFeeder(bench.src, Shuffled(bench.src, 1, 2048), 0, 1, inputs)
			if err != nil {
				b.Fatal(err)
			}
			out := outputs(inputs)
			for step := int64(0); b.Loop(); step++ {
				if err := feeder.Feed(step, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFeedAdult is one step of a9a, 14 entries a row, in nanoseconds of a processor a row.
func BenchmarkFeedAdult(b *testing.B) {
	src := mustOpen(b, Spec{Format: "libsvm", Path: realData(b, "libsvm/a9a"), Features: 123})
	for _, batch := range []int{512, 4096} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			inputs := []InputSpec{
				{"x", "ids", tensor.I64, 1}, {"x", "offsets", tensor.I64, 1}, {"x", "weights", tensor.F32, 1}, {"label", "dense", tensor.F32, 1},
			}
			feeder, err := NewFeeder(src, Shuffled(src, 1, batch), 0, 1, inputs)
			if err != nil {
				b.Fatal(err)
			}
			out := outputs(inputs)
			n, start := 0, cpuTime()
			for step := int64(0); b.Loop(); step++ {
				if err := feeder.Feed(step, out); err != nil {
					b.Fatal(err)
				}
				n += len(feeder.Rows())
			}
			b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(n), "cpu-ns/row")
		})
	}
}
