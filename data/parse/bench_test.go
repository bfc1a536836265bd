package parse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gangline/gangline/data/rows"
)

// BenchmarkParse reads text that is in memory into a block that is used again: the
// parser alone, without files and without keeping rows.
func BenchmarkParse(b *testing.B) {
	svm := strings.Repeat("+1 159:0.368189 355:0.693512 570:0.884789 1552:0.205264 1773:0.984857 22342:0.027229 66366:0.858803\n", 10_000)
	criteo := strings.Repeat("0\t1\t26\t\t\t3648\t1\t798\t168\t7\t187\t1029\t\t113"+strings.Repeat("\t06ca0a95\t910a2dec", 13)+"\n", 5000)
	for _, bench := range []struct {
		name, text string
		open       func(io.Reader) *Reader
	}{{"libsvm", svm, openLibsvm(LibsvmOptions{})}, {"criteo", criteo, openCriteo(1 << 20)}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			var block rows.Block
			r := bench.open(nil)
			specs := r.Columns()
			for b.Loop() {
				r.in, r.eof, r.at, r.full, r.end = bytes.NewReader([]byte(bench.text)), false, 0, 0, 0
				for err := error(nil); !errors.Is(err, io.EOF); {
					block.Reset(specs)
					err = r.Read(&block, 1000)
				}
			}
		})
	}
}
