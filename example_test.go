package gangline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangline/gangline"
	"github.com/gangline/gangline/launch"
)

// ranks runs f as each of n ranks, in this process; mpirun, srun or gangline launch
// start a process for each, which calls Join.
func ranks(n int, f func(g *gangline.Group) error) error {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	errs := make([]error, n)
	var running sync.WaitGroup
	for r := range n {
		running.Go(func() {
			place := launch.Place{Rank: r, World: n, Private: filepath.Join(dir, "place")}
			g, err := gangline.JoinWith(context.Background(), gangline.Config{Place: place})
			if err == nil {
				err = errors.Join(f(g), g.Close())
			}
			errs[r] = err
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Every rank gives its gradients and gets the mean of all.
func ExampleGroup_AllReduce() {
	ctx := context.Background()
	err := ranks(3, func(g *gangline.Group) error {
		grads := []float32{float32(g.Rank()), 6}
		if err := g.AllReduce(ctx, grads, gangline.Mean, gangline.Name("grads")); err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Println(grads)
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// [1 6]
	// error: <nil>
}

// A sum that goes on while the program computes.
func ExampleGroup_StartAllReduce() {
	ctx := context.Background()
	err := ranks(2, func(g *gangline.Group) error {
		last := []float64{1, 2}
		h := g.StartAllReduce(ctx, last)
		first := []float64{3 * float64(g.Rank())} // computed meanwhile
		if err := h.Wait(ctx); err != nil {
			return err
		}
		if err := g.AllReduce(ctx, first, gangline.Max); err != nil {
			return err
		}
		if g.Rank() == 1 {
			fmt.Println(last, first)
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// [2 4] [3]
	// error: <nil>
}

// Ranks 0 and 2 count among themselves.
func ExampleGroup_Group() {
	ctx := context.Background()
	err := ranks(3, func(g *gangline.Group) error {
		if g.Rank() == 1 {
			return nil
		}
		even, err := g.Group(ctx, 0, 2)
		if err != nil {
			return err
		}
		count := []int64{1}
		if err := even.AllReduce(ctx, count); err != nil {
			return err
		}
		if even.Rank() == 0 {
			fmt.Println(even.Ranks(), count)
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// [0 2] [2]
	// error: <nil>
}

// Each rank has a part of a vector, and gets the others.
func ExampleGroup_Chunk() {
	ctx := context.Background()
	err := ranks(2, func(g *gangline.Group) error {
		vector := make([]int32, 5)
		lo, hi := g.Chunk(len(vector))
		for i := lo; i < hi; i++ {
			vector[i] = int32(10 * i)
		}
		if err := g.AllGather(ctx, vector); err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Println(lo, hi, vector)
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// 0 2 [0 10 20 30 40]
	// error: <nil>
}

// Rank 1 does not come: all hear who it was.
func ExampleError() {
	ctx := context.Background()
	late := make(chan struct{})
	_ = ranks(2, func(g *gangline.Group) error {
		if g.Rank() == 1 {
			<-late
			return nil
		}
		err := g.Barrier(ctx, gangline.Within(time.Second))
		if e, ok := errors.AsType[*gangline.Error](err); ok && errors.Is(err, gangline.ErrOverdue) {
			fmt.Println("missing: rank", e.Missing[0].Rank)
		}
		close(late)
		return err
	})
	// Output: missing: rank 1
}
