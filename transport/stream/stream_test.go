//go:build unix

package stream

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
	"github.com/gangline/gangline/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testToken = "a token of the tests"

func testConfig(rank, world int, path Path) Config {
	c := Config{Rank: rank, World: world, Generation: 3, Token: testToken, Path: path, Tag: 9}
	for r := range world {
		c.Members = append(c.Members, r)
	}
	return c
}

// openAll opens the streams of n ranks in this process.
func openAll(tb testing.TB, n int, config func(rank int) Config) []transport.Streams {
	tb.Helper()
	net := mem.NewNetwork(n)
	s, errs := make([]transport.Streams, n), make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			c := config(rank)
			c.Endpoint = net.Endpoint(rank)
			s[rank], errs[rank] = Open(context.Background(), c)
			c.Endpoint.Close()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// The bodies of this system, by name.
func bodies() []Path {
	if canShare() {
		return []Path{Shm, Unix, TCP}
	}
	return []Path{Unix, TCP}
}

func TestSuite(t *testing.T) {
	for _, path := range bodies() {
		for name, spin := range map[string]time.Duration{"spin": 0, "sleep": -1} {
			t.Run(path.String()+"/"+name, func(t *testing.T) {
				transporttest.RunStreams(t, func(t *testing.T, n int) []transport.Streams {
					return openAll(t, n, func(rank int) Config {
						c := testConfig(rank, n, path)
						c.Spin = spin
						c.Ring = 16 << 10
						return c
					})
				})
			})
		}
	}
}
