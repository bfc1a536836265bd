package strategy

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// Serial trains in one process: parameters live there, and nothing stands
// between a gradient and the update.
func Serial(step *graph.Step, c Cluster) (*plan.Program, error) {
	if c.Workers != 1 || c.Servers != 0 {
		return nil, fmt.Errorf("strategy serial: %d workers and %d servers: want one worker and no servers", c.Workers, c.Servers)
	}
	if c.Slices > 0 {
		return inSlices(step, c)
	}
	return program(step, c, serialStep, localEval), nil
}

func serialStep(b *builder) {
	b.holdOnWorkers()
	b.feed()
	b.gather()
	b.forward(func([]*graph.Param) {})
	b.commit()
	b.update()
}
