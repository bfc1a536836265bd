package rows

// onesMax is how many tensors' memory is remembered: more than an executor feeds into
// in turns.
const onesMax = 32

// KnownOnes remembers how many of the first elements of a tensor's memory are 1, for
// Column.Ones. The weights of most sparse rows are: to leave them as they are saves
// writing them, and the cores that compute with them reading what they have. The zero value
// knows of none.
type KnownOnes struct {
	known [onesMax]struct {
		memory *float32 // which keeps it from becoming another's
		n      int
	}
	next int // to be forgotten
}

// Of returns where it stands how many of the first elements are known to be 1: nil for
// no memory, 0 for one that was not seen before.
func (o *KnownOnes) Of(memory []float32) *int {
	if len(memory) == 0 {
		return nil
	}
	for i := range o.known {
		if o.known[i].memory == &memory[0] {
			return &o.known[i].n
		}
	}
	i := o.next
	o.next = (o.next + 1) % onesMax
	o.known[i].memory, o.known[i].n = &memory[0], 0
	return &o.known[i].n
}
