package plan

// MaxSlices bounds the slices of a plan.
const MaxSlices = 256

// Where a plan has Slices, the batch of a step is cut into that many, the same rows
// whatever the number of ranks, and a rank computes some that follow each other, each
// by itself (the micro-batch of a Ref is the number of its slice). They are summed in
// the order of one binary tree over all slices, which depends on their number alone.
// A rank sums the branches whose slices are all its own; a collective of Order Tree
// takes these branches of all ranks and sums the rest.

// Branch is slices [Lo, Hi): a branch of the tree, or several that stand side by side.
type Branch struct{ Lo, Hi int }

// Joins reports whether two branches of the tree over n slices are the left and the
// right half of one. It takes O(log n).
func Joins(n int, left, right Branch) bool {
	if left.Lo < 0 || left.Lo >= left.Hi || left.Hi != right.Lo || right.Lo >= right.Hi {
		return false
	}
	at := Branch{0, n}
	for at.Lo <= left.Lo && right.Hi <= at.Hi && at.Hi-at.Lo > 1 {
		mid := middle(n, at)
		switch {
		case at.Lo == left.Lo && at.Hi == right.Hi:
			return mid == left.Hi
		case right.Hi <= mid:
			at.Hi = mid
		case left.Lo >= mid:
			at.Lo = mid
		default:
			return false
		}
	}
	return false
}

// middle is where a branch of the tree over n slices parts. Of two middles it is the
// one that has more in common with n: where the parts of a few ranks end, too, so that
// they have fewer branches. Of 12 slices, 1, 2 or 4 ranks have one branch each, and 3
// ranks two.
func middle(n int, b Branch) int {
	mid := (b.Lo + b.Hi) / 2
	if (b.Hi-b.Lo)%2 == 1 && common(mid+1, n) > common(mid, n) {
		mid++
	}
	return mid
}

// common is the greatest common divisor.
func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Part returns the slices of member i of a group: of n slices as many as others have, or
// one more.
func Part(n, members, i int) Branch {
	cut := func(i int) int { return n/members*i + n%members*i/members }
	return Branch{cut(i), cut(i + 1)}
}

// Fold puts the sum of a branch beside those to its left, and joins the last two as
// long as they are halves of one. It returns what stands side by side then, and how
// often it has joined: who sums follows it.
func Fold(n int, stack []Branch, b Branch) (all []Branch, joined int) {
	stack = append(stack, b)
	for top := len(stack) - 1; top > 0 && Joins(n, stack[top-1], stack[top]); top-- {
		stack[top-1].Hi = stack[top].Hi
		stack = stack[:top]
		joined++
	}
	return stack, joined
}

// Branches returns the branches of the tree over n slices that some slices which
// follow each other are, from the left: as few as there are, at most 2 log2 n.
func Branches(n int, part Branch) []Branch {
	var stack []Branch
	for s := part.Lo; s < part.Hi; s++ {
		stack, _ = Fold(n, stack, Branch{s, s + 1})
	}
	return stack
}

// Pairs is how many pairs (weight, loss) the In of a Commit begins with: one, or one for
// each slice of the rank.
func (p *Plan) Pairs(t *Task) int {
	if t.Order != Tree {
		return 1
	}
	n := 0
	for n < len(t.In) && p.Values[t.In[n].Value].Class == Scalar {
		n++
	}
	return n / 2
}
