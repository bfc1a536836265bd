package ps

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/tensor"
)

// TestCodecRoundTrip: what is written is read back.
func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := request{
			kind: requestKind(rapid.IntRange(1, int(requestKinds)-1).Draw(t, "kind")),
			seq:  rapid.Uint64().Draw(t, "seq"), step: rapid.Int64().Draw(t, "step"),
			verdict: Verdict{Given: rapid.Bool().Draw(t, "given"), Step: rapid.Int64().Draw(t, "of"), Weight: rapid.Float64().Draw(t, "weight")},
		}
		if q.kind == requestSnapshot {
			q.name = rapid.StringN(0, 20, 80).Draw(t, "name")
		}
		if q.kind == requestPush || q.kind == requestPull {
			for range rapid.IntRange(1, 5).Draw(t, "parts") {
				p := wirePart{state: rapid.IntRange(0, math.MaxInt32).Draw(t, "state"), dtype: tensor.F64}
				if p.table = rapid.Bool().Draw(t, "table"); p.table {
					p.a, p.b = rapid.IntRange(0, 5).Draw(t, "keys"), rapid.IntRange(1, dimMax).Draw(t, "dim")
					q.keys = append(q.keys, bytes.Repeat([]byte{byte(p.a)}, 8*p.a)...)
				} else {
					p.a = rapid.IntRange(0, 1<<47).Draw(t, "lo")
					p.b = rapid.IntRange(p.a+1, 1<<48).Draw(t, "hi")
				}
				q.parts = append(q.parts, p)
			}
		}
		var got request
		if err := decodeRequest(append(appendRequest(nil, &q), q.keys...), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.keys) == 0 {
			got.keys = nil
		}
		if len(got.parts) == 0 {
			got.parts = nil
		}
		if diff := cmp.Diff(q, got, cmp.AllowUnexported(request{}, wirePart{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		r := reply{kind: q.kind, status: Late, seq: q.seq, version: q.step, tail: []byte(q.name)}
		var back reply
		if err := decodeReply(append(appendReply(nil, &r), r.tail...), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, cmp.AllowUnexported(reply{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// seedRequests are requests of every kind.
func seedRequests() [][]byte {
	keys := make([]byte, 24)
	all := [][]byte{
		append(appendRequest(nil, &request{kind: requestPush, parts: []wirePart{
			{state: 1, dtype: tensor.F32, a: 3, b: 9}, {state: 2, dtype: tensor.F64, table: true, a: 3, b: 4},
		}, keys: keys}), keys...),
		appendRequest(nil, &request{kind: requestPull, parts: []wirePart{{dtype: tensor.F32, b: 1}}}),
		appendRequest(nil, &request{kind: requestSnapshot, name: "step-7"}),
		appendRequest(nil, &request{kind: requestBye, verdict: Verdict{Given: true, Step: 3, Weight: 1}}),
	}
	return all
}

// TestDecodeRefuses every request that is cut short or longer than it says,
// and impossible fields.
func TestDecodeRefuses(t *testing.T) {
	var q request
	for i, b := range seedRequests() {
		if err := decodeRequest(b, &q); err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		for n := range len(b) {
			if decodeRequest(b[:n], &q) == nil {
				t.Errorf("seed %d: the first %d of %d bytes were taken", i, n, len(b))
			}
		}
		if decodeRequest(append(b, 0), &q) == nil {
			t.Errorf("seed %d: a byte too many was taken", i)
		}
	}
	push := seedRequests()[0]
	for name, c := range map[string]struct {
		at  int
		val byte
	}{
		"magic": {0, 0}, "kind 0": {4, 0}, "kind": {4, 200}, "a flush with parts": {4, byte(requestFlush)}, "flags": {5, 2},
		"more parts": {7, 1}, "name": {41, 1}, "reserved": {44, 1}, "part kind": {52, 2}, "part dtype": {53, byte(tensor.I64)},
		"part reserved": {54, 1}, "empty range": {56, 9}, "huge range": {71, 1}, "key count": {80, 4}, "dim 0": {88, 0}, "huge dim": {92, 1},
	} {
		b := bytes.Clone(push)
		b[c.at] = c.val
		if decodeRequest(b, &q) == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// FuzzRequest: whatever comes, decoding neither panics nor allocates more than
// the message is long, and what it takes it writes back alike.
func FuzzRequest(f *testing.F) {
	for _, b := range seedRequests() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q request
		if decodeRequest(b, &q) != nil {
			return
		}
		if len(q.parts)*partHead > len(b) {
			t.Fatalf("%d parts from %d bytes", len(q.parts), len(b))
		}
		for _, p := range q.parts {
			if p.dataBytes() < 0 {
				t.Fatalf("part of %d bytes", p.dataBytes())
			}
		}
		if again := append(appendRequest(nil, &q), q.keys...); !bytes.Equal(again, b) {
			t.Fatalf("read and written again:\n%x\n%x", b, again)
		}
	})
}

// FuzzReply is FuzzRequest for replies.
func FuzzReply(f *testing.F) {
	f.Add(appendReply(nil, &reply{kind: requestPull, seq: 3, version: 4}))
	f.Add(append(appendReply(nil, &reply{kind: requestStats, tail: []byte("{}")}), "{}"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r reply
		if decodeReply(b, &r) != nil {
			return
		}
		if again := append(appendReply(nil, &r), r.tail...); !bytes.Equal(again, b) {
			t.Fatalf("read and written again:\n%x\n%x", b, again)
		}
	})
}
