// Package vector has update rules in float32 as assembly for amd64 with AVX2.
//
// Each function does as many elements as whole vectors hold, 0 on a machine
// without the assembly, and returns how many; package optim does the rest. Both
// have the same bits: the operations are the same, in the same order, and none
// is fused with another.
package vector

//go:generate sh -c "cd ../../../tools && go run ./asmgen -out ../optim/internal/vector"

import "golang.org/x/sys/cpu"

// Coefs are the scalars of a step, 8 times each, in the order of Scalars.
type Coefs [13][8]float32

// Scalars are what a rule multiplies by and adds. Their meaning is that of the
// fields of the same names in optim.
type Scalars struct {
	Total, Clip, MinusClip, L2, Rate, Decay, Mu, Damp, Eps, Blend1, Beta2, Blend2, Root2 float32
}

// Spread returns the coefficients of a step.
func (s Scalars) Spread() (c Coefs) {
	for i, v := range [...]float32{s.Total, s.Clip, s.MinusClip, s.L2, s.Rate, s.Decay, s.Mu, s.Damp, s.Eps, s.Blend1, s.Beta2, s.Blend2, s.Root2} {
		for j := range c[i] {
			c[i][j] = v
		}
	}
	return c
}

// Here reports whether this machine can run the assembly.
func Here() bool { return haveAssembly && cpu.X86.HasAVX2 }

// whole is how many elements whole vectors hold.
func whole(n int) int {
	if !Here() {
		return 0
	}
	return n &^ 7
}

// SGD is optim's rule sgd.
func SGD(p, g []float32, c *Coefs) int {
	g = g[:len(p)]
	n := whole(len(p))
	if n > 0 {
		sgdAVX(&p[0], &g[0], n, &c[0][0])
	}
	return n
}

// Momentum is optim's rule momentum, with Nesterov's look ahead or without.
func Momentum(p, g, u []float32, c *Coefs, nesterov bool) int {
	g, u = g[:len(p)], u[:len(p)]
	n := whole(len(p))
	if n > 0 && nesterov {
		nesterovAVX(&p[0], &g[0], &u[0], n, &c[0][0])
	} else if n > 0 {
		momentumAVX(&p[0], &g[0], &u[0], n, &c[0][0])
	}
	return n
}

// Adagrad is optim's rule adagrad.
func Adagrad(p, g, a []float32, c *Coefs) int {
	g, a = g[:len(p)], a[:len(p)]
	n := whole(len(p))
	if n > 0 {
		adagradAVX(&p[0], &g[0], &a[0], n, &c[0][0])
	}
	return n
}

// Adam is optim's rules adam and adamw, without AMSGrad.
func Adam(p, g, m1, m2 []float32, c *Coefs) int {
	g, m1, m2 = g[:len(p)], m1[:len(p)], m2[:len(p)]
	n := whole(len(p))
	if n > 0 {
		adamAVX(&p[0], &g[0], &m1[0], &m2[0], n, &c[0][0])
	}
	return n
}
