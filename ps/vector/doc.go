// Package vector holds named dense vectors on a parameter server: the share of
// one server of vectors that are as long as the model, and what a coordinator
// that never sees them lets happen to them.
//
// Sandblaster L-BFGS (Dean et al., "Large Scale Distributed Deep Networks", NIPS
// 2012, section 4.2) sends "a small set of operations (e.g., dot product, scaling,
// coefficient-wise addition, multiplication) that can be performed by each
// parameter server shard independently, with the results being stored locally".
// Command is such an operation, Set is a shard's vectors, Set.Do does it. Only a
// dot product answers with something, two numbers a pair of vectors; the answers
// of all shards are added up by Merge. So what a coordinator sends and receives
// depends on how many vectors there are and how many shards, not on how long the
// vectors are.
//
// # Sums
//
// A dot product is computed as in twice the precision of float64: every product
// and every addition keeps its rounding error (TwoProduct and TwoSum), errors are
// added up apart, and both numbers are the answer (Dot2 of Ogita, Rump and Oishi,
// "Accurate Sum and Dot Product", SIAM J. Sci. Comput. 26(6), 2005). With u = 2^-53
// the error of a.b over n elements is at most u|a.b| + 2(n u)^2 |a|.|b|: where the
// vectors are cut does not matter to the result but for its last bit, unless the
// products cancel by more than 1e16. Sums of vectors are plain, in the type of
// float64, rounded to the type of the vector once a command.
//
// # Gradients
//
// A gradient is collected from portions of the data (package ps/portion), of which
// some are computed twice. OpGather sets a vector to 0 and says of how many
// portions it will be the sum; Set.Add takes each portion once, whoever brings it
// first, and until all are there no command may read or change the vector.
//
// Everything here is pure: no goroutine, no clock, no socket.
package vector
