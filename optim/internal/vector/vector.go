// Package vector has update rules in float32 as assembly for amd64 with AVX2.
//
// Each function does all elements and reports true, or none, on a machine without
// the assembly and for slices shorter than a vector: then package optim does
// them. Both have the same bits: the operations are the same, in the same order,
// and none is fused with another.
package vector

//go:generate sh -c "cd ../../../tools && go run ./asmgen -out ../optim/internal/vector"

import "golang.org/x/sys/cpu"

// Coefs are the scalars of a step, 8 times each, in the order of Scalars.
type Coefs [17][8]float32

// Scalars are what a rule multiplies by and adds. Their meaning is that of the
// fields of the same names in optim; Ridge is the l2 of ftrl.
type Scalars struct {
	Total, Clip, MinusClip, L2, Rate, Decay, Mu, Damp, Eps, Blend1, Beta2, Blend2, Root2, Unbias, L1, Ridge, Beta float32
}

// Spread returns the coefficients of a step.
func (s Scalars) Spread() (c Coefs) {
	for i, v := range [...]float32{
		s.Total, s.Clip, s.MinusClip, s.L2, s.Rate, s.Decay, s.Mu, s.Damp, s.Eps, s.Blend1, s.Beta2, s.Blend2, s.Root2,
		s.Unbias, s.L1, s.Ridge, s.Beta,
	} {
		for j := range c[i] {
			c[i][j] = v
		}
	}
	return c
}

// Here reports whether this machine can run the assembly.
func Here() bool { return haveAssembly && cpu.X86.HasAVX2 }

// lanes is how many elements a vector holds.
const lanes = 8

// fits reports whether slices of n elements are for the assembly.
func fits(n int) bool { return n >= lanes && Here() }

// Fetch has the beginning of rows brought near that are about to be used.
func Fetch(rows []float32, at []int, dim int) {
	if len(at) > 0 && len(rows) > 0 && Here() {
		fetchAVX(&rows[0], &at[0], len(at), 4*dim)
	}
}

// SGD is optim's rule sgd.
func SGD(p, g []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g = g[:n]
	sgdAVX(&p[0], &g[0], n, &c[0][0])
	return true
}

// Momentum is optim's rule momentum, with Nesterov's look ahead or without.
func Momentum(p, g, u []float32, c *Coefs, nesterov bool) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g, u = g[:n], u[:n]
	if nesterov {
		nesterovAVX(&p[0], &g[0], &u[0], n, &c[0][0])
	} else {
		momentumAVX(&p[0], &g[0], &u[0], n, &c[0][0])
	}
	return true
}

// Adagrad is optim's rule adagrad.
func Adagrad(p, g, a []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g, a = g[:n], a[:n]
	adagradAVX(&p[0], &g[0], &a[0], n, &c[0][0])
	return true
}

// RMSProp is optim's rule rmsprop: centered if there is a mean, and with momentum
// if there is a velocity.
func RMSProp(p, g, s, mean, velocity []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g, s = g[:n], s[:n]
	switch {
	case mean == nil && velocity == nil:
		rmspropAVX(&p[0], &g[0], &s[0], n, &c[0][0])
	case velocity == nil:
		mean = mean[:n]
		rmspropCenteredAVX(&p[0], &g[0], &s[0], &mean[0], n, &c[0][0])
	case mean == nil:
		velocity = velocity[:n]
		rmspropMomentumAVX(&p[0], &g[0], &s[0], &velocity[0], n, &c[0][0])
	default:
		mean, velocity = mean[:n], velocity[:n]
		rmspropCenteredMomentumAVX(&p[0], &g[0], &s[0], &mean[0], &velocity[0], n, &c[0][0])
	}
	return true
}

// Adam is optim's rules adam and adamw, with AMSGrad if there is a top.
func Adam(p, g, m1, m2, top []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g, m1, m2 = g[:n], m1[:n], m2[:n]
	if top == nil {
		adamAVX(&p[0], &g[0], &m1[0], &m2[0], n, &c[0][0])
		return true
	}
	top = top[:n]
	amsgradAVX(&p[0], &g[0], &m1[0], &m2[0], &top[0], n, &c[0][0])
	return true
}

// FTRL is optim's rule ftrl with the square root.
func FTRL(p, g, z, sum []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	g, z, sum = g[:n], z[:n], sum[:n]
	ftrlAVX(&p[0], &g[0], &z[0], &sum[0], n, &c[0][0])
	return true
}

// LAMBMoments is the first pass of optim's rule lamb, and the squared norm of the
// directions.
func LAMBMoments(p, g, m1, m2 []float32, c *Coefs) (squares float64, ok bool) {
	n := len(p)
	if !fits(n) {
		return 0, false
	}
	g, m1, m2 = g[:n], m1[:n], m2[:n]
	return lambMomentsAVX(&p[0], &g[0], &m1[0], &m2[0], n, &c[0][0]), true
}

// LAMB is the second pass of optim's rule lamb.
func LAMB(p, m1, m2 []float32, c *Coefs) bool {
	n := len(p)
	if !fits(n) {
		return false
	}
	m1, m2 = m1[:n], m2[:n]
	lambAVX(&p[0], &m1[0], &m2[0], n, &c[0][0])
	return true
}

// Squares is optim.SquareNorm.
func Squares(x []float32) (squares float64, ok bool) {
	if !fits(len(x)) {
		return 0, false
	}
	return squaresAVX(&x[0], len(x)), true
}
