package train

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// shardsHolder is a holder of which every worker has a part.
type shardsHolder struct {
	*local
	rank, of int
}

func (h shardsHolder) spread() bool { return true }

func (h shardsHolder) save(_ context.Context, _ int64, dir string) ([]checkpoint.Shard, error) {
	p := checkpoint.Piece{Name: "w", Shape: tensor.Shape{h.of}, Lo: h.rank, Hi: h.rank + 1, Data: tensor.From([]float32{float32(h.rank)}, 1)}
	s, err := checkpoint.WriteShard(dir, "worker-"+strconv.Itoa(h.rank), []checkpoint.Piece{p})
	return []checkpoint.Shard{s}, err
}

// shardsOf lets some of the workers of a job write their parts of a checkpoint.
func shardsOf(t *testing.T, workers int, ranks []int, dir string) (all []checkpoint.Shard, errs []error) {
	t.Helper()
	j := parse(t, resumeJob+fmt.Sprintf("strategy: {kind: allreduce, workers: %d}\nnetwork: {task_timeout: 3s}\n", workers), "checkpoint.dir="+dir)
	errs = make([]error, workers)
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(workers)
		var group sync.WaitGroup
		for _, r := range ranks {
			w := &worker{member: &member{
				cfg: Config{Job: j, Rank: r}, setup: &Setup{Job: j, Cluster: clusterOf(&j)}, endpoint: net.Endpoint(r),
			}}
			w.holder = shardsHolder{rank: r, of: workers}
			group.Go(func() {
				own := ""
				if r == 0 {
					own = dir
				}
				got, err := w.shards(t.Context(), 5, own)
				if r == 0 {
					all = got
				}
				errs[r] = err
			})
		}
		group.Wait()
		for _, e := range net.Endpoints() {
			_ = e.Close()
		}
	})
	return all, errs
}

// Every worker writes its part where rank 0 says, and rank 0 has what describes all.
func TestShardsOfAllWorkers(t *testing.T) {
	dir, err := checkpoint.Begin(t.TempDir(), 5)
	if err != nil {
		t.Fatal(err)
	}
	shards, errs := shardsOf(t, 3, []int{0, 1, 2}, dir)
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	final, err := checkpoint.Publish(dir, checkpoint.Manifest{Step: 5, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(final)
	if err != nil {
		t.Fatal(err)
	}
	w := tensor.New(tensor.F32, 3)
	if err := c.Assemble("w", w); err != nil || w.F32()[0] != 0 || w.F32()[1] != 1 || w.F32()[2] != 2 {
		t.Errorf("%v, %v", w.F32(), err)
	}
}

// A worker that is silent is named within network.task_timeout; so is a directory
// that a worker does not see.
func TestShardsMissing(t *testing.T) {
	dir := t.TempDir()
	_, errs := shardsOf(t, 3, []int{0, 1}, dir)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "network.task_timeout") {
		t.Errorf("rank 0: %v", errs[0])
	}
	gone := filepath.Join(dir, "gone")
	if _, err := os.Stat(gone); err == nil {
		t.Fatal("is there")
	}
	_, errs = shardsOf(t, 2, []int{0, 1}, gone)
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "must be shared by all hosts") {
		t.Errorf("rank 1: %v", errs[1])
	}
}
