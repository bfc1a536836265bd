package main

// compressedFaults are in sums of gradients that are compressed.
func compressedFaults() []fault {
	sums, resume := catcher{"exec", "TestCompressedSums"}, catcher{"train", "TestCompressedResume"}
	return []fault{
		{
			name: "what a skipped step lost is not taken back",
			harm: "The gradient of a step that was skipped is applied with later ones, in part.",
			file: "exec/commit.go", by: sums,
			old: "\t\to.e.revert(o.group)\n", new: "",
		},
		{
			name: "tensors of a bucket are given back one off",
			harm: "Parameters are updated with the gradients of others.",
			file: "collective/compressed/bucket.go", by: catcher{"collective/compressed", "TestBucket"},
			old: "copy(t.F32(), v[b.lo[i]:])", new: "copy(t.F32(), v[b.lo[0*i]:])",
		},
		{
			name: "a run that goes on forgets what compression lost",
			harm: "After every restart gradients are missing, and the run is another one.",
			file: "train/worker.go", by: resume,
			old: "residual.Restore(buckets, w.from)", new: "residual.Restore(buckets[:0], w.from)",
		},
		{
			name: "only the first worker saves what its gradients lost",
			harm: "A run that goes on lacks gradients of the others.",
			file: "train/residual/residual.go", by: resume,
			old: "s.First[lo:hi])", new: "s.First[lo:hi][:(hi-lo)*max(0, 1-b.Index)])",
		},
		{
			name: "what sums lost is restored at the start of a parameter",
			harm: "On another number of workers, corrections go to the wrong weights.",
			file: "train/residual/residual.go", by: resume,
			old: "lo += p.Lo", new: "lo += 0",
		},
		{
			name: "small buckets are compressed and large ones are not",
			harm: "A job that asks for compression moves as many bytes as without.",
			file: "strategy/strategy.go", by: catcher{"strategy", "TestCompressedBuckets"},
			old: "bytes < c.CompressFrom", new: "bytes > c.CompressFrom",
		},
	}
}
