package main

// averagingFaults are in what lets copies of the parameters meet: localsgd and sma.
func averagingFaults() []fault {
	loops := catcher{"exec/cycle", "TestAgainstPlainLoops"}
	resume := catcher{"train", "TestLocalResumeIsTheSameRun"}
	return []fault{
		{
			name: "the average of copies is too small",
			harm: "Every cycle of localsgd or sma shrinks the model, as weight decay that nobody asked for.",
			file: "strategy/averaging.go", by: loops,
			old: "return 1 / float64(b.c.Workers)", new: "return 1 / float64(b.c.Workers+1)",
		},
		{
			name: "slots that are reset become zeros",
			harm: "Adagrad loses its initial accumulator at the first averaging, and takes steps that are too large.",
			file: "strategy/localsgd.go", by: catcher{"exec/cycle", "TestResetSlots"},
			old: "[]float64{slot.Attr.Value}", new: "[]float64{0 * slot.Attr.Value}",
		},
		{
			name: "slots are not averaged with the parameters",
			harm: "The setting slots: average is accepted and changes nothing.",
			file: "strategy/localsgd.go", by: loops,
			old: "b.combine(slot.Name, b.node(slot), []float64{b.share()}, sums[slot])",
			new: "b.combine(slot.Name, b.node(slot), []float64{1}, b.node(slot))",
		},
		{
			name: "slots that workers keep stay apart where a run settles",
			harm: "A checkpoint has the slots of the first worker only: the run that goes on is another one.",
			file: "strategy/localsgd.go", by: resume,
			old: "if settling && slots == KeepSlots {", new: "if settling && slots == ResetSlots {",
		},
		{
			name: "the outer optimizer looks ahead by its whole momentum",
			harm: "Nesterov of the outer optimizer takes steps that are too large, and diverges.",
			file: "strategy/localsgd.go", by: loops,
			old: "lr * momentum}, from, sum, m)", new: "lr}, from, sum, m)",
		},
		{
			name: "the outer optimizer has no momentum",
			harm: "A run with outer momentum is a run of plain averaging.",
			file: "strategy/localsgd.go", by: loops,
			old: "[]float64{momentum, b.share(), -1}", new: "[]float64{0 * momentum, b.share(), -1}",
		},
		{
			name: "sma draws copies away by what it should leave",
			harm: "With alpha .1 copies become nearly the average in every step: there is nothing left to average.",
			file: "strategy/sma.go", by: loops,
			old: "[]float64{1 - a.Alpha, a.Alpha * b.share()}", new: "[]float64{a.Alpha, (1 - a.Alpha) * b.share()}",
		},
		{
			name: "sma settles by a correction, not on the average",
			harm: "The saved model is the first worker's copy, and a run that goes on has lost the others.",
			file: "strategy/sma.go", by: loops,
			old: "if settling {", new: "if settling && a.Alpha > 1 {",
		},
		{
			name: "a cycle begins anew where a run goes on",
			harm: "A run that is interrupted within a cycle averages at other steps than one that is not.",
			file: "exec/cycle/cycle.go", by: loops,
			old: "(at/d.every+1)*d.every", new: "at+d.every",
		},
		{
			name: "a run settles and then ends its cycle, too",
			harm: "With outer momentum, the step along an average is made twice at a checkpoint.",
			file: "exec/cycle/cycle.go", by: loops,
			old: "if at = next; at == last && d.settle != nil || d.every", new: "if at = next; d.every",
		},
	}
}

