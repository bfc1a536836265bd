package comm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/gangline/gangline/launch"
)

// Program is how a rank is started: a program whose life, under the environment of
// package launch, is [Rank].
type Program struct {
	Exe  string
	Args []string
	Env  []string
	// Stderr takes what ranks write.
	Stderr io.Writer
}

// Run starts the ranks and returns what rank 0 measured.
func Run(ctx context.Context, c Config, p Program) ([]Result, error) {
	return start[Result](ctx, c, c.Ranks, p)
}

// start starts so many ranks, if what is asked for is in order, and returns what rank 0
// measured.
func start[T any](ctx context.Context, asked interface{ Validate() error }, ranks int, p Program) ([]T, error) {
	if err := asked.Validate(); err != nil {
		return nil, err
	}
	out, err := launch.Run(ctx, launch.Config{
		Exe: p.Exe, Args: func(int, int) []string { return p.Args }, Env: p.Env, World: ranks, Stderr: p.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return read[T](out.Reports[0])
}

// read takes what rank 0 measured out of its report.
func read[T any](report []byte) (all []T, err error) {
	if err := json.Unmarshal(report, &all); err != nil {
		return nil, fmt.Errorf("the report of rank 0: %w", err)
	}
	return all, nil
}
