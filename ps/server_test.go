package ps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// cluster is workers 0 to W-1 and servers after them, over transport/mem.
type cluster struct {
	t       testing.TB
	m       *model
	net     *mem.Network
	workers []int
	servers []*Server
	clients []*Client
	ends    []error // of the servers
	done    sync.WaitGroup
}

func newCluster(t testing.TB, m *model, workers, stores int, cfg Config, o mem.Options) *cluster {
	c := &cluster{t: t, m: m, net: mem.NewNetwork(workers+stores, o), ends: make([]error, stores)}
	var ranks []int
	for w := range workers {
		c.workers = append(c.workers, w)
	}
	for i, s := range m.shards(t, stores, c.workers) {
		ranks = append(ranks, workers+i)
		c.servers = append(c.servers, NewServer(c.net.Endpoint(workers+i), s, c.workers, cfg))
	}
	for w := range workers {
		client, err := NewClient(c.net.Endpoint(w), w, ranks, m.layouts(stores))
		if err != nil {
			t.Fatal(err)
		}
		c.clients = append(c.clients, client)
	}
	return c
}

func (c *cluster) start(ctx context.Context) {
	for i, s := range c.servers {
		c.done.Go(func() { c.ends[i] = s.Run(ctx) })
	}
}

// stop waits for the servers and closes all endpoints.
func (c *cluster) stop() error {
	c.done.Wait()
	for _, e := range c.net.Endpoints() {
		e.Close()
	}
	return errors.Join(c.ends...)
}

