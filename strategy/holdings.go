package strategy

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/plan"
)

// holdOnWorkers gives every worker a copy of all states; that of rank 0 counts.
func (b *builder) holdOnWorkers() {
	for _, s := range b.params {
		for rank := range b.c.Workers {
			b.hold(plan.Holding{State: s, Hi: b.plan.Values[s].Shape.Elems(), Rank: rank, Store: -1, Owner: rank == 0})
		}
	}
}

// holdOnStores lays all dense parameters end to end and cuts that into one
// range of elements a store, equal but for one element. Rows of tables are
// spread by the hash of their key. Slots lie beside their parameter.
func (b *builder) holdOnStores() {
	total, at := 0, 0
	for _, s := range b.params {
		if !b.table[s] {
			total += b.plan.Values[s].Shape.Elems()
		}
	}
	for i := range b.c.Servers {
		b.plan.Stores = append(b.plan.Stores, plan.StoreInfo{Name: fmt.Sprintf("store%d", i)})
	}
	for _, s := range b.params {
		n := b.plan.Values[s].Shape.Elems()
		for i := range b.c.Servers {
			// The store's range of the whole, as a range of this parameter.
			lo, hi := max(i*total/b.c.Servers-at, 0), min((i+1)*total/b.c.Servers-at, n)
			if b.table[s] {
				b.hold(plan.Holding{State: s, Rank: -1, Store: i, Owner: true})
			} else if lo < hi {
				b.hold(plan.Holding{State: s, Lo: lo, Hi: hi, Rank: -1, Store: i, Owner: true})
			}
		}
		if !b.table[s] {
			at += n
		}
	}
}

// hold notes who holds a parameter, and so its slots.
func (b *builder) hold(h plan.Holding) {
	param := h.State
	for v := range b.plan.Values {
		if val := &b.plan.Values[v]; v == param || val.Class == plan.Slot && val.State == param {
			h.State = v
			b.plan.Holdings = append(b.plan.Holdings, h)
		}
	}
}

// holds reports whether a store holds a part of a parameter.
func (b *builder) holds(store, param int) bool {
	return slices.ContainsFunc(b.plan.Holdings, func(h plan.Holding) bool { return h.Store == store && h.State == param })
}
