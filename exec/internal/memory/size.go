package memory

import "github.com/gangline/gangline/plan"

// Size is the bytes of a rank's values by what they are; see exec.Memory.
type Size struct {
	Parameters, Slots, Gradients, Temporary int64
}

// Size counts the values made so far. Of the gradients those that updates read are
// counted as such, the others as Temporary.
func (v *Values) Size(read map[int]bool) Size {
	var s Size
	arenas := map[int]bool{}
	for r, copies := range v.copies {
		val := &v.plan.Values[r.Value]
		bytes := s.of(val, read[r.Value])
		if bytes == nil || val.Arena != 0 && arenas[val.Arena] {
			continue
		}
		n := len(copies[0].Bytes())
		if val.Arena != 0 { // all of it is of one kind
			arenas[val.Arena], n = true, len(v.arenas[val.Arena][0])
		}
		if copies[0] != copies[len(copies)-1] {
			n *= len(copies)
		}
		*bytes += int64(n)
	}
	return s
}

// of is where a value counts, or nil; read says that an update reads it.
func (s *Size) of(val *plan.Value, read bool) *int64 {
	switch val.Class {
	case plan.Param:
		return &s.Parameters
	case plan.Slot:
		return &s.Slots
	case plan.Grad:
		if read {
			return &s.Gradients
		}
		return &s.Temporary
	case plan.Act, plan.Key, plan.Scalar:
	}
	if val.State != plan.NoState && val.Once {
		return &s.Temporary
	}
	return nil
}
