package ps

// index finds the row slot of an id: open addressing with linear probing over
// the low bits of mix (StoreOf has used up the high ones). At most two thirds
// of the entries are taken; rows are never removed. 12 bytes an entry.
type index struct {
	ids   []int64
	slots []int32 // slot+1; 0 is free
	used  int
}

// get returns the slot of an id, or -1.
func (x *index) get(id int64) int {
	if len(x.slots) == 0 {
		return -1
	}
	mask := len(x.slots) - 1
	for i := int(mix(id)) & mask; ; i = (i + 1) & mask {
		if x.slots[i] == 0 {
			return -1
		}
		if x.ids[i] == id {
			return int(x.slots[i]) - 1
		}
	}
}

// put adds an id that is not there.
func (x *index) put(id int64, slot int) {
	if 3*(x.used+1) > 2*len(x.slots) {
		x.grow()
	}
	x.place(id, int32(slot+1))
	x.used++
}

func (x *index) place(id int64, slot int32) {
	mask := len(x.slots) - 1
	i := int(mix(id)) & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.ids[i], x.slots[i] = id, slot
}

func (x *index) grow() {
	ids, slots := x.ids, x.slots
	n := max(16, 2*len(slots))
	x.ids, x.slots = make([]int64, n), make([]int32, n)
	for i, slot := range slots {
		if slot != 0 {
			x.place(ids[i], slot)
		}
	}
}
