package rows

import "testing"

// Memory that was not seen for long is forgotten, and the newest is known.
func TestOnesForget(t *testing.T) {
	var o KnownOnes
	var all [][]float32
	for i := range onesMax + 1 {
		all = append(all, make([]float32, 4))
		*o.Of(all[i]) = i + 1
	}
	if n := *o.Of(all[onesMax]); n != onesMax+1 {
		t.Errorf("the newest: %d", n)
	}
	if n := *o.Of(all[0]); n != 0 {
		t.Errorf("the oldest: %d", n)
	}
	if o.Of(nil) != nil {
		t.Error("no memory is remembered")
	}
}