// each runs f for every worker at once.
func (c *cluster) each(f func(w int) error) error {
	errs := make([]error, len(c.workers))
	var wg sync.WaitGroup
	for w := range c.workers {
		wg.Go(func() { errs[w] = f(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// parts makes the parts of a whole gradient, or of whole parameters, for one
// store.
func (c *cluster) parts(store int, g gradient) []Part {
	var all []Part
	for _, st := range c.m.layouts(len(c.servers))[store].States {
		if st.Table {
			all = append(all, Part{State: st.Index, Keys: tensor.From(g.keys, len(g.keys)), Data: g.rows})
			continue
		}
		all = append(all, Part{State: st.Index, Lo: st.Lo, Hi: st.Hi, Data: g.dense[st.Name]})
	}
	return all
}

// train runs steps of all workers with a barrier for Commit, and checks what
// each pull gives against the reference.
func train[T tensor.Float](t *testing.T, c *cluster, steps int64, weight func(int64) float64) *reference[T] {
	ctx := t.Context()
	ref := newReference[T](c.m)
	for step := range steps {
		grads := make([]gradient, len(c.workers))
		for w := range grads {
			keys := []int64{}
			for k := int64(w); k < 40; k += step + 3 {
				keys = append(keys, k)
			}
			grads[w] = c.m.gradient(int(step)*100+w, keys)
		}
		err := c.each(func(w int) error {
			got := c.m.gradient(0, grads[w].keys)
			for s := range c.servers {
				if err := c.clients[w].Pull(ctx, s, step, c.parts(s, got)); err != nil {
					return err
				}
			}
			for name, v := range got.dense {
				sameBits(t, name, tensor.Data[T](v), ref.p[name])
			}
			for i, k := range got.keys {
				sameBits(t, "emb", tensor.Data[T](got.rows)[2*i:2*i+2], ref.p["emb"][2*k:2*k+2])
			}
			for s := range c.servers {
				if err := c.clients[w].Push(ctx, s, step, c.parts(s, grads[w])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		total := weight(step)
		for _, client := range c.clients {
			client.Committed(step, total)
		}
		if total > 0 {
			ref.apply(step, total, grads)
		}
	}
	return ref
}

func always(int64) float64 { return 4 }

// delays makes every link slow, and each by another time, so that arrivals of
// the workers interleave anew at every server.
func delays(from, to int) mem.Link {
	return mem.Link{Delay: time.Duration(1+from*7+to*3) * time.Millisecond}
}

// TestTrain: workers over delayed links see, step by step, the bits of the
// serial loop; a skipped step changes nothing; the end is orderly and accounted.
func TestTrain(t *testing.T) {
	for _, stores := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d stores", stores), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, newModel(tensor.F32, rules[3]), 3, stores, Config{}, mem.Options{Link: delays})
				c.start(t.Context())
				train[float32](t, c, 5, func(step int64) float64 { return float64((step + 3) % 4) }) // step 1 is skipped
				if err := c.clients[1].Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				stats, err := c.clients[0].Stats(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range stats {
					states := int64(len(c.servers[i].shard.layout.States))
					if s.Version != 5 || s.StepsApplied != 4 || s.StepsSkipped != 1 || s.Applied != 4*3*states || s.Skipped != 3*states || !s.Balanced() {
						t.Errorf("store %d: %+v", i, s)
					}
				}
				if err := c.each(func(w int) error { return c.clients[w].Close(t.Context()) }); err != nil {
					t.Fatal(err)
				}
				if err := c.stop(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestSnapshot: one worker's request brings the last verdict, and each server
// hands out its state at that version.
func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var pieces []checkpoint.Piece
		cfg := Config{OnSnapshot: func(step int64, name string, p []checkpoint.Piece) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			pieces = append(pieces, p...)
			if name == "bad" {
				return nil, errors.New("disk full")
			}
			return fmt.Appendf(nil, "%s at %d", name, step), nil
		}}
		c := newCluster(t, newModel(tensor.F64, rules[1]), 2, 2, cfg, mem.Options{Link: delays})
		c.start(t.Context())
		ref := train[float64](t, c, 3, always)
		receipts, err := c.clients[0].Snapshot(t.Context(), 3, "ckpt")
		if err != nil {
			t.Fatal(err)
		}
		if string(receipts[0]) != "ckpt at 3" || string(receipts[1]) != "ckpt at 3" {
			t.Errorf("receipts %q", receipts)
		}
		for i, v := range assembled(pieces)["w"] {
			if v != ref.p["w"][i] {
				t.Errorf("w[%d] = %v, want %v", i, v, ref.p["w"][i])
			}
		}
		fresh := c.m.shards(t, 1, []int{0})[0]
		if err := fresh.Import(pieces); err != nil {
			t.Error(err)
		}
		_, err = c.clients[1].Snapshot(t.Context(), 3, "bad")
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("a failed snapshot gives %v", err)
		}
		if err := c.clients[1].Flush(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("a refused client goes on: %v", err)
		}
		c.net.Kill(1)
		if err := c.stop(); err == nil || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("servers end with %v", err)
		}
	})
}

// TestLostWorker: others' waits end with its name, and so does every server.
func TestLostWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newModel(tensor.F64, rules[0]), 3, 2, Config{}, mem.Options{Link: delays})
		c.start(t.Context())
		train[float64](t, c, 2, always)
		err := c.each(func(w int) error {
			g := c.m.gradient(w, []int64{1, 2, 3})
			if w == 2 {
				time.Sleep(time.Second)
				c.net.Kill(2)
				return nil
			}
			for s := range c.servers {
				if err := c.clients[w].Push(t.Context(), s, 2, c.parts(s, g)); err != nil {
					return err
				}
			}
			err := c.clients[w].Pull(t.Context(), w, 3, c.parts(w, g)) // no verdict: it waits
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "rank 2 was lost") {
				return fmt.Errorf("worker %d: %w", w, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		err = c.stop()
		for i, e := range c.ends {
			if !errors.Is(e, transport.ErrPeerLost) || !strings.Contains(e.Error(), "worker at rank 2") {
				t.Errorf("store %d ends with %v of %v", i, e, err)
			}
		}
	})
}

// TestPatience: a pull whose step does not commit ends after the time set, not
// before, and names who is missing.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := newCluster(t, newModel(tensor.F64, rules[0]), 2, 1, Config{Patience: 8 * time.Second}, mem.Options{})
		c.start(ctx)
		g := c.m.gradient(1, []int64{1})
		if err := c.clients[0].Push(ctx, 0, 0, c.parts(0, g)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := c.clients[0].Pull(ctx, 0, 1, c.parts(0, g))
		if waited := time.Since(began); waited < 8*time.Second || waited > 11*time.Second {
			t.Errorf("waited %v", waited)
		}
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "rank 1 to w, b, emb") || !strings.Contains(err.Error(), "store 0 (rank 2)") {
			t.Errorf("got %v", err)
		}
		cancel(errors.New("enough"))
		if err := c.stop(); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("server ends with %v", err)
		}
	})
}

// TestClientErrors: mistakes that never reach the wire leave the client usable;
// a ctx that ends does not.
func TestClientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCluster(t, newModel(tensor.F64, rules[0]), 2, 2, Config{}, mem.Options{})
		c.start(ctx)
		client := c.clients[0]
		good := c.m.gradient(1, []int64{1, 5})
		for name, bad := range map[string][]Part{
			"state":      {{State: 11, Lo: 0, Hi: 1, Data: tensor.New(tensor.F64, 1)}},
			"range":      {{State: 10, Lo: 0, Hi: 15, Data: good.dense["w"]}},
			"size":       {{State: 10, Lo: 0, Hi: 7, Data: good.dense["b"]}},
			"dtype":      {{State: 10, Lo: 0, Hi: 7, Data: tensor.New(tensor.F32, 15)}},
			"no keys":    {{State: 30, Lo: 0, Hi: 7, Data: good.rows}},
			"keys":       {{State: 10, Keys: tensor.New(tensor.I64, 2), Data: good.dense["w"]}},
			"descending": {{State: 30, Keys: tensor.From([]int64{5, 1}, 2), Data: good.rows}},
			"twice":      {{State: 30, Keys: tensor.From([]int64{5, 5}, 2), Data: good.rows}},
			"negative":   {{State: 30, Keys: tensor.From([]int64{-1, 5}, 2), Data: good.rows}},
			"outside":    {{State: 30, Keys: tensor.From([]int64{1, 40}, 2), Data: good.rows}},
			"rows":       {{State: 30, Keys: tensor.From([]int64{1}, 1), Data: good.rows}},
		} {
			for what, err := range map[string]error{
				"push": client.Push(ctx, 0, 0, bad), "pull": client.Pull(ctx, 0, 0, bad),
			} {
				if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "rank 0: "+what) {
					t.Errorf("%s of wrong %s: %v", what, name, err)
				}
			}
		}
		if err := client.Push(ctx, 2, 0, nil); err == nil {
			t.Error("pushed to store 2 of 2")
		}
		if err := client.Push(ctx, 1, 0, c.parts(1, good)); err != nil {
			t.Errorf("after mistakes: %v", err)
		}
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if err := client.Pull(short, 1, 1, c.parts(1, good)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a pull without verdict: %v", err)
		}
		if err := client.Flush(ctx); err == nil || !strings.Contains(err.Error(), "store 1 (rank 3): an earlier request failed") {
			t.Errorf("after a broken request: %v", err)
		}
		cancel()
		if err := c.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("servers end with %v", err)
		}
	})
}

