package main

// What can go wrong between a step and what runs of it: strategies, the builder
// that they share, the order that the cursor gives, the executor.

func strategyFaults() []fault {
	proof := catcher{"strategy", "TestEveryPlanIsProved"}
	return []fault{
		{
			name: "the gradient of a table is not summed over the workers",
			harm: "Each worker trains its own table on its own rows; the copies drift apart and nothing says so.",
			file: "strategy/allreduce.go", by: proof,
			old: "\t\t\tb.reduce(p)\n",
			new: "\t\t\tif !p.IsTable() {\n\t\t\t\tb.reduce(p)\n\t\t\t}\n",
		},
		{
			name: "the update takes the worker's own gradient, not the sum",
			harm: "Workers learn from their part of the data only; their parameters drift apart.",
			file: "strategy/tasks.go", by: proof,
			old: "return plan.Ref{Value: b.sums[p].sum}", new: "return b.of(p.Grad, 0)",
		},
		{
			name: "the update pairs summed rows with the worker's own keys",
			harm: "Rows of the sum are added to rows of other ids: embeddings are mixed up.",
			file: "strategy/tasks.go", by: proof,
			old: "return plan.Ref{Value: b.sums[p].keys}", new: "return b.of(p.Keys, 0)",
		},
		{
			name: "the commit looks at a table's gradient before the sum",
			harm: "A sum that overflows on the way is applied, and the table is NaN from then on.",
			file: "strategy/tasks.go", by: proof,
			old: "refs(b.sums[&b.step.Params[i]].sum)", new: "refs(b.node(b.step.Params[i].Grad))",
		},
		{
			name: "the commit does not wait for the pushes",
			harm: "A step may be declared done before the servers have its gradients, so a lost one goes unnoticed.",
			file: "strategy/ps.go", by: proof,
			old: "b.commit(pushes...)", new: "b.commit()",
		},
		{
			name: "a pull does not wait for the step before",
			harm: "The forward pass now and then reads parameters that lack the last update.",
			file: "strategy/ps.go", by: proof,
			old: "b.nextStep(pulls, b.commit(pushes...))", new: "_ = pulls\n\tb.commit(pushes...)",
		},
		{
			name: "a pull for evaluation does not wait for the evaluation before",
			harm: "Parameters are overwritten while an evaluation reads them; its metrics are of no version at all.",
			file: "strategy/ps.go", by: proof,
			old: "b.nextStep(pulls, b.compute(b.step.Eval, 0))", new: "_ = pulls\n\tb.compute(b.step.Eval, 0)",
		},
		{
			name: "a gradient is pushed twice",
			harm: "The server counts a worker's part of the data double.",
			file: "strategy/ps.go", by: proof,
			old: "t.In = append(t.In, refs(b.node(p.Grad))...)", new: "t.In = append(t.In, refs(b.node(p.Grad), b.node(p.Grad))...)",
		},
		{
			name: "a gradient is pushed to a store that holds nothing of it",
			harm: "The run ends at its first step with an error of the server.",
			file: "strategy/ps.go", by: proof,
			old: "case b.holds(store, b.node(p.Var)):", new: "default:",
		},
	}
}

func builderFaults() []fault {
	proof := catcher{"strategy", "TestEveryPlanIsProved"}
	return []fault{
		{
			name: "the ranges of two stores overlap by an element",
			harm: "One weight has two owners that update it apart; which one a worker reads is chance.",
			file: "strategy/holdings.go", by: proof,
			old: "min((i+1)*total/b.c.Servers-at, n)", new: "min((i+1)*total/b.c.Servers-at+1, n)",
		},
		{
			name: "nobody holds the slots of a rule",
			harm: "Momentum and Adam state is in no checkpoint; a run that goes on jumps.",
			file: "strategy/holdings.go", by: proof,
			old: "v == param || val.Class == plan.Slot && val.State == param", new: "v == param && val.Class == plan.Param",
		},
		{
			name: "the group of all workers lacks the last",
			harm: "Its rows count for nothing, or the run ends at the first collective.",
			file: "strategy/builder.go", by: proof,
			old: "make([]int, c.Workers)", new: "make([]int, max(1, c.Workers-1))",
		},
		{
			name: "of several tasks on one lane, the first is waited for",
			harm: "A task may start before what it reads is written: now and then, on a loaded machine.",
			file: "strategy/builder.go", by: proof,
			old: "last[lane] = max(last[lane], i)",
			new: "if _, ok := last[lane]; !ok {\n\t\t\t\tlast[lane] = i\n\t\t\t}",
		},
		{
			name: "the sum of the copies is not divided by their number",
			harm: "Every averaging multiplies the parameters by the number of workers.",
			file: "strategy/averaging.go", by: catcher{"strategy", "TestEveryAveragingIsProved"},
			old: "return 1 / float64(b.c.Workers)", new: "return 1",
		},
		{
			name: "a task does not wait for who writes what it reads",
			harm: "Gradients of the step before are reduced, sometimes.",
			file: "strategy/builder.go", by: proof,
			old: "after = append(after, b.wrote[r.Value]...)", new: "_ = r",
		},
		{
			name: "tags begin anew in the eval plan",
			harm: "A late message of a training step can pass for one of the evaluation.",
			file: "strategy/builder.go", by: catcher{"strategy", "TestPlansShareNoTags"},
			old: "newBuilder(EvalPlan, step, c, b.tag)", new: "newBuilder(EvalPlan, step, c, 0)",
		},
		{
			name: "an evaluation is fed no labels",
			harm: "Metrics are of the labels that the loss reads, or of none.",
			file: "strategy/tasks.go", by: catcher{"strategy", "TestLabelIsFedThoughNothingReadsIt"},
			old: "nodes = append(nodes, step.Model.Label)", new: "_ = step.Model.Label",
		},
	}
}

