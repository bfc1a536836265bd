package consistency

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestValidate: a model that cannot be carried out, or has a bound that its kind
// does not read, is refused with what to change.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		m       Model
		workers int
		want    string // "" is good
	}{
		{Model{Kind: BSP}, 1, ""},
		{Model{Kind: BSP, MaxVersionLag: Unbounded, OnLoss: Continue, Scale: Mean, Deadline: time.Second}, 4, ""},
		{Model{Kind: ASP, MaxVersionLag: 3, Stale: Inverse, Scale: Sum}, 2, ""},
		{Model{Kind: SSP, Slack: 3, Stale: Unscaled, OnLoss: Continue}, 2, ""},
		{Model{Kind: Quorum, K: 3, Scale: Weighted}, 4, ""},
		{Model{}, 2, "want bsp, asp, ssp or quorum"},
		{Model{Kind: BSP}, 0, "at least 1"},
		{Model{Kind: SSP, Slack: -1}, 2, "asp is the model without a bound"},
		{Model{Kind: ASP, Slack: 2}, 2, "which only ssp has"},
		{Model{Kind: ASP, MaxVersionLag: -2}, 2, "-1 for no bound"},
		{Model{Kind: Quorum, K: 1, MaxVersionLag: 2}, 2, "which only asp and ssp have"},
		{Model{Kind: Quorum}, 4, "want 1 to 4"},
		{Model{Kind: Quorum, K: 5}, 4, "want 1 to 4"},
		{Model{Kind: BSP, K: 2}, 4, "which only quorum has"},
		{Model{Kind: ASP, Scale: "max"}, 4, "weighted, mean or sum"},
		{Model{Kind: ASP, Stale: "half"}, 4, "none or inverse"},
		{Model{Kind: BSP, Stale: Inverse}, 4, "which only asp and ssp have"},
		{Model{Kind: BSP, OnLoss: "stop"}, 4, "wait or continue"},
		{Model{Kind: SSP, OnLoss: Wait}, 4, "which only bsp has"},
		{Model{Kind: SSP, Deadline: -1}, 4, "want a time"},
	} {
		err := c.m.Validate(c.workers)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.m, err)
		case c.want != "" && (!errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.m, err, c.want)
		}
	}
}

// TestCounts: every final outcome is counted once, and then the counts add up.
func TestCounts(t *testing.T) {
	var c Counts
	for o := Unknown; o <= Skipped+1; o++ {
		if strings.HasPrefix(o.String(), "outcome(") != (o > Skipped) {
			t.Errorf("outcome %d is %q", uint8(o), o)
		}
		if o.Final() {
			c.Pushed++
			c.End(o)
		}
	}
	if !c.Balanced() || c.Dropped() != 3 || c.Applied != 1 {
		t.Errorf("%+v", c)
	}
	c.Pending++
	if c.Balanced() {
		t.Errorf("%+v is no balance", c)
	}
}
