package main

// arithmetic writes what needs no polynomial, in both types.
func arithmetic(g *generator) {
	for _, g.double = range []bool{false, true} {
		operators(g)
		elements(g)
		gradients(g)
		rowParts(g)
	}
}

// operators are those whose operands may be repeated.
func operators(g *generator) {
	binary := func(name, doc string, f func(a, b vec) vec) {
		g.repeating(name, doc, []string{"a", "b"}, []int{0, 1, 2}, func(v values) vec { return f(v.in[0], v.in[1]) })
	}
	truth := func(predicate uint64) func(a, b vec) vec {
		return func(a, b vec) vec { return g.and(g.compare(predicate, a, b), g.constant(1)) }
	}
	binary("addAVX", "a + b", func(a, b vec) vec { return g.add(a, b) })
	binary("subAVX", "a - b", func(a, b vec) vec { return g.sub(a, b) })
	binary("mulAVX", "a·b", func(a, b vec) vec { return g.mul(a, b) })
	binary("divAVX", "a/b", func(a, b vec) vec { return g.div(a, b) })
	binary("maximumAVX", "max(a, b)", g.maximum)
	binary("minimumAVX", "min(a, b)", g.minimum)
	binary("lessAVX", "1 where a < b, else 0", truth(less))
	binary("lessEqualAVX", "1 where a <= b, else 0", truth(lessEqual))
	binary("equalAVX", "1 where a = b, else 0", truth(equal))
	g.repeating("whereAVX", "x where c is not 0, else y", []string{"c", "x", "y"}, []int{0, 2, 4, 6}, func(v values) vec {
		return g.choose(g.compare(different, v.in[0], g.constant(0)), v.in[1], v.in[2])
	})
}

func elements(g *generator) {
	x, alpha := []string{"x"}, []string{"alpha"}
	g.loop("addScalarAVX", "x + alpha", x, alpha, func(v values) vec { return g.add(v.in[0], v.scalars[0]) })
	g.loop("scaleAVX", "alpha·x", x, alpha, func(v values) vec { return g.mul(v.in[0], v.scalars[0]) })
	g.loop("addScaledAVX", "a + alpha·x", []string{"a", "x"}, alpha, func(v values) vec {
		return g.add(v.in[0], g.mul(v.in[1], v.scalars[0]))
	})
	g.loop("squareAVX", "x²", x, nil, func(v values) vec { return g.mul(v.in[0], v.in[0]) })
	g.loop("sqrtAVX", "√x", x, nil, func(v values) vec { return g.sqrt(v.in[0]) })
	g.loop("rsqrtAVX", "1/√x", x, nil, func(v values) vec { return g.div(g.load(g.constant(1)), g.sqrt(v.in[0])) })
	g.loop("reluAVX", "x, but 0 where x <= 0", x, nil, func(v values) vec { return g.relu(v.in[0]) })
	g.loop("leakyReluAVX", "x where x > 0, else alpha·x", x, alpha, func(v values) vec {
		x := v.in[0]
		return g.choose(g.compare(above, x, g.constant(0)), x, g.mul(x, v.scalars[0]))
	})
}

func gradients(g *generator) {
	ydy, xdy, alpha := []string{"y", "dy"}, []string{"x", "dy"}, []string{"alpha"}
	g.loop("reluGradAVX", "dy where y > 0, else 0", ydy, nil, func(v values) vec {
		return g.and(v.in[1], g.compare(above, v.in[0], g.constant(0)))
	})
	g.loop("leakyReluGradAVX", "dy where x > 0, else alpha·dy", xdy, alpha, func(v values) vec {
		return g.choose(g.compare(above, v.in[0], g.constant(0)), v.in[1], g.mul(v.in[1], v.scalars[0]))
	})
	g.loop("sigmoidGradAVX", "dy·y·(1-y)", ydy, nil, func(v values) vec {
		return g.mul(g.mul(v.in[1], v.in[0]), g.sub(g.load(g.constant(1)), v.in[0]))
	})
	g.loop("tanhGradAVX", "dy·(1-y²)", ydy, nil, func(v values) vec {
		return g.mul(v.in[1], g.sub(g.load(g.constant(1)), g.mul(v.in[0], v.in[0])))
	})
	g.loop("squareGradAVX", "2·x·dy", xdy, nil, func(v values) vec {
		return g.mul(g.add(v.in[0], v.in[0]), v.in[1])
	})
	g.loop("softmaxGradAVX", "y·(dy - alpha)", ydy, alpha, func(v values) vec {
		return g.mul(v.in[0], g.sub(v.in[1], v.scalars[0]))
	})
	g.loop("squaredGradAVX", "(p - y)·alpha", []string{"p", "y"}, alpha, func(v values) vec {
		return g.mul(g.sub(v.in[0], v.in[1]), v.scalars[0])
	})
}

// rowParts are what rows are normalised by.
func rowParts(g *generator) {
	g.loop("normalizeAVX", "(x - mean)·inv·gain + bias", []string{"x", "gain", "bias"}, []string{"mean", "inv"}, func(v values) vec {
		return g.add(g.mul(g.mul(g.sub(v.in[0], v.scalars[0]), v.scalars[1]), v.in[1]), v.in[2])
	})
	g.loop("scaleMulAVX", "alpha·x·gain", []string{"x", "gain"}, []string{"alpha"}, func(v values) vec {
		return g.mul(g.mul(v.in[0], v.scalars[0]), v.in[1])
	})
	g.loop("normGradAVX", "(t - shift - (x - mean)·slope)·inv", []string{"t", "x"}, []string{"mean", "inv", "shift", "slope"}, func(v values) vec {
		d := g.mul(g.sub(v.in[1], v.scalars[0]), v.scalars[3])
		return g.mul(g.sub(g.sub(v.in[0], v.scalars[2]), d), v.scalars[1])
	})
}