func cursorFaults() []fault {
	oracle := catcher{"plan", "TestCursorAgainstOracle"}
	return []fault{
		{
			name: "the window lets one step more begin",
			harm: "Two steps share one copy of the activations; a batch is overwritten while it is computed with.",
			file: "plan/cursor.go", by: oracle,
			old: "if l.step >= c.oldest+c.window {", new: "if l.step > c.oldest+c.window {",
		},
		{
			name: "tasks of one lane run side by side",
			harm: "Two collectives of one group mix their messages.",
			file: "plan/cursor.go", by: oracle,
			old: "slices.Index(lanes, tasks[i].Lane)", new: "slices.Index(lanes, Lane{})",
		},
		{
			name: "a task waits for the first of the tasks it names only",
			harm: "The update may start before the commit has decided: a NaN gets into the parameters.",
			file: "plan/cursor.go", by: oracle,
			old: "for end := c.tasks[task].depHi; l.dep < end; l.dep++ {", new: "for end := min(l.dep+1, c.tasks[task].depHi); l.dep < end; l.dep++ {",
		},
		{
			name: "dependencies on earlier steps are ignored",
			harm: "With servers, workers read parameters of two steps ago.",
			file: "plan/cursor.go", by: oracle,
			old: "on.next <= l.step-int64(d.Lag) {", new: "d.Lag == 0 && on.next <= l.step {",
		},
	}
}

func execFaults() []fault {
	return []fault{
		{
			name: "every step uses the same copy of the values",
			harm: "The reader overwrites the batch that is being computed with.",
			file: "exec/lane.go", by: catcher{"exec", "TestLearn"},
			old: "t.run(w.ctx, w.Step, int(w.Step%e.window))", new: "t.run(w.ctx, w.Step, 0*int(e.window))",
		},
		{
			name: "all copies of a value are one tensor",
			harm: "The reader overwrites the batch that is being computed with.",
			file: "exec/internal/memory/values.go", by: catcher{"exec", "TestLearn"},
			old: "case i > 0 && (held || val.Once):", new: "case i > 0:",
		},
		{
			name: "the error of a task is dropped",
			harm: "A bad row or a broken connection goes unreported and the run goes on with old values.",
			file: "exec/lane.go", by: catcher{"exec", "TestErrorNamesTheTask"},
			old: "e.fail(t, e.taskError(t, w.Step, start, err))", new: "_ = e.taskError(t, w.Step, start, err)",
		},
		{
			name: "the error of a callback is dropped",
			harm: "An evaluation that cannot read its outputs reports metrics all the same.",
			file: "exec/lane.go", by: catcher{"exec", "TestOnOutput"},
			old: "if err == nil && e.cfg.OnStep != nil {", new: "if err = nil; e.cfg.OnStep != nil {",
		},
		{
			name: "the watchdog never fires",
			harm: "A rank that hangs hangs the job for ever, and names nobody.",
			file: "exec/watch.go", by: catcher{"exec", "TestDeadlineNamesTheMissingRank"},
			old: "if e.cfg.Deadline <= 0 {", new: "if e.cfg.Deadline >= 0 {",
		},
		{
			name: "the watchdog counts from the start of the run",
			harm: "Every run that lasts longer than one task may is shot.",
			file: "exec/watch.go", by: catcher{"exec", "TestDeadlineOfCompute"},
			old: "start := time.Duration(began - 1)", new: "start := time.Duration(min(began-1, 0))",
		},
		{
			name: "the gradients of a skipped step count as applied",
			harm: "The report says that every gradient was used when some were dropped.",
			file: "exec/internal/ledger/ledger.go", by: catcher{"exec", "TestSkipIsAgreed"},
			old: "if skipped {", new: "if skipped && n < 0 {",
		},
		{
			name: "an executor that failed runs again",
			harm: "What was half done in the failed step is computed with.",
			file: "exec/exec.go", by: catcher{"exec", "TestErrorNamesTheTask"},
			old: "case e.failed:\n\t\treturn", new: "case e.failed && e.closed:\n\t\treturn",
		},
		{
			name: "executors do not share their parameters",
			harm: "Evaluations are of the initial values.",
			file: "exec/internal/memory/values.go", by: catcher{"exec", "TestRunsAndSharedState"},
			old: "v.state[val.Name] = t", new: "_ = t",
		},
	}
}

