package sock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// logBuffer collects log lines of several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// bareListener is a Listener whose calls the test makes itself.
func bareListener(cfg Config) *Listener {
	l := &Listener{
		cfg: cfg.withDefaults(), arrived: make(map[int]net.Conn), pendings: make(map[net.Conn]bool),
		news: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Every way in which a call can be wrong is refused with its reason, which the
// caller learns and the log keeps.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *Config) // of a rank 2 of 4 that calls rank 0
		to     int
		reason wire.Reason
		final  bool
		text   string
	}{
		{"token", func(c *Config) { c.Token = "another token" }, 0, wire.ReasonToken, true, "token does not match"},
		{"older generation", func(c *Config) { c.Generation = 2 }, 0, wire.ReasonGeneration, true, "generation 2, this is 3"},
		{"newer generation", func(c *Config) { c.Generation = 4 }, 0, wire.ReasonGeneration, false, "generation 4, this is 3"},
		{"world", func(c *Config) { c.World = 5 }, 0, wire.ReasonWorld, true, "counts 5 ranks"},
		{"another rank's address", func(*Config) {}, 1, wire.ReasonRank, true, "wants rank 1, this is rank 0"},
		{"own rank", func(c *Config) { c.Rank = 0 }, 0, wire.ReasonRank, true, "rank 0 does not dial rank 0"},
		{"rank too high", func(c *Config) { c.Rank = 4 }, 0, wire.ReasonRank, true, "rank 4 does not dial"},
		{"duplicate", func(c *Config) { c.Rank = 3 }, 0, wire.ReasonDuplicate, true, "rank 3 is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logBuffer
				cfg := testConfig("tcp", 0, 4)
				cfg.Logger = log.logger()
				l := bareListener(cfg)
				first, _ := net.Pipe()
				l.arrived[3] = first
				ours, theirs := net.Pipe()
				met := make(chan struct{})
				go func() { defer close(met); l.meet(theirs) }()
				caller := testConfig("tcp", 2, 4)
				tt.change(&caller)
				err := greet(ours, caller, tt.to)
				<-met
				r := new(refusal)
				if !errors.As(err, &r) || r.reason != tt.reason || r.final != tt.final {
					t.Errorf("got %v (%+v), want reason %v, final %v", err, r, tt.reason, tt.final)
				}
				for _, want := range []string{tt.text, "remote=pipe", "rank=0"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("log %q does not say %q", log.String(), want)
					}
				}
				if len(l.arrived) != 1 || l.arrived[3] != first || len(l.pendings) != 0 {
					t.Errorf("the place was touched: %v, pending %v", l.arrived, l.pendings)
				}
			})
		})
	}
}

// What is not a handshake at all ends by itself, at the deadline at the latest,
// and the log says what it was.
func TestNotAHandshake(t *testing.T) {
	ping := make([]byte, wire.HeaderSize)
	if err := (wire.Header{Kind: wire.Ping, Generation: 3}).Encode((*[wire.HeaderSize]byte)(ping)); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(ping)
	damaged[8] ^= 1
	long := make([]byte, wire.HeaderSize)
	if err := (wire.Header{Kind: wire.Data, Generation: 3, Length: 1 << 30}).Encode((*[wire.HeaderSize]byte)(long)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		bytes  []byte
		hangUp bool
		text   string
		after  time.Duration
	}{
		{"silent", nil, false, "silent after 0 bytes", 5 * time.Second},
		{"half a header", ping[:9], false, "silent after 9 bytes", 5 * time.Second},
		{"port scanner", nil, true, "hung up after 0 bytes", 0},
		{"hangs up", ping[:30], true, "hung up after 30 bytes", 0},
		{"browser", []byte("GET / HTTP/1.1\r\n\r\n"), false, "not a gangline peer", 0},
		{"other frame", ping, false, "began with ping", 0},
		{"damaged", damaged, false, "checksum does not match", 0},
		{"endless", long, false, "in the handshake", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logBuffer
				cfg := testConfig("tcp", 0, 2)
				cfg.Logger = log.logger()
				l := bareListener(cfg)
				ours, theirs := net.Pipe()
				go func() {
					_, _ = ours.Write(tt.bytes)
					if tt.hangUp {
						ours.Close()
					}
					_, _ = io.Copy(io.Discard, ours)
				}()
				begin := time.Now()
				l.meet(theirs)
				if d := time.Since(begin); d != tt.after {
					t.Errorf("took %v, want %v", d, tt.after)
				}
				if !strings.Contains(log.String(), tt.text) {
					t.Errorf("log %q does not say %q", log.String(), tt.text)
				}
				ours.Close()
			})
		})
	}
}

// A listener that does not know the token is not believed.
func TestFalseListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			defer theirs.Close()
			for _, size := range []int{wire.NonceSize, wire.ProofSize} {
				if _, _, err := readFrame(theirs); err != nil {
					t.Error(err)
				}
				if err := writeFrame(theirs, wire.Header{Kind: wire.Welcome, Generation: 3}, make([]byte, size)); err != nil {
					t.Error(err)
				}
			}
		}()
		r := new(refusal)
		if err := greet(ours, testConfig("tcp", 1, 2), 0); !errors.As(err, &r) || r.reason != wire.ReasonToken {
			t.Errorf("got %v, want a refusal for the token", err)
		}
	})
}

