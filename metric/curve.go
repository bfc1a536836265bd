package metric

// curveMax is the most points of a curve. It is even.
const curveMax = 1000

// Point is one value of a curve. Step is the number of steps before it.
type Point struct {
	Step  int64   `json:"step"`
	Value float64 `json:"value"`
}

// Curve is the course of a number over the steps of a run, in at most 1000 points:
// of longer runs each point is the weighted mean over some steps, as many for all
// points but the last. It is a pure function of what was added.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`

	weights []float64 // of the points
	width   int64     // steps of a point
	held    int64     // steps in the last one
}

// Add takes the value after so many steps; steps ascend. Values of weight 0 leave
// no trace.
func (c *Curve) Add(step int64, value, weight float64) {
	if !(weight > 0) || Finite(value) == nil {
		return
	}
	n := len(c.Points)
	if n > 0 && c.held < c.width {
		c.join(n-1, Point{step, value}, weight)
		c.held++
		return
	}
	if n == curveMax {
		for i := 0; i < n; i += 2 {
			c.Points[i/2], c.weights[i/2] = c.Points[i], c.weights[i]
			c.join(i/2, c.Points[i+1], c.weights[i+1])
		}
		c.Points, c.weights = c.Points[:n/2], c.weights[:n/2]
		c.width *= 2
	}
	c.width, c.held = max(c.width, 1), 1
	c.Points, c.weights = append(c.Points, Point{step, value}), append(c.weights, weight)
}

// join adds a later value to point i.
func (c *Curve) join(i int, p Point, weight float64) {
	c.weights[i] += weight
	c.Points[i].Value += (p.Value - c.Points[i].Value) * weight / c.weights[i]
	c.Points[i].Step = p.Step
}
