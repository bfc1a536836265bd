package main

// What can go wrong in the numbers: gradients, rules, rows.

func gradientFaults() []fault {
	train := catcher{"graph", "TestTrainAnyGraph"}
	ref := catcher{"compute/ref", "TestConformance"}
	return []fault{
		{
			name: "of the gradients that several readers give a node, the last counts",
			harm: "A layer that is used twice learns from one of its uses.",
			file: "graph/gradient.go", by: ref,
			old: "dy = b.g.Add(old, dy)", new: "_ = old",
		},
		{
			name: "a contribution to a gradient is added twice",
			harm: "Some layers learn at twice the rate.",
			file: "graph/gradient.go", by: ref,
			old: "\tb.give(x, dx)", new: "\tb.give(x, dx)\n\tif !isParam(x) {\n\t\tb.give(x, dx)\n\t}",
		},
		{
			name: "an operator that reads one node twice passes its gradient on once",
			harm: "x·x learns as if it were half as steep.",
			file: "graph/gradient.go", by: ref,
			old: "isParam(x) == params && b.g.err == nil {", new: "isParam(x) == params && b.g.err == nil && slices.Index(n.In, x) == i {",
		},
		{
			name: "the gradient of a bias is not summed over the batch",
			harm: "The model does not build, or its biases learn from one row.",
			file: "graph/gradfuncs.go", by: train,
			old: "return unbroadcast(g, dy, n.In[i]) }", new: "return dy }",
		},
		{
			name: "the gradient of what is subtracted has the wrong sign",
			harm: "A part of the model runs uphill.",
			file: "graph/gradfuncs.go", by: ref,
			old: "return g.Scale(dx, -1)", new: "return dx",
		},
		{
			name: "a segment does not pass on what a later one reads",
			harm: "The backward pass reads values of another step.",
			file: "graph/train.go", by: catcher{"graph", "TestTrainCutsAfterEachGradient"},
			old: "repeated(n) || !readBy(rest, n)", new: "repeated(n) || !readBy(nil, n)",
		},
		{
			name: "a bag cuts off the weights of its entries",
			harm: "Real-valued sparse features count as 1 at most.",
			file: "compute/ref/rows.go", by: ref,
			old: "out[b*dim+d] += weights[e] * rows[int(ids[e])*dim+d]", new: "out[b*dim+d] += min(weights[e], 1) * rows[int(ids[e])*dim+d]",
		},
		{
			name: "a long product drops all but its last block",
			harm: "Layers with more than a thousand inputs compute nonsense, on the fast backend only.",
			file: "compute/native/internal/kernel/gemm.go", by: catcher{"compute/native/internal/kernel", "TestMultiply"},
			old: "p.Add || l > 0, packA", new: "p.Add, packA",
		},
		{
			name: "a sum of rows keeps what the last step left",
			harm: "Gradients of embeddings grow from step to step.",
			file: "compute/native/rows.go", by: catcher{"compute/native", "TestConformance"},
			old: "\tclear(out)\n\tb.k.AddRows", new: "\tb.k.AddRows",
		},
		{
			name: "all variables start from the same numbers",
			harm: "Layers of one shape start equal; models learn less than they could.",
			file: "graph/internal/random/random.go", by: catcher{"graph", "TestFillStreams"},
			old: "for i := range len(name) {", new: "for i := range min(1, len(name)) {",
		},
	}
}

