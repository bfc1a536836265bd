package report

import "math"

// Compression says what compressing gradients saved, and what it lost.
type Compression struct {
	CompressedSum
	// Buckets are the sums that were compressed.
	Buckets []Bucket `json:"buckets"`
}

// Bucket is one compressed sum, of the gradients of one parameter or of several, "w1..b1".
type Bucket struct {
	Bucket string `json:"bucket"`
	Codec  string `json:"codec"`
	// Sums are the steps that it was summed in, SumsSkipped those of them that were taken back.
	Sums        int64 `json:"sums"`
	SumsSkipped int64 `json:"sums_skipped"`
	CompressedSum
}

// CompressedSum is what compression saved and lost. Of one rank, bytes are those that it sent
// and received; of all ranks, those that were sent.
type CompressedSum struct {
	// Moved is bytes; Plain is what it would have been in a ring all-reduce without.
	Moved int64 `json:"bytes_moved"`
	Plain int64 `json:"bytes_plain"`
	// Saved is the part of Plain that was not moved.
	Saved float64 `json:"saved"`
	// Gradient is the norm of the last gradients of all ranks, Residual and SumResidual those of
	// what was lost of gradients and of sums and not made up for by the end; without feedback,
	// of what one of the last steps lost.
	Gradient    float64 `json:"gradient_norm"`
	Residual    float64 `json:"residual_norm"`
	SumResidual float64 `json:"sum_residual_norm"`
	// Lost is Residual over Gradient: about how many steps what is lost waits, or, without
	// feedback, which part of a gradient a step loses.
	Lost float64 `json:"lost"`
}

// add adds what another bucket or rank has: bytes, and norms as those of one long vector.
func (c *CompressedSum) add(o *CompressedSum) {
	c.Moved += o.Moved
	c.Plain += o.Plain
	c.Gradient = math.Hypot(c.Gradient, o.Gradient)
	c.Residual = math.Hypot(c.Residual, o.Residual)
	c.SumResidual = math.Hypot(c.SumResidual, o.SumResidual)
	c.Relate()
}

// Relate works out what is relative.
func (c *CompressedSum) Relate() {
	c.Saved, c.Lost = 0, 0
	if c.Plain > 0 {
		c.Saved = 1 - float64(c.Moved)/float64(c.Plain)
	}
	if c.Gradient > 0 {
		c.Lost = c.Residual / c.Gradient
	}
}

// Fewer is how many times fewer bytes were moved; 1 if none were.
func (c *CompressedSum) Fewer() float64 {
	if c.Moved == 0 {
		return 1
	}
	return float64(c.Plain) / float64(c.Moved)
}

// compression puts the buckets of all ranks together, nil if there are none.
func compression(ranks []Rank) *Compression {
	var all Compression
	at := map[string]int{}
	for _, r := range ranks {
		for _, b := range r.Compression {
			i, ok := at[b.Bucket]
			if !ok {
				i, at[b.Bucket] = len(all.Buckets), len(all.Buckets)
				all.Buckets = append(all.Buckets, Bucket{Bucket: b.Bucket, Codec: b.Codec, Sums: b.Sums, SumsSkipped: b.SumsSkipped})
			}
			all.Buckets[i].add(&b.CompressedSum)
		}
	}
	if len(all.Buckets) == 0 {
		return nil
	}
	for i := range all.Buckets {
		b := &all.Buckets[i]
		b.Moved, b.Plain = b.Moved/2, b.Plain/2 // what one rank sends another receives
		all.add(&b.CompressedSum)
	}
	return &all
}
