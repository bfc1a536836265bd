//go:build unix

package stream

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/transporttest"
)

// With checksums a tcp stream is a stream as any other.
func TestSumsSuite(t *testing.T) {
	transporttest.RunStreams(t, func(t *testing.T, n int) []transport.Streams {
		return openAll(t, n, func(rank int) Config {
			c := testConfig(rank, n, TCP)
			c.Checksum = true
			return c
		})
	})
}

// Members of which some want checksums are told so, all of them.
func TestSumsDiffer(t *testing.T) {
	errs := openErrors(t, 3, func(rank int) Config {
		c := testConfig(rank, 3, TCP)
		c.Checksum = rank == 2
		return c
	})
	wantAll(t, errs, "rank 2 wants checksums, rank 0 none")
}

// relayed are the ends of two ranks, between which the test carries the bytes: what one
// writes comes out of its wire.
func relayed(t *testing.T) (groups [2]*Group, wires [2]int) {
	t.Helper()
	for rank := range groups {
		ends, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		s := newSocket(TCP, 1-rank, ends[0], -1)
		s.useSums()
		c := testConfig(rank, 2, TCP)
		groups[rank], wires[rank] = newGroup(c.withDefaults(), 0, []body{s}), ends[1]
		t.Cleanup(func() {
			groups[rank].Abort()
			_ = unix.Close(ends[1])
		})
	}
	return groups, wires
}

// carry moves what is on the wire of rank 0 to that of rank 1, and changes bit at of all
// that went so.
func carry(t *testing.T, wires [2]int, gone, at int) int {
	t.Helper()
	buf := make([]byte, 1<<20)
	n, err := unix.Read(wires[0], buf)
	if err != nil || n == 0 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if bit := at - gone*8; bit >= 0 && bit < n*8 {
		buf[bit/8] ^= 1 << (bit % 8)
	}
	if k, err := unix.Write(wires[1], buf[:n]); err != nil || k != n {
		t.Fatalf("%d of %d bytes, %v", k, n, err)
	}
	return gone + n
}

// TestFlippedBit changes any bit of what crosses, in heads and in values: the reader gets
// what came before, and then an error that names both ranks. It waits for nothing.
func TestFlippedBit(t *testing.T) {
	message := make([]byte, 40_000)
	content := rand.New(rand.NewPCG(1, 1))
	for i := range message {
		message[i] = byte(content.Uint32())
	}
	whole := len(message) + 2*sumsHead
	bits := []int{-1, 0, 31, 40, 8*sumsHead - 1, 8 * sumsHead, 8*(whole/2) + 3, 8*whole - 1}
	for range 20 {
		bits = append(bits, content.IntN(8*whole))
	}
	for _, bit := range bits {
		groups, wires := relayed(t)
		out, in := groups[0].To(1), groups[1].To(0)
		var got []byte
		var err error
		gone := 0
		for _, part := range [][]byte{message[:len(message)/2], message[len(message)/2:]} {
			if n, err := out.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
			gone = carry(t, wires, gone, bit)
			piece := make([]byte, len(part))
			var n int
			n, err = in.Read(piece)
			got = append(got, piece[:n]...)
		}
		if err == nil {
			_, err = in.Read(make([]byte, 1))
		}
		if !bytes.Equal(got, message[:len(got)]) {
			t.Errorf("bit %d: what was read is not what was written", bit)
		}
		if bit < 0 {
			if err != nil || len(got) != len(message) {
				t.Errorf("nothing changed: %d bytes, %v", len(got), err)
			}
			continue
		}
		p, ok := errors.AsType[*transport.PeerError](err)
		if !ok || !errors.Is(err, transport.ErrCorrupt) || p.Rank != 1 || p.Peer != 0 {
			t.Errorf("bit %d: got %v, want an error of rank 1 about rank 0", bit, err)
		}
		if len(got) == len(message) {
			t.Errorf("bit %d: all was read", bit)
		}
	}
}

// A collective whose bytes change on the way says which one it is, and who sent them.
func TestFlippedBitNamesTheCall(t *testing.T) {
	groups, wires := relayed(t)
	run := func(rank int) error {
		r, err := collective.NewRunner(collective.Party{Streams: groups[rank], Group: []int{0, 1}, Index: rank},
			collective.BinomialBroadcast(2), tensor.F32, 100, collective.Options{Name: "weights"})
		if err != nil {
			return err
		}
		return r.Run(t.Context(), tensor.New(tensor.F32, 100))
	}
	if err := run(0); err != nil { // the root only sends
		t.Fatal(err)
	}
	carry(t, wires, 0, 8*300)
	err := run(1)
	if err == nil || !errors.Is(err, transport.ErrCorrupt) {
		t.Fatalf("got %v, want corrupt bytes", err)
	}
	for _, part := range []string{"rank 1", "rank 0", `"weights"`, "broadcast", "checksum"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
}

// What did not fit must be written again as it was.
func TestSumsChangedBytes(t *testing.T) {
	groups, wires := relayed(t)
	out := groups[0].To(1)
	message := make([]byte, sumsMost)
	n := len(message)
	for i := 0; n > 0 && i < 1000; i++ {
		var err error
		if n, err = out.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	message[0] = 1
	for gone := 0; gone < sumsMost; { // now there is room
		n, err := unix.Read(wires[0], make([]byte, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		gone += n
	}
	if n, err := out.Write(message); err == nil {
		t.Errorf("%d bytes, want an error", n)
	}
}