func ruleFaults() []fault {
	ten := catcher{"optim", "TestTenSteps"}
	return []fault{
		{
			name: "a rule divides by the total weight twice",
			harm: "The learning rate shrinks with the batch; training seems to stand still.",
			file: "optim/update.go", by: ten,
			old: "m := g / s.total", new: "m := g / s.total / s.total",
		},
		{
			name: "a rule forgets the L2 term",
			harm: "A regularisation that the job asks for is not there.",
			file: "optim/update.go", by: ten,
			old: "return m + T(s.l2*p)", new: "return m + T(0*s.l2*p)",
		},
		{
			name: "adam's bias correction is a step ahead",
			harm: "The first steps are too short by a factor; results differ from everybody else's Adam.",
			file: "optim/update.go", by: ten,
			old: "t := float64(step + 1)", new: "t := float64(step + 2)",
		},
		{
			name: "nesterov momentum looks ahead by the old velocity",
			harm: "It is ordinary momentum under another name.",
			file: "optim/kernels.go", by: ten,
			old: "v = m + T(mu*v)", new: "v = m + T(v-m)",
		},
		{
			name: "a row's update goes to another row",
			harm: "Embeddings of some ids are trained on the data of others.",
			file: "optim/update.go", by: catcher{"optim", "TestRows"},
			old: "slots, at[i]*dim, (at[i]+1)*dim)", new: "slots, i*dim, (i+1)*dim)",
		},
		{
			name: "a row reads the slot of the first row",
			harm: "All rows of a table share one momentum.",
			file: "optim/kernels.go", by: catcher{"optim", "TestRows"},
			old: "s[i] = slots[i][lo:hi]", new: "s[i] = slots[i][:hi-lo]",
		},
		{
			name: "a step without examples is applied",
			harm: "A skipped step divides by zero: every parameter is NaN.",
			file: "optim/update.go", by: catcher{"optim", "TestNoExamples"},
			old: "if total == 0 {\n\t\treturn\n\t}\n\tk := newKernel[T](r, step, total)\n\tk.check(len(p), len(g), slots)",
			new: "k := newKernel[T](r, step, total)\n\tk.check(len(p), len(g), slots)",
		},
	}
}

func flagFaults() []fault {
	golden := catcher{"optim", "TestGoldenDense"}
	return []fault{
		{
			name: "decoupled weight decay does not follow the schedule",
			harm: "Late in a run decay outweighs the gradient, and weights shrink.",
			file: "optim/update.go", by: golden,
			old: "decay: T(lr * r.WeightDecay)", new: "decay: T(r.LR * r.WeightDecay)",
		},
		{
			name: "amsgrad forgets its maximum",
			harm: "It is Adam under another name, with a third slot for nothing.",
			file: "optim/kernels.go", by: golden,
			old: "v = max(v, top[i])", new: "v = max(v, 0*top[i])",
		},
		{
			name: "ftrl leaves out the pull to the weight it had",
			harm: "It is dual averaging: weights wander as the rate falls.",
			file: "optim/kernels.go", by: golden,
			old: "m - T(gain/lr*w)", new: "m - T(0*gain/lr*w)",
		},
		{
			name: "lamb's trust ratio is upside down",
			harm: "Layers with small weights take large steps and diverge.",
			file: "optim/kernels.go", by: golden,
			old: "math.Sqrt(n.param) / math.Sqrt(n.step)", new: "math.Sqrt(n.step) / math.Sqrt(n.param)",
		},
		{
			name: "the warm-up begins with a rate of nothing",
			harm: "The first step of every run is lost, and each later one a little short.",
			file: "optim/schedule.go", by: catcher{"optim", "TestGoldenRates"},
			old: "float64(step+1) / float64(s.Warmup)", new: "float64(step) / float64(s.Warmup)",
		},
		{
			name: "clipping looks at the norm of the last gradient alone",
			harm: "The bound that a job asks for does not hold; large models diverge in spite of it.",
			file: "exec/commit.go", by: catcher{"exec", "TestClipNormIsGlobal"},
			old: "*sum += g.Squares;", new: "*sum = g.Squares;",
		},
	}
}

