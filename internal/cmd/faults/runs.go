package main

// What can go wrong around a run: who takes part, what is saved, what is said.

func coordFaults() []fault {
	scripts := catcher{"coord", "TestCoreScripts"}
	return []fault{
		{
			name: "ranks with different plans may start",
			harm: "A job with one stale binary hangs or trains nonsense in place of an error.",
			file: "coord/decide.go", by: scripts,
			old: `if text := c.mismatch(); text != "" {`, new: `if text := c.mismatch(); text == "never" {`,
		},
		{
			name: "the last error is reported, not the first",
			harm: "Users read that a connection broke and not that a rank ran out of memory.",
			file: "coord/decide.go", by: scripts,
			old: "if s.weight > c.suspect.weight || nearer {", new: "if s.weight < c.suspect.weight && !nearer {",
		},
		{
			name: "a silent rank is never given up",
			harm: "A host that lost power hangs the job.",
			file: "coord/decide.go", by: scripts,
			old: "if !s.joined || s.done || now-s.heard < c.cfg.HeartbeatTimeout {", new: "if !s.joined || s.done || now-s.heard > c.cfg.HeartbeatTimeout {",
		},
		{
			name: "two processes may have one rank",
			harm: "Half of the data is trained on twice.",
			file: "coord/decide.go", by: scripts,
			old: "case c.members[ev.Rank].joined:", new: "case c.members[ev.Rank].joined && ev.PID < 0:",
		},
		{
			name: "the beginning of the token is enough",
			harm: "Anybody who shows an empty token joins the job.",
			file: "coord/guard.go", by: catcher{"coord", "TestStranger"},
			old: "sameToken(strings.TrimPrefix(shown[0], tokenPrefix), s.cfg.Token)", new: "strings.HasPrefix(s.cfg.Token, strings.TrimPrefix(shown[0], tokenPrefix)) && !sameToken(\"\", s.cfg.Token)",
		},
	}
}

func checkpointFaults() []fault {
	return []fault{
		{
			name: "a damaged shard is read",
			harm: "A run goes on from a file that the disk has spoiled.",
			file: "checkpoint/reader.go", by: catcher{"checkpoint", "TestDamageIsPassedOver"},
			old: "hex.EncodeToString(got[:]) != sum {", new: "hex.EncodeToString(got[:1]) == sum {",
		},
		{
			name: "missing elements are not noticed",
			harm: "Part of a layer starts anew in the middle of a run.",
			file: "checkpoint/reader.go", by: catcher{"checkpoint", "TestAssemble"},
			old: "if covered[name] != t.Elems() {", new: "if covered[name] > t.Elems() {",
		},
		{
			name: "rows are read in the order of the file",
			harm: "A table comes back with its rows mixed up.",
			file: "checkpoint/reader.go", by: catcher{"checkpoint", "TestAssemble"},
			old: "copy(dst.Bytes()[int(k)*width:int(k+1)*width], p.Data", new: "copy(dst.Bytes()[i*width:(i+1)*width], p.Data",
		},
		{
			name: "the newest checkpoint is the oldest",
			harm: "A restart throws away all but the first checkpoint's work.",
			file: "checkpoint/manifest.go", by: catcher{"checkpoint", "TestDamageIsPassedOver"},
			old: "return int(b.step - a.step)", new: "return int(a.step - b.step)",
		},
	}
}

func trainFaults() []fault {
	resume := catcher{"train", "TestResumeIsTheSameRun"}
	return []fault{
		{
			name: "a run that goes on begins at the first rows again",
			harm: "The first epoch counts more; the learning curve has a bump after each restart.",
			file: "train/worker.go", by: resume,
			old: "at, end := w.first(), w.setup.steps(w.order)", new: "at, end := 0*w.first(), w.setup.steps(w.order)",
		},
		{
			name: "a worker that goes on starts with fresh slots",
			harm: "Adam warms up anew after each restart, and the loss jumps.",
			file: "train/holder.go", by: resume,
			old: "if err := l.state.Restore(from); err != nil {", new: "if err := l.state.Only(s.Step).Restore(from); err != nil {",
		},
		{
			name: "a checkpoint lacks what an outer optimizer keeps",
			harm: "A run of localsgd with outer momentum cannot go on from its checkpoint.",
			file: "train/holder.go", by: catcher{"train", "TestLocalResumeIsTheSameRun"},
			old: "range strategy.Beside(l.setup.Program, l.setup.Step) {", new: "range strategy.Beside(l.setup.Program, l.setup.Step)[:0] {",
		},
		{
			name: "a server that goes on counts its steps from 0",
			harm: "The first pull after a restart is refused.",
			file: "train/server.go", by: resume,
			old: "shard.SetVersion(m.first())", new: "shard.SetVersion(0)",
		},
		{
			name: "a server that goes on starts with initial values",
			harm: "A restart throws the model away, or part of it.",
			file: "train/server.go", by: resume,
			old: "if err := shard.Import(pieces); err != nil {", new: "if err := error(nil); err != nil {",
		},
		{
			name: "a job with other settings goes on",
			harm: "A learning rate or data set changed by mistake goes unnoticed in the middle of a run.",
			file: "train/resume/resume.go", by: catcher{"train", "TestResumeRefusesAnotherJob"},
			old: "if digest != c.Manifest.Job {", new: "if digest == \"\" && digest != c.Manifest.Job {",
		},
		{
			name: "ranks may begin at different steps",
			harm: "One host that does not see the newest checkpoint trains on other rows than the rest.",
			file: "train/setup.go", by: catcher{"train", "TestDigestSaysWhereARunBegins"},
			old: "plan.ProgramDigest(s.Program), fixed, first", new: "plan.ProgramDigest(s.Program), fixed, 0*first",
		},
		{
			name: "an evaluation counts one worker's rows",
			harm: "The reported loss is that of a part of the test set.",
			file: "train/tally/tally.go", by: catcher{"train/tally", "TestTallyMerge"},
			old: "t.Loss += o.Loss", new: "t.Loss += 0 * o.Loss",
		},
		{
			name: "an evaluation adds to the one before",
			harm: "The metrics at the end are an average over the whole run.",
			file: "train/evaluate.go", by: catcher{"train", "TestEvaluationIsOfAllRowsOnce"},
			old: "\t\tt.parts[i].tally = tally.New(task, threshold)\n", new: "\t\tif t.parts[i].tally.Weight == 0 {\n\t\t\tt.parts[i].tally = tally.New(task, threshold)\n\t\t}\n",
		},
		{
			name: "an evaluation asks the servers for the version of its own step",
			harm: "With servers, every evaluation but the first batch fails.",
			file: "train/holder.go", by: catcher{"train", "TestEvaluationIsOfAllRowsOnce"},
			old: "return &pinned{r.client, version}", new: "return r.client",
		},
	}
}

