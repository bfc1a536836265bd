package main

// What can go wrong in the fast backend: memory that values share, chains, tiles,
// threads.

func nativeFaults() []fault {
	const kernels = "compute/native/internal/kernel"
	return []fault{
		{
			name: "a delivered link of a chain takes the memory of a product that is read behind it",
			harm: "x·sigmoid(x) is sigmoid(x)² as soon as somebody asks for the gate as well.",
			file: "compute/native/internal/fuse/place.go", by: catcher{"compute/native", "TestProductReadBehindAKeptLink"},
			old: "return last + slices.Index(g.Kept[last:], true)", new: "return 0*last + slices.Index(g.Kept, true)",
		},
		{
			name: "a result takes over the memory of an input with fewer rows",
			harm: "Where batches differ in spite of their shapes, the numbers are wrong and nothing says so.",
			file: "compute/step.go", by: catcher{"compute/native", "TestBatchesThatDiffer"},
			old: "if x.over >= 0 && vals[x.over].Elems() != shape.Elems() {", new: "if x.over >= 0 && vals[x.over].Elems() < 0 {",
		},
		{
			name: "a view of a view is taken for memory of its own",
			harm: "A value is written over while another shape of it is still to be read.",
			file: "compute/memory.go", by: catcher{"compute", "TestViewsAndGroups"},
			old: "m.owner[s.last().dst] = m.owner[s.last().args[0]]", new: "m.owner[s.last().dst] = s.last().args[0]",
		},
		{
			name: "half a tile takes one column too many",
			harm: "Layers whose width is one above a multiple compute with what lies behind the matrix, on machines with AVX-512.",
			file: kernels + "/gemm.go", by: catcher{kernels, "TestAssemblyTilesAgree"},
			old: "t.Half != nil && cols <= half", new: "t.Half != nil && cols <= half+1",
		},
		{
			name: "two goroutines use one scratch memory",
			harm: "Results change from run to run, on several threads only.",
			file: "compute/native/internal/team/team.go", by: catcher{"compute/native/internal/team", "TestWorkersAreDistinct"},
			old: "t.help(rank)", new: "t.help(rank - 1)",
		},
	}
}