// shardFaults are in strategy zero.
func shardFaults() []fault {
	zero, resumes := catcher{"train", "TestZero"}, catcher{"train", "TestZeroResumes"}
	return []fault{
		{
			name: "a shard of the sums is taken from the start of a gradient",
			harm: "In stages 2 and 3 all workers but the first update their parameters by the wrong gradients.",
			file: "exec/shard.go", by: zero,
			old: "at := v.Offset - lo + from*v.DType.Size()", new: "at := v.Offset - lo + 0*from",
		},
		{
			name: "the norm of gradients is that of a worker's own shard",
			harm: "Workers clip by different factors, and only where there are several.",
			file: "exec/internal/ballot/ballot.go", by: zero,
			old: "v.Squares = squares + said", new: "v.Squares = squares + number(b.bytes[len(b.bytes)-faultSize-numberSize:])",
		},
		{
			name: "the squares of shards are counted by every worker as those of all",
			harm: "Gradients of zero are clipped by the norm of a part.",
			file: "exec/commit.go", by: zero,
			old: "if o.sharded[i] {", new: "if o.sharded[i] && i < 0 {",
		},
		{
			name: "a worker of zero goes on with initial shards",
			harm: "A restart throws the model away, or all but the first worker's part.",
			file: "train/shards.go", by: resumes,
			old: "return s, sh.Restore(s.state, m.setup.Step, m.from)", new: "return s, nil",
		},
		{
			name: "shards are read at the place that they had in their file",
			harm: "A checkpoint that goes on with another number of workers comes back mixed up.",
			file: "params/shards.go", by: resumes,
			old: "p.Data.Bytes()[(lo-p.Lo)*size:(hi-p.Lo)*size]", new: "p.Data.Bytes()[0:(hi-lo)*size]",
		},
		{
			name: "shards of a checkpoint are laid over the first elements",
			harm: "A worker that takes over parts of several has the last of them only.",
			file: "params/shards.go", by: resumes,
			old: "copy(t.Bytes()[(lo-sh[p.Name].Lo)*size:]", new: "copy(t.Bytes()[0*size:]",
		},
		{
			name: "a shard begins with the numbers of the parameter's first elements",
			harm: "In stage 3 a model begins with the same numbers in every shard: symmetry that training does not break.",
			file: "params/shards.go", by: zero,
			old: "FillInit(t, n, lo)", new: "FillInit(t, n, 0*lo)",
		},
		{
			name: "a bucket that is gathered shares memory with one that is still read",
			harm: "In stage 3 layers are computed with parameters of others.",
			file: "strategy/place.go", by: zero,
			old: "if a[0] <= b[1] && b[0] <= a[1] {", new: "if a[0] < b[1] && b[0] < a[1] && a[0] == b[0] {",
		},
	}
}

// cutFaults are in the cutting of steps for strategy zero.
func cutFaults() []fault {
	zero, pieces := catcher{"train", "TestZero"}, catcher{"graph/cut", "TestPieces"}
	return []fault{
		{
			name: "a piece of a step hands on only what its own step wants",
			harm: "Zero cannot run: a segment reads what none makes.",
			file: "graph/cut/cut.go", by: pieces,
			old: "for _, n := range p.In {\n\t\t\twanted[n] = true\n\t\t}", new: "",
		},
		{
			name: "what a piece repeats is not made of its own inputs",
			harm: "Zero cannot run models that change the shape of a value.",
			file: "graph/cut/cut.go", by: pieces,
			old: "p.Nodes = append(p.Nodes, x)\n", new: "p.In = append(p.In, x)\n",
		},
		{
			name: "a piece of a step counts no parameters",
			harm: "In stage 3 all parameters are there at once: nothing is saved.",
			file: "graph/cut/cut.go", by: pieces,
			old: "bytes += more", new: "bytes += 0 * more",
		},
		{
			name: "an update of a shard is one of the whole parameter",
			harm: "Zero cannot run: a shard has fewer elements than its update wants.",
			file: "graph/cut/update.go", by: zero,
			old: "c.Shape = tensor.Shape{elems}", new: "c.Shape = tensor.Shape{elems + 1}",
		},
	}
}

