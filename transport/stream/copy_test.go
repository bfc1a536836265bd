//go:build unix

package stream

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// place copies what it should and nothing beside it, from and to any place.
func TestPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 8<<10)
	for i := range src {
		src[i] = byte(rng.Uint32()) | 1
	}
	for range 2000 {
		dst := make([]byte, len(src))
		at, from, n := rng.IntN(200), rng.IntN(200), rng.IntN(len(src)-200)
		spare := rng.IntN(2) * rng.IntN(100) // one is longer than the other
		if got := place(dst[at:at+n], src[from:min(len(src), from+n+spare)]); got != n {
			t.Fatalf("copied %d bytes of %d", got, n)
		}
		if !bytes.Equal(dst[at:at+n], src[from:from+n]) {
			t.Fatalf("%d bytes from %d to %d are not the same", n, from, at)
		}
		if len(bytes.Trim(dst[:at], "\x00"))+len(bytes.Trim(dst[at+n:], "\x00")) > 0 {
			t.Fatalf("%d bytes from %d to %d: more was written", n, from, at)
		}
	}
	if got := place(make([]byte, 10), src[:4000]); got != 10 {
		t.Errorf("copied %d bytes to 10", got)
	}
}