func commitFaults() []fault {
	skip := catcher{"exec", "TestSkipIsAgreed"}
	return []fault{
		{
			name: "a step that is not finite is committed",
			harm: "One bad row turns every parameter into NaN.",
			file: "exec/internal/ballot/ballot.go", by: skip,
			old: "\tif worst < None {", new: "\tif worst < Own {",
		},
		{
			name: "the commit does not look at gradients",
			harm: "A gradient that overflowed turns a parameter into NaN.",
			file: "exec/commit.go", by: skip,
			old: "o.look(in, c)\n", new: "o.look(in[:2], c)\n",
		},
		{
			name: "a rank keeps its fault to itself",
			harm: "One rank skips a step that the others apply: the copies of the parameters differ from then on.",
			file: "exec/commit.go", by: skip,
			old: "o.mine.Close(fault, own)", new: "o.mine.Close(max(fault, ballot.None), own)",
		},
		{
			name: "the update divides by the worker's own weight",
			harm: "The learning rate is as many times too high as there are workers.",
			file: "exec/commit.go", by: catcher{"exec", "TestAllReduceIsSerial"},
			old: "out[0].SetScalar(divisor)", new: "out[0].SetScalar(in[0].Scalar())",
		},
		{
			name: "each rank sums weight and loss beginning with its own",
			harm: "The last bit of the total differs between ranks, and so in the end do their parameters.",
			file: "exec/commit.go", by: catcher{"exec", "TestCommitGivesTheSameBits"},
			old: "v := o.mine.Count(all,",
			new: "at := o.exchange.Index * len(o.mine.Bytes())\n\tv := o.mine.Count(slices.Concat(all[at:], all[:at]),",
		},
		{
			name: "servers are not told of a step that is skipped",
			harm: "After the first bad batch every worker waits for a verdict that never comes.",
			file: "exec/commit.go", by: catcher{"exec", "TestSkippedStepIsAVerdict"},
			old: "if o.e.cfg.Stores != nil {", new: "if o.e.cfg.Stores != nil && !r.Skipped {",
		},
		{
			name: "a run pauses without averaging the workers' copies",
			harm: "Tests and checkpoints are of the copy of worker 0, which has seen its part of the rows only.",
			file: "exec/cycle/cycle.go", by: catcher{"exec/cycle", "TestAgainstPlainLoops"},
			old: "return d.settle.Run(ctx, last-1, last)", new: "return nil",
		},
	}
}

func checkFaults() []fault {
	planted := catcher{"strategy", "TestPlantedFaults"}
	return []fault{
		{
			name: "the checker takes a gradient of some workers for one of all",
			harm: "A strategy that forgets a reduction passes, and trains apart.",
			file: "plan/check/gradient.go", by: planted,
			old: "if lacks := t.missing(at.rank, met); lacks != \"\" {", new: "if lacks := t.missing(at.rank, met); met.Sign() == 0 {",
		},
		{
			name: "the checker lets copies train on without ever meeting",
			harm: "A strategy that forgets to average passes: every worker learns from its own rows for good, and one of them is saved.",
			file: "plan/check/cycle.go", by: catcher{"plan/check", "TestCopiesMeet"},
			old: "if len(missing) > 0 {", new: "if len(missing) > len(m.names) {",
		},
		{
			name: "the checker takes any copies for equal where a program settles",
			harm: "A strategy passes whose tests and checkpoints are of one worker's copy.",
			file: "plan/check/cycle.go", by: catcher{"plan/check", "TestCopiesMeet"},
			old: "f := m.get(rank, r); !f.near(lead) {", new: "f := m.get(rank, r); len(f) == 0 && !f.near(lead) {",
		},
		{
			name: "the checker does not see that a sum counts twice",
			harm: "A strategy that reduces twice passes, and learns too fast.",
			file: "plan/check/gradient.go", by: planted,
			old: "counts && again.Sign() != 0 {", new: "counts && again.Sign() < 0 {",
		},
		{
			name: "the checker does not compare the collectives of a group",
			harm: "Ranks that reduce in different orders pass, and hang.",
			file: "plan/check/progress.go", by: planted,
			old: "case here == there:", new: "case here != there || here == there:",
		},
		{
			name: "the checker is content with the commit of two steps ago",
			harm: "A strategy that reads stale parameters passes.",
			file: "plan/check/order.go", by: planted,
			old: "if !k.before(m, i, 1) {", new: "if !k.before(m, i, 2) {",
		},
	}
}
