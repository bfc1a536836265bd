package train

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport"
)

// counted is an endpoint that only counts.
type counted struct {
	transport.Endpoint
	stats transport.Stats
}

func (c *counted) Stats() transport.Stats { return c.stats }

// A server says every second, and at its end, how many steps it has applied and what it
// sends and receives.
func TestServerTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []coord.Progress
		ep, steps := &counted{}, int64(-10)
		m := &member{endpoint: ep, report: func(p coord.Progress) { told = append(told, p) }}
		ended, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			m.tell(ended, func() int64 { // what happened since it was last asked
				steps += 10
				ep.stats.BytesSent += 300
				ep.stats.BytesReceived += 200
				return steps
			})
		}()
		time.Sleep(3*time.Second + time.Second/2)
		close(ended)
		<-done
		want := []coord.Progress{{}, {Step: 10, BytesPerSecond: 500}, {Step: 20, BytesPerSecond: 500}, {Step: 30, BytesPerSecond: 500}, {Step: 40, BytesPerSecond: 1000}}
		if len(told) != len(want) {
			t.Fatalf("told %+v", told)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("told %+v, want %+v", told[i], want[i])
			}
		}
	})
}
