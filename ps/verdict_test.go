package ps

import (
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// TestLastVerdictArrives: the verdict on the last step of a run rides on
// whatever comes last: a flush, or the goodbye.
func TestLastVerdictArrives(t *testing.T) {
	for _, flush := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, newModel(tensor.F32, rules[0]), 2, 2, Config{}, mem.Options{Link: delays})
			c.start(t.Context())
			train[float32](t, c, 2, always)
			if flush {
				if err := c.clients[1].Flush(t.Context()); err != nil {
					t.Error(err)
				}
				c.versions(t, "a flush", 2)
			}
			if err := c.each(func(w int) error { return c.clients[w].Close(t.Context()) }); err != nil {
				t.Error(err)
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			c.versions(t, "the goodbye", 2)
		})
	}
}

// versions looks at the servers when nothing moves.
func (c *cluster) versions(t *testing.T, after string, want int64) {
	t.Helper()
	synctest.Wait()
	for i, s := range c.servers {
		if got := s.shard.Version(); got != want {
			t.Errorf("after %s store %d is at version %d, want %d", after, i, got, want)
		}
	}
}