// TestMalformed: bytes that are no request end the server with the sender's name.
func TestMalformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newModel(tensor.F64, rules[0]), 2, 1, Config{RequestMax: 1 << 16}, mem.Options{})
		c.start(t.Context())
		if err := c.net.Endpoint(1).Send(t.Context(), 2, tag(0, tagRequest), []byte("hello"), nil); err != nil {
			t.Error(err)
		}
		if err := c.stop(); !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("the server ends with %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newModel(tensor.F64, rules[0]), 1, 1, Config{RequestMax: 1 << 16}, mem.Options{})
		c.start(t.Context())
		if err := c.net.Endpoint(0).Send(t.Context(), 1, tag(0, tagRequest), nil, make([]byte, 1<<17)); err != nil {
			t.Log(err) // the sender may be told
		}
		if err := c.stop(); !errors.Is(err, transport.ErrLimit) {
			t.Errorf("the server ends with %v", err)
		}
	})
}

// TestLatePush: a worker that is behind is told so, and can go on.
func TestLatePush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newModel(tensor.F64, rules[0]), 1, 1, Config{}, mem.Options{})
		c.start(t.Context())
		train[float64](t, c, 2, always)
		if err := c.clients[0].Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := c.m.gradient(1, []int64{1})
		if err := c.clients[0].Push(t.Context(), 0, 1, c.parts(0, g)); !errors.Is(err, ErrLate) {
			t.Errorf("push for a past step: %v", err)
		}
		if err := c.clients[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		if s := c.servers[0].Stats(); s.Late != 3 || !s.Balanced() {
			t.Errorf("%+v", s)
		}
	})
}

// TestPartsInAnyOrder: states may be pushed one by one and in any order.
func TestPartsInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newModel(tensor.F64, rules[0]), 1, 1, Config{}, mem.Options{})
		c.start(t.Context())
		g := c.m.gradient(1, []int64{1, 2})
		parts := c.parts(0, g)
		slices.Reverse(parts)
		for i := range parts {
			if err := c.clients[0].Push(t.Context(), 0, 0, parts[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		c.clients[0].Committed(0, 2)
		ref := newReference[float64](c.m)
		ref.apply(0, 2, []gradient{g})
		got := c.m.gradient(5, []int64{1, 2})
		gotParts := c.parts(0, got)
		slices.Reverse(gotParts)
		if err := c.clients[0].Pull(t.Context(), 0, 1, gotParts); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "w", got.dense["w"].F64(), ref.p["w"])
		sameBits(t, "emb", got.rows.F64(), ref.p["emb"][2:6])
		if err := errors.Join(c.clients[0].Close(t.Context()), c.stop()); err != nil {
			t.Error(err)
		}
	})
}
