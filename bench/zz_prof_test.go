package bench

import (
	"context"
	"os"
	"strconv"
	"testing"
)

func TestZProf(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ITERS"))
	th, _ := strconv.Atoi(os.Getenv("THREADS"))
	if n == 0 {
		t.Skip()
	}
	r, err := Run(context.Background(), os.Getenv("CASE"), Config{Threads: max(1, th), Iterations: n})
	t.Logf("%+v %v", r, err)
}