// mixedFaults are in precision bf16 and f16, and the loss scale.
func mixedFaults() []fault {
	scale := catcher{"optim", "TestLossScale"}
	return []fault{
		{
			name: "gradients are not divided by the loss scale",
			harm: "f16 trains with steps of 65536 times the length, where the rule does not hide it.",
			file: "exec/commit.go", by: catcher{"train", "TestMixedTrains"},
			old: "o.rule.Divisor(r.Weight*scale, v.Squares)", new: "o.rule.Divisor(r.Weight, v.Squares)",
		},
		{
			name: "a step that is skipped for its loss counts as good",
			harm: "The loss scale is doubled after steps that showed nothing.",
			file: "optim/lossscale.go", by: scale,
			old: "return scale, good\n", new: "return scale, good + 1\n",
		},
		{
			name: "16-bit terms are rounded after every one",
			harm: "Sums of many micro-batches lose their last terms in bf16.",
			file: "exec/internal/sum/plain.go", by: catcher{"exec/internal/sum", "TestPlain"},
			old: "compute.HalfOf(out.DType()).Narrow(out.Halves(), sum.F32())",
			new: "half := compute.HalfOf(out.DType())\n\thalf.Narrow(out.Halves(), sum.F32())\n\tif len(in) > 2 {\n\t\treturn p.Run(out, append(in[:1:1], in[2:]...))\n\t}",
		},
		{
			name: "losses and sums are computed in 16 bits like all else",
			harm: "In bf16 a sum of many terms ends where its terms are below its last digit, and training gets nowhere.",
			file: "graph/mixed.go", by: catcher{"graph", "TestMixedTypes"},
			old: "low := !keepsFull(op) && ", new: "low := ",
		},
	}
}

// reproducibleFaults are in sums whose order does not depend on the number of workers.
func reproducibleFaults() []fault {
	sums, rows := catcher{"collective/tree", "TestAllReduce"}, catcher{"collective/tree", "TestRows"}
	return []fault{
		{
			name: "ranks join branches from the right",
			harm: "A reproducible run has other bits where several ranks join more than two branches.",
			file: "collective/tree/tree.go", by: sums,
			old: "all = append(all, join{pieces[last-1], pieces[last]})", new: "all = append([]join{{pieces[last-1], pieces[last]}}, all...)",
		},
		{
			name: "of several branches of a rank, chunks are of the first only",
			harm: "With 3 workers and 12 slices, a quarter of the batch is counted twice and another not at all.",
			file: "collective/tree/tree.go", by: sums,
			old: "at += copy(dst[at:], b.Bytes()[lo:hi])", new: "at += copy(dst[at:], branches[0].Bytes()[lo:hi])\n\t\t\t_ = b",
		},
		{
			name: "rows of slices are summed in the order of ranks that end first",
			harm: "Tables of a reproducible run have other bits on another number of workers.",
			file: "collective/tree/rows.go", by: rows,
			old: "a, b := r.in[2*(part.Lo+s)], r.in[2*(part.Lo+s)+1]", new: "a, b := r.in[2*(part.Hi-1-s)], r.in[2*(part.Hi-1-s)+1]",
		},
		{
			name: "the weights of slices are summed from the last rank on",
			harm: "The loss of a reproducible run has other bits on another number of workers.",
			file: "exec/internal/ballot/ballot.go", by: catcher{"exec/internal/ballot", "TestCount"},
			old: "one := all[i*size : (i+1)*size]", new: "one := all[(len(group)-1-i)*size : (len(group)-i)*size]",
		},
		{
			name: "branches that are exchanged stand one off",
			harm: "Small gradients of reproducible runs are summed in another order than large ones.",
			file: "collective/tree/tree.go", by: sums,
			old: "a.piece = append(a.piece, (j*most+k)*a.Elems*size)", new: "a.piece = append(a.piece, ((n-1-j)*most+k)*a.Elems*size)",
		},
	}
}

// resumedFaults are in what compression carries from a run to the one that goes on.
func resumedFaults() []fault {
	return []fault{
		{
			name: "what sums lost is not kept",
			harm: "With feedback, half of the error of compression is never made up for.",
			file: "collective/compressed/allreduce.go", by: catcher{"collective/compressed", "TestAllReduceAgainstTheObvious"},
			old: "\t\ta.first.Keep()\n\t\ta.second.Keep()", new: "\t\ta.first.Keep()\n\t\ta.second.Drop()",
		},
		{
			name: "what a sum lost in a step that is skipped stays",
			harm: "Part of the gradient of a skipped step is applied with later ones.",
			file: "collective/compressed/state.go", by: catcher{"collective/compressed", "TestSkippedStepsLeaveNoTrace"},
			old: "\t\ta.second.Revert()\n", new: "",
		},
	}
}