// Strangers of all kinds call while four ranks connect; none is in the way, and
// the listener ends with silent ones still there.
func TestStrangers(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var log logBuffer
			cfg := testConfig(network, 0, 2)
			cfg.Logger = log.logger()
			l, err := Listen(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var strangers []net.Conn
			for i := range MaxStrangers / 2 {
				c, err := net.Dial(network, l.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if i%2 == 0 {
					strangers = append(strangers, c) // these say something and are cut off
					if _, err := c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n")); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, c := range strangers {
				_, _ = io.Copy(io.Discard, c)
			}
			if n := strings.Count(log.String(), "not a gangline peer"); n != len(strangers) {
				t.Errorf("%d lines about strangers, want %d", n, len(strangers))
			}
			other, err := Listen(testConfig(network, 1, 2))
			if err != nil {
				t.Fatal(err)
			}
			connectPair(t, l, other)
		})
	}
}

func connectPair(t *testing.T, l, other *Listener) {
	t.Helper()
	addrs := []string{l.Addr(), other.Addr()}
	var wg sync.WaitGroup
	for _, x := range []*Listener{l, other} {
		wg.Go(func() {
			e, err := x.Connect(context.Background(), addrs, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Two processes of the same rank: the second is refused at once and says why,
// the first goes on.
func TestDuplicate(t *testing.T) {
	l, err := Listen(testConfig("tcp", 0, 2))
	if err != nil {
		t.Fatal(err)
	}
	first, err := dialOnce(context.Background(), l.cfg.as(1), 0, l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Listen(testConfig("tcp", 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Connect(context.Background(), []string{l.Addr(), ""}, nil)
	r := new(refusal)
	if !errors.As(err, &r) || r.reason != wire.ReasonDuplicate {
		t.Errorf("got %v, want a refusal as duplicate", err)
	}
	e, err := l.Connect(context.Background(), []string{"", ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func (c Config) as(rank int) Config {
	c.Rank = rank
	return c
}

// The error of Connect names the ranks that are missing and why.
func TestMissing(t *testing.T) {
	cfg := testConfig("unix", 1, 4)
	cfg.DialTimeout = 30 * time.Millisecond
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	nobody := t.TempDir() + "/nobody"
	_, err = l.Connect(context.Background(), []string{nobody, "", "", ""}, []int{3, 0, 2})
	var c *ConnectError
	if !errors.As(err, &c) {
		t.Fatalf("got %v, want a ConnectError", err)
	}
	if d := cmp.Diff([]int{0, 2, 3}, c.Missing); d != "" {
		t.Error(d)
	}
	for _, want := range []string{"ranks 0, 2, 3", nobody, "dial timeout of 30ms"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// Servers that need not talk to each other are not connected.
func TestSomePeers(t *testing.T) {
	peers := [][]int{{1, 2, 3}, {0, 2, 3}, {0, 1}, {1, 0}} // 2 and 3 are servers
	e := connectAll(t, 4, func(rank int) Config { return testConfig("unix", rank, 4) }, func(rank int) []int { return peers[rank] })
	ctx := context.Background()
	for a, list := range peers {
		for _, b := range list {
			r := &transport.Receive{Peer: a, Buf: make([]byte, 1)}
			if err := e[b].Post(r); err != nil {
				t.Fatal(err)
			}
			if err := e[a].Send(ctx, b, 0, nil, []byte{byte(a)}); err != nil {
				t.Fatal(err)
			}
			if err := r.Wait(ctx); err != nil || int(r.Buf[0]) != a {
				t.Fatalf("%d to %d: %v", a, b, err)
			}
		}
	}
	wantIs(t, e[2].Send(ctx, 3, 0, nil, nil), transport.ErrNoPeer)
	if h := e[2].Stats().LastHeard; !h[3].IsZero() || h[0].IsZero() {
		t.Errorf("heard %v", h)
	}
	for _, x := range e {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		text   string
	}{
		{func(c *Config) { c.Network = "udp" }, `network "udp"`},
		{func(c *Config) { c.World = 0 }, "world of 0"},
		{func(c *Config) { c.Rank = 2 }, "rank 2 of 2"},
		{func(c *Config) { c.Token = "short" }, "token of 5 bytes"},
		{func(c *Config) { c.DialTimeout = -1 }, "negative timeout"},
		{func(c *Config) { c.MaxMessage = 1<<30 + 1 }, "longest message"},
	} {
		c := testConfig("tcp", 1, 2)
		tt.change(&c)
		if _, err := Listen(c); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("got %v, want one that says %q", err, tt.text)
		}
		if err := c.Validate(); err != nil && strings.Contains(fmt.Sprint(err), c.Token) {
			t.Errorf("%v tells the token", err)
		}
	}
}