func reportFaults() []fault {
	return []fault{
		{
			name: "steps that are skipped never end the run",
			harm: "A job whose loss is NaN runs to its end and saves the model of an hour before.",
			file: "train/progress.go", by: catcher{"train", "TestSkippedStepsEndTheRun"},
			old: "if w.skipped >= skipsMax && w.hopeless == nil {", new: "if w.skipped < 0 {",
		},
		{
			name: "a few skipped steps in the whole run end it",
			harm: "Long jobs die of bad rows far apart.",
			file: "train/progress.go", by: catcher{"train", "TestSkippedStepsEndTheRun"},
			old: "\t\tw.skipped = 0\n", new: "\t\tw.skipped += 0\n",
		},
		{
			name: "clocks are moved the wrong way",
			harm: "The timeline of a job shows messages that arrive before they are sent.",
			file: "trace/merge.go", by: catcher{"trace", "TestMergeMovesClocks"},
			old: "s.Start += int64(p.Offset)", new: "s.Start -= int64(p.Offset)",
		},
		{
			name: "a wrong request is tried again",
			harm: "A typo in a job starts all ranks over and over.",
			file: "launch/run.go", by: catcher{"launch", "TestWrongRequestIsNotRepeated"},
			old: "failed.final() || n >=", new: "n >=",
		},
		{
			name: "every attempt is of the same generation",
			harm: "Ranks of the attempt before can talk to those of this one.",
			file: "launch/run.go", by: catcher{"launch", "TestRestart"},
			old: "cfg.Coordinator.Generation + uint64(n)}", new: "cfg.Coordinator.Generation}",
		},
		{
			name: "the batch is not among what a checkpoint fixes",
			harm: "A run that goes on with another batch skips rows, or repeats them.",
			file: "job/validate.go", by: catcher{"job", "TestFixed"},
			old: "fixed{j.Seed, j.Model, j.Data.Train, j.Batch,", new: "fixed{j.Seed, j.Model, j.Data.Train, 0 * j.Batch,",
		},
		{
			name: "the digest leaves out the cycle",
			harm: "Ranks that push at different steps start together, and hang.",
			file: "plan/format.go", by: catcher{"plan", "TestDigest"},
			old: "cycle=%q\\n\", p.Cycle)", new: "cycle=%q\\n\", p.Cycle[:0])",
		},
	}
}

// killedFaults are noticed when real processes are killed.
func killedFaults() []fault {
	once := catcher{"chaos", "TestEveryRowOnce"}
	return []fault{
		{
			name: "a run that goes on leaves out a batch",
			harm: "Rows are never trained on, some more after every crash.",
			file: "train/worker.go", by: once,
			old: "at, end := w.first(), w.setup.steps(w.order)", new: "at, end := w.first()+min(1, w.first()), w.setup.steps(w.order)",
		},
		{
			name: "the order of the rows depends on the number of ranks",
			harm: "A run that goes on with more or fewer workers uses some rows twice and others never.",
			file: "data/order.go", by: once,
			old: "perm := shuffle.Of(o.Rows, o.Seed, epoch)", new: "perm := shuffle.Of(o.Rows, o.Seed+uint64(ranks), epoch)",
		},
		{
			name: "the order within windows depends on the number of ranks",
			harm: "A run over rows that do not fit into memory uses some twice and others never, once it goes on with other workers.",
			file: "data/order.go", by: once,
			old: "\t\tw := o.windows(epoch)\n", new: "\t\to.Seed += uint64(ranks)\n\t\tw := o.windows(epoch)\n",
		},
		{
			name: "half a cache file is taken for one whose writer lives",
			harm: "Every run that is killed while it reads its files leaves what it wrote, for ever.",
			file: "data/cache/dead_unix.go", by: catcher{"data/cache", "TestDeadWriters"},
			old: "unix.LOCK_EX|unix.LOCK_NB) == nil {", new: "unix.LOCK_EX|unix.LOCK_NB) != nil {",
		},
	}
}
