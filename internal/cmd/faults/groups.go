package main

// What can go wrong where ranks sum in buckets, over streams, and where they join and
// say who is missing.

func bucketFaults() []fault {
	full := catcher{"strategy", "TestBucketsCloseWhenFull"}
	return []fault{
		{
			name: "a bucket takes one gradient more than it holds",
			harm: "The setting strategy.bucket is not kept; sums begin later than they could.",
			file: "strategy/allreduce.go", by: full,
			old: "if b.bucket.bytes+size > limit ||", new: "if b.bucket.bytes > limit ||",
		},
		{
			name: "the last bucket is not sent",
			harm: "The first layers are trained by each worker on its own rows.",
			file: "strategy/allreduce.go", by: catcher{"strategy", "TestEveryPlanIsProved"},
			old: "\t})\n\tb.sendBucket()\n\tb.commit()", new: "\t})\n\tb.commit()",
		},
		{
			name: "only the first value of a bucket is summed",
			harm: "Workers train apart, but for one layer a bucket.",
			file: "exec/collective.go", by: catcher{"exec", "TestFusedSum"},
			old: "mem[lo:hi], (hi-lo)/v.DType.Size())", new: "mem[lo:lo+(hi-lo)/2/8*8], (hi-lo)/2/8*8/v.DType.Size())",
		},
	}
}

func streamFaults() []fault {
	flipped := catcher{"transport/stream", "TestFlippedBit"}
	return []fault{
		{
			name: "a block of a stream is read though its checksum is wrong",
			harm: "A bit that flips on the way becomes a weight, though the job asks for checksums.",
			file: "transport/stream/sums.go", by: flipped,
			old: "c.read != sum {", new: "c.read != sum && size < 0 {",
		},
		{
			name: "the head of a block is believed",
			harm: "A bit that flips in a length hangs the collective until its deadline.",
			file: "transport/stream/sums.go", by: flipped,
			old: "if crc32.Checksum(head[:8], c.table) != binary.LittleEndian.Uint32(head[8:]) || size == 0", new: "if size == 0",
		},
		{
			name: "bytes that did not fit may change before they are written again",
			harm: "With checksums, a caller that does so sends what it did not mean to, unseen.",
			file: "transport/stream/sums.go", by: catcher{"transport/stream", "TestSumsChangedBytes"},
			old: "!bytes.Equal(p[:n], c.out[at:at+n])", new: "len(p) < n && !bytes.Equal(p[:n], c.out[at:at+n])",
		},
		{
			name: "a member with checksums and one without open a stream",
			harm: "Sums are read as values, or values as sums.",
			file: "transport/stream/record.go", by: catcher{"transport/stream", "TestSumsDiffer"},
			old: "if a.sums != b.sums {", new: "if a.sums != b.sums && a.rank < 0 {",
		},
		{
			name: "members may allow different paths",
			harm: "Two ranks wait for each other at different doors until the timeout.",
			file: "transport/stream/record.go", by: catcher{"transport/stream", "TestOpenPathsDiffer"},
			old: "if a.path != b.path {", new: "if a.path != b.path && a.rank < 0 {",
		},
		{
			name: "an impossible counter in shared memory is believed",
			harm: "A rank that is out of its mind makes others read beyond their ring, and crash.",
			file: "transport/stream/ring.go", by: catcher{"transport/stream", "TestCorruptCounters"},
			old: "n > uint64(len(r.data)) || n < r.seen-r.at {", new: "n < r.seen-r.at {",
		},
	}
}

func joinFaults() []fault {
	meet := catcher{"launch", "TestMeetInPrivate"}
	return []fault{
		{
			name: "a rank that cannot open a group keeps it to itself",
			harm: "The others wait for it until a deadline, and each says something else.",
			file: "world.go", by: catcher{".", "TestUnopened"},
			old: "return nil, w.unopened(fmt.Errorf(", new: "return nil, (fmt.Errorf(",
		},
		{
			name: "two ranks 0 hold one place to meet",
			harm: "Of two jobs with one address, ranks of one join the other.",
			file: "launch/private_unix.go", by: catcher{"launch", "TestMeetRefuses"},
			old: "unix.LOCK_EX|unix.LOCK_NB", new: "unix.LOCK_SH|unix.LOCK_NB",
		},
		{
			name: "the token stays where ranks have met",
			harm: "Every job leaves a directory among temporary files, with a secret in it.",
			file: "launch/private_unix.go", by: meet,
			old: "[]string{socketFile, tokenFile, lockFile, \"\"}", new: "[]string{socketFile, lockFile, \"\"}",
		},
		{
			name: "ranks meet in a directory that others can enter",
			harm: "Another user of the host takes the place of rank 0 and gets the gradients.",
			file: "launch/private_unix.go", by: catcher{"launch", "TestMeetRefuses"},
			old: "info.Mode().Perm()&0o077 != 0", new: "info.Mode().Perm()&0o007 == 0o777",
		},
		{
			name: "workers on other hosts than the job says are passed over",
			harm: "Algorithms are chosen for other machines: sums cross the slow wire more often than they need, and nobody is told.",
			file: "train/rank.go", by: catcher{"train", "TestCheckHosts"},
			old: "text != \"\" {\n\t\tm.cfg.Logger.Warn(text)", new: "text == \"\" {\n\t\tm.cfg.Logger.Warn(text)",
		},
		{
			name: "hosts are counted though their workers do not stand together",
			harm: "The warning names a setting that is wrong too.",
			file: "coord/crew/hosts.go", by: catcher{"coord/crew", "TestOtherHosts"},
			old: "scattered = scattered || slices.Contains(names, p.Host)", new: "scattered = scattered || len(names) < 0",
		},
	}
}

