// Package lbfgs is the coordinator of Sandblaster L-BFGS (Dean et al., "Large Scale
// Distributed Deep Networks", NIPS 2012, section 4.2) as a pure machine: it finds
// a minimum of
//
//	f(x) = sum of losses / sum of weights + L2/2 x.x
//
// without ever seeing x. Vectors lie on servers, in package ps/vector, each of
// which has a range of every one; losses and gradients are computed by workers, in
// portions that package ps/portion gives out. The coordinator sends commands and
// receives numbers: about 6 m dot products an iteration with a history of m, however
// many parameters there are.
//
// # Direction
//
// The history is the last m pairs s = x' - x and y = g' - g. The direction d = -H g
// of the two-loop recursion (Nocedal and Wright, "Numerical Optimization", 2nd ed.,
// algorithm 7.4) is a linear combination of the 2m+1 vectors s, y and g whose
// coefficients depend on nothing but their dot products (Chen, Wang and Zhou,
// "Large-scale L-BFGS using MapReduce", NIPS 2014, algorithm 3). So after each
// iteration the products with what is new are asked for, the recursion runs here on
// coefficients, and one command makes the direction.
//
// A pair counts only if s.y > 2^-52 y.y (Byrd, Lu, Nocedal and Zhu, "A limited
// memory algorithm for bound constrained optimization", 1995, equation 3.9): so H
// is positive definite. If rounding nevertheless makes a direction that does not go
// down, the history is dropped and the search goes down the gradient.
//
// # Line search
//
// A step t must satisfy the strong Wolfe conditions
//
//	f(x+td) <= f(x) + c1 t g.d    and    |g(x+td).d| <= c2 |g.d|
//
// and is found by algorithms 3.5 and 3.6 of Nocedal and Wright with cubic
// interpolation. Near a minimum the first of them drowns in rounding errors; where f
// differs by less than 1e-12 of itself the approximate conditions of Hager and Zhang
// ("A new conjugate gradient method with guaranteed descent and an efficient line
// search", SIAM J. Optim. 16(1), 2005, equation 4.1) take its place, which look at
// slopes. Where the loss or its slope is not finite, a step is too long.
//
// # A shell
//
// Step takes what happened and returns what to do. A shell does the actions in
// their order, a command on every server; it adds up the answers to dots over the
// servers (vector.Merge) and gives them back as EventDotted, lets all portions of
// an evaluation be computed at x, the gradient sums be added to the vector that the
// command before gathers, and gives back the sums of losses and weights as
// EventEvaluated. After each Step that is not the last there is exactly one thing
// that it waits for.
package lbfgs
