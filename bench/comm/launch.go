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
	if err := c.Validate(); err != nil {
		return nil, err
	}
	report, err := p.run(ctx, c.Ranks)
	if err != nil {
		return nil, err
	}
	var results []Result
	if err := json.Unmarshal(report, &results); err != nil {
		return nil, fmt.Errorf("the report of rank 0: %w", err)
	}
	return results, nil
}

// run starts the program as so many ranks and returns the report of rank 0.
func (p Program) run(ctx context.Context, ranks int) ([]byte, error) {
	out, err := launch.Run(ctx, launch.Config{
		Exe: p.Exe, Args: func(int, int) []string { return p.Args }, Env: p.Env, World: ranks, Stderr: p.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return out.Reports[0], nil
}
