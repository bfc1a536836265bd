package optim

import (
	"math"

	"github.com/gangline/gangline/optim/internal/vector"
)

// apply updates elements lo to hi of p and the slots with the gradients g.
func (k *kernel[T]) apply(p, g []T, slots [][]T, lo, hi int) {
	if k.rule.Custom != nil {
		k.custom(p[lo:hi], g, slots, lo, hi)
		return
	}
	var s [slotsOfRules][]T
	for i := range slots {
		s[i] = slots[i][lo:hi]
	}
	k.update(p[lo:hi], g, &s)
}

// slotsOfRules is how many slots our rules have at most.
const slotsOfRules = 3

// update is apply for rules of ours. A slot that the rule does not have is nil.
func (k *kernel[T]) update(p, g []T, s *[slotsOfRules][]T) {
	switch k.kind {
	case SGD:
		k.sgd(p, g)
	case Momentum:
		k.momentum(p, g, s[0])
	case Adagrad:
		k.adagrad(p, g, s[0])
	case RMSProp:
		if k.centered {
			k.rmsprop(p, g, s[0], s[1], s[2])
		} else {
			k.rmsprop(p, g, s[0], nil, s[1])
		}
	case Adam, AdamW:
		k.adam(p, g, s[0], s[1], s[2])
	case FTRL:
		k.ftrl(p, g, s[0], s[1])
	case LAMB:
		k.lamb(p, s[0], s[1])
	}
}

// The conversions T(x*y) below are not redundant: they forbid the compiler to
// fuse the product into a following sum, which it does on some machines only.

// singles returns a slice of float32 as that, and nothing for float64, which has
// no vector code.
func singles[T Float](s []T) []float32 {
	f, _ := any(s).([]float32)
	return f
}

// spread returns the scalars for vector code.
func (k *kernel[T]) spread() vector.Coefs {
	clip := float32(k.mean.clip)
	if clip == 0 {
		clip = float32(math.Inf(1))
	}
	return vector.Scalars{
		Total: float32(k.mean.total), Clip: clip, MinusClip: -clip, L2: float32(k.mean.l2),
		Rate: float32(k.rate), Decay: float32(k.decay), Mu: float32(k.mu), Damp: float32(k.damp), Eps: float32(k.eps),
		Blend1: float32(k.blend1), Beta2: float32(k.beta2), Blend2: float32(k.blend2), Root2: float32(k.root2),
		Unbias: float32(k.unbias), L1: float32(k.l1), Ridge: float32(k.l2), Beta: float32(k.beta),
	}.Spread()
}

func root[T Float](x T) T { return T(math.Sqrt(float64(x))) }

func (k *kernel[T]) sgd(p, g []T) {
	g = g[:len(p)]
	if vector.SGD(singles(p), singles(g), &k.vec) {
		return
	}
	mean, lr := k.mean, k.rate
	for i, w := range p {
		p[i] = w - T(lr*mean.of(g[i], w))
	}
}

func (k *kernel[T]) momentum(p, g, u []T) {
	g, u = g[:len(p)], u[:len(p)]
	if vector.Momentum(singles(p), singles(g), singles(u), &k.vec, k.nesterov) {
		return
	}
	mean, lr, mu, damp, decay := k.mean, k.rate, k.mu, k.damp, k.decay
	for i, w := range p {
		m := mean.of(g[i], w)
		v := T(mu*u[i]) + T(damp*m)
		u[i] = v
		if k.nesterov {
			v = m + T(mu*v)
		}
		w -= T(decay * w)
		p[i] = w - T(lr*v)
	}
}

func (k *kernel[T]) adagrad(p, g, a []T) {
	g, a = g[:len(p)], a[:len(p)]
	if vector.Adagrad(singles(p), singles(g), singles(a), &k.vec) {
		return
	}
	mean, lr, eps := k.mean, k.rate, k.eps
	for i, w := range p {
		m := mean.of(g[i], w)
		s := a[i] + T(m*m)
		a[i] = s
		p[i] = w - T(lr*(m/(root(s)+eps)))
	}
}

// rmsprop has the mean c if it is centered, and the velocity u with momentum.
func (k *kernel[T]) rmsprop(p, g, s, c, u []T) {
	g, s = g[:len(p)], s[:len(p)]
	if vector.RMSProp(singles(p), singles(g), singles(s), singles(c), singles(u), &k.vec) {
		return
	}
	mean, lr, mu, eps := k.mean, k.rate, k.mu, k.eps
	rho, blend := k.beta2, k.blend1
	for i, w := range p {
		m := mean.of(g[i], w)
		v := T(rho*s[i]) + T(blend*T(m*m))
		s[i] = v
		if c != nil {
			a := c[i] + T(blend*(m-c[i]))
			c[i] = a
			v = max(v-T(a*a), 0)
		}
		r := m / (root(v) + eps)
		if mu > 0 {
			r += T(mu * u[i])
			u[i] = r
		}
		p[i] = w - T(lr*r)
	}
}