func verdictFaults() []fault {
	job, stops := catcher{"train", "TestVerdictOfAJob"}, catcher{"coord/verdict", "TestOneStops"}
	return []fault{
		{
			name: "who waits in another group is blamed",
			harm: "Of groups that share ranks, the error names a rank that is held up itself.",
			file: "coord/verdict/verdict.go", by: stops,
			old: "\t\t\tcase !waits:\n", new: "\t\t\tcase !waits || len(elsewhere.Members) > 0:\n",
		},
		{
			name: "who does not answer is not missing",
			harm: "A rank that is stopped is named by nobody.",
			file: "coord/verdict/verdict.go", by: stops,
			old: "missing = append(missing, unanswered(rank, r))", new: "_ = unanswered(rank, r)",
		},
		{
			name: "of a call that all came to late, who does not answer is passed over",
			harm: "A stopped rank has the error name one that it held up.",
			file: "coord/verdict/verdict.go", by: catcher{"coord/verdict", "TestQuietElsewhere"},
			old: "if quiet := e.quiet(); len(quiet) > 0 {", new: "if quiet := e.quiet(); len(quiet) > len(e.Ranks) {",
		},
		{
			name: "a circle of ranks is followed for ever",
			harm: "The coordinator hangs where it should say that ranks wait for each other.",
			file: "coord/verdict/verdict.go", by: catcher{"coord/verdict", "TestCircle"},
			old: "if !seen[elsewhere.Group] {", new: "if true {",
		},
		{
			name: "a call of a job that fails counts as ended",
			harm: "The coordinator finds no call in trouble: the error names who noticed, not who is missing.",
			file: "exec/lane.go", by: job,
			old: "if t.call != \"\" && err == nil {", new: "if t.call != \"\" {",
		},
		{
			name: "a job does not ask for a verdict on its collectives",
			harm: "Each rank names another one, and users look for the cause on the wrong host.",
			file: "train/rank.go", by: job,
			old: "case ok && (task.Kind == plan.Collective ||", new: "case ok && (task.Kind == plan.Add ||",
		},
		{
			name: "calls do not give up before their deadline",
			harm: "A verdict comes when others have given up by themselves, each with an error of its own.",
			file: "coord/crew/verdict.go", by: catcher{"coord/crew", "TestPatience"},
			old: "return within - min(VerdictWait, within/2)", new: "return within",
		},
		{
			name: "a rank keeps to itself for whom it waits",
			harm: "Of a collective that all came to, the error blames whoever noticed first.",
			file: "coord/crew/board.go", by: catcher{"coord/crew", "TestWatched"},
			old: "w.in, w.out = in, out\n", new: "w.in, w.out = nil, nil\n",
		},
	}
}

// boundFaults are those of when an error is there, and of what it says where calls do not.
func boundFaults() []fault {
	outside := catcher{"coord/crew", "TestOutside"}
	return []fault{
		{
			name: "the verdict is waited for beyond the deadline",
			harm: "If the coordinator is stopped, every error comes late by a second.",
			file: "coord/crew/verdict.go", by: catcher{"coord/crew", "TestVerdictTime"},
			old: "max(left-VerdictEarly, VerdictLeast)", new: "max(left+VerdictWait, VerdictLeast)",
		},
		{
			name: "a coordinator that does not answer is named by nobody",
			harm: "If rank 0 is stopped, the error names whoever waits for it.",
			file: "coord/crew/verdict.go", by: outside,
			old: "if a.Rank != 0 {", new: "if a.Rank == coord.NoRank {",
		},
		{
			name: "an error between steps lists nobody as missing",
			harm: "A stopped rank is in no field of the error: programs that restart it take who noticed for the cause.",
			file: "coord/decide.go", by: outside,
			old: "cause.Missing = c.gone(now, ev.Peer, \"was waited for\")\n", new: "",
		},
		{
			name: "workers wait for each other between steps without a bound",
			harm: "A rank that is stopped while a checkpoint is written is noticed by its heartbeat only.",
			file: "train/meet/meet.go", by: catcher{"train/meet", "TestLate"},
			old: "if w.Patience == 0 {", new: "if w.Patience >= 0 {",
		},
		{
			name: "after an error a rank waits for others to hear its bye",
			harm: "If one is stopped, all others are known to have failed a second too late, or two.",
			file: "coord/crew/crew.go", by: catcher{"coord/crew", "TestAbort"},
			old: "if a, ok := s.(aborter); ok {", new: "if a, ok := s.(aborter); ok && a == nil {",
		},
	}
}