func dataFaults() []fault {
	once := catcher{"data", "TestOrderEveryRowOnce"}
	return []fault{
		{
			name: "the parts of two ranks overlap by a row",
			harm: "Some rows count twice in a step, on more ranks more often.",
			file: "data/order.go", by: once,
			old: "lo+part(n, rank, ranks), lo+part(n, rank+1, ranks)", new: "lo+part(n, rank, ranks), min(hi, lo+part(n, rank+1, ranks)+1)",
		},
		{
			name: "rows that do not divide evenly are left out",
			harm: "Some rows are never trained on, and which depends on the number of ranks.",
			file: "data/order.go", by: once,
			old: "return n/parts*i + n%parts*i/parts", new: "return n / parts * i",
		},
		{
			name: "every epoch has the same order",
			harm: "Shuffling happens once; models end a little worse, for a reason nobody sees.",
			file: "data/shuffle/permute.go", by: catcher{"data/shuffle", "TestPermutationUniform"},
			old: "mix.At(mix.Mix(seed), uint64(epoch))", new: "mix.At(mix.Mix(seed), uint64(0*epoch))",
		},
		{
			name: "the short last batch of an epoch is dropped",
			harm: "The last rows of the file are never seen without shuffling.",
			file: "data/order.go", by: once,
			old: "return (o.Rows-1)/o.Batch + 1", new: "return max(1, o.Rows/o.Batch)",
		},
		{
			name: "an entry gets its id in place of its position among the keys",
			harm: "Embeddings are read from the wrong rows, or out of bounds.",
			file: "data/feeder.go", by: catcher{"data", "TestFeed"},
			old: "in.putInts(t, f.keyed[in.column].pos)", new: "in.putInts(t, col.IDs)",
		},
		{
			name: "a saved position forgets its epoch",
			harm: "A run that goes on repeats the first epoch.",
			file: "data/cursor.go", by: catcher{"data", "TestCursor"},
			old: "int64(c.Epoch)*per + ", new: "int64(0*c.Epoch)*per + ",
		},
		{
			name: "a position over other rows is taken",
			harm: "A run goes on over a file that has changed, without a word.",
			file: "data/cursor.go", by: catcher{"data", "TestCursor"},
			old: `note("sample of the rows", was.Sample, now.Sample)`, new: "_ = was.Sample",
		},
		{
			name: "the seed does not change the order of rows",
			harm: "Runs with other seeds are not independent: error bars are too small.",
			file: "data/shuffle/permute.go", by: catcher{"data", "TestSeedsShuffleApart"},
			old: "mix.At(mix.Mix(seed), uint64(epoch))", new: "mix.At(mix.Mix(0*seed), uint64(epoch))",
		},
		{
			name: "numbers half way between two are rounded twice",
			harm: "Values of a file differ in the last bit from what everybody else reads.",
			file: "internal/number/number.go", by: catcher{"internal/number", "TestFloatExact"},
			old: "math.Float64bits(d)&lowBits == halfWay {", new: "math.Float64bits(d)&lowBits == halfWay+1<<30 {",
		},
	}
}

func modelFaults() []fault {
	return []fault{
		{
			name: "the hidden layers of the ctr model are linear",
			harm: "A deep model that is none: it trains, and is as good as logistic regression.",
			file: "model/deep.go", by: catcher{"model", "TestHiddenLayersAreRectified"},
			old: "\t\tif !last {\n\t\t\th = c.activate(g, h)", new: "\t\tif !last && from > 1 {\n\t\t\th = c.activate(g, h)",
		},
		{
			name: "embeddings ignore the seed",
			harm: "Runs with other seeds start from the same embeddings.",
			file: "model/interact.go", by: catcher{"model", "TestInits"},
			old: "Scale: embedScale, Seed: c.Seed}", new: "Scale: embedScale}",
		},
		{
			name: "wide and deep parts of the ctr model are not added",
			harm: "The linear part of the model is never trained, or the model does not build.",
			file: "model/interact.go", by: catcher{"model", "TestModels"},
			old: "logit = g.Add(logit, linear(g, \"wide\", ragged, 1, true, zero))", new: "g.Add(logit, linear(g, \"wide\", ragged, 1, true, zero))",
		},
		{
			name: "pairs of a factorisation machine count twice",
			harm: "Another model than the one of the papers: it trains, a little worse.",
			file: "model/interact.go", by: catcher{"train", "TestGoldenModels"},
			old: "-1, true), .5)", new: "-1, true), 1)",
		},
		{
			name: "a GPT has no path past its attention",
			harm: "Deep models of text hardly learn.",
			file: "model/gpt.go", by: catcher{"train", "TestGoldenModels"},
			old: "x = g.Add(x, g.Dropout(a, c.Dropout, c.Seed))", new: "x = g.Dropout(a, c.Dropout, c.Seed)",
		},
		{
			name: "the label of a text is the byte itself",
			harm: "A model of text learns to copy; its loss falls to nothing, and it says nothing.",
			file: "data/text.go", by: catcher{"data", "TestTextRows"},
			old: "float32(window[j+1])", new: "float32(window[j])",
		},
		{
			name: "a text to test on has a vocabulary of its own",
			harm: "The letters of the test file are other letters to the model: its loss is that of noise.",
			file: "train/input/spec.go", by: catcher{"train", "TestTextIsTested"},
			old: "spec.Vocabulary = Path(dataDir, j.Data.Train.Path.First())", new: "spec.Vocabulary = Path(dataDir, j.Data.Eval.Path.First())",
		},
	}
}