// adam has the largest square, top, with AMSGrad.
func (k *kernel[T]) adam(p, g, m1, m2, top []T) {
	g, m1, m2 = g[:len(p)], m1[:len(p)], m2[:len(p)]
	if vector.Adam(singles(p), singles(g), singles(m1), singles(m2), singles(top), &k.vec) {
		return
	}
	mean, lr, eps, decay := k.mean, k.rate, k.eps, k.decay
	blend1, beta2, blend2, root2 := k.blend1, k.beta2, k.blend2, k.root2
	for i, w := range p {
		m := mean.of(g[i], w)
		a := m1[i] + T(blend1*(m-m1[i]))
		v := T(beta2*m2[i]) + T(blend2*T(m*m))
		m1[i], m2[i] = a, v
		if top != nil {
			v = max(v, top[i])
			top[i] = v
		}
		w -= T(decay * w)
		p[i] = w - T(lr*(a/(root(v)/root2+eps)))
	}
}

// ftrl has n'^q - n^q for the square root as m²/(n'^q + n^q), which does not
// lose digits where n is large.
func (k *kernel[T]) ftrl(p, g, z, n []T) {
	g, z, n = g[:len(p)], z[:len(p)], n[:len(p)]
	if k.power == 0.5 && vector.FTRL(singles(p), singles(g), singles(z), singles(n), &k.vec) {
		return
	}
	mean, lr, l1, l2, beta := k.mean, k.rate, k.l1, k.l2, k.beta
	for i, w := range p {
		m := mean.of(g[i], w)
		s := n[i] + T(m*m)
		now, gain := k.risen(n[i], s, m)
		n[i] = s
		sum := z[i] + m - T(gain/lr*w)
		z[i] = sum
		over := max(sum-l1, 0) + min(sum+l1, 0)
		p[i] = (0 - over) / ((beta+now)/lr + l2) // never -0
	}
}

// risen returns s^q, and how much it is above n^q, for s = n + m².
func (k *kernel[T]) risen(n, s, m T) (now, gain T) {
	if k.power == 0.5 {
		now = root(s)
		if now > 0 {
			gain = T(m*m) / (now + root(n))
		}
		return now, gain
	}
	a, b := math.Pow(float64(s), k.power), math.Pow(float64(n), k.power)
	return T(a), T(a - b)
}

// norms are the squared norms of a parameter and of its direction.
type norms struct{ param, step float64 }

// trust makes the rate that times the trust ratio.
func (k *kernel[T]) trust(n *norms) {
	lr := k.lr
	if n.param > 0 && n.step > 0 {
		lr = lr * math.Sqrt(n.param) / math.Sqrt(n.step)
	}
	k.rate = T(lr)
	k.vec = k.spread()
}

// lambMoments is the first pass of lamb: it moves the moments and adds to the
// norms, in the order of SquareNorm.
func (k *kernel[T]) lambMoments(p, g, m1, m2 []T, n *norms) {
	g, m1, m2 = g[:len(p)], m1[:len(p)], m2[:len(p)]
	n.param += SquareNorm(p)
	if len(p) >= lanes {
		if squares, ok := vector.LAMBMoments(singles(p), singles(g), singles(m1), singles(m2), &k.vec); ok {
			n.step += squares
			return
		}
	}
	mean, blend1, beta2, blend2 := k.mean, k.blend1, k.beta2, k.blend2
	var s [lanes]float64
	for i, w := range p {
		m := mean.of(g[i], w)
		m1[i] += T(blend1 * (m - m1[i]))
		m2[i] = T(beta2*m2[i]) + T(blend2*T(m*m))
		s[i%lanes] += square(k.direction(w, m1[i], m2[i]))
	}
	n.step += fold(&s)
}

// direction is r of lamb.
func (k *kernel[T]) direction(w, a, v T) T {
	return T(k.unbias*a)/(root(v)/k.root2+k.eps) + T(k.decay*w)
}

// lamb is the second pass: the rate is that times the trust ratio.
func (k *kernel[T]) lamb(p, m1, m2 []T) {
	m1, m2 = m1[:len(p)], m2[:len(p)]
	if len(p) >= lanes && vector.LAMB(singles(p), singles(m1), singles(m2), &k.vec) {
		return
	}
	lr := k.rate
	for i, w := range p {
		p[i] = w - T(lr*k.direction(w, m1[i], m2[i]))
	}
}
