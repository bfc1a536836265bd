package main

// What can go wrong between ranks: collectives, servers, the wire.

func scheduleFaults() []fault {
	proved, runner := catcher{"collective", "TestSchedulesAreProved"}, catcher{"collective", "TestRunner"}
	return []fault{
		{
			name: "the ring's second half starts at the wrong chunk",
			harm: "Workers end with partial sums of some chunks.",
			file: "collective/schedule.go", by: proved,
			old: "append(ringSteps(n, i, -1, Add), ringSteps(n, i, 0, Copy)...)", new: "append(ringSteps(n, i, -1, Add), ringSteps(n, i, -1, Copy)...)",
		},
		{
			name: "a broadcast over no power of two leaves out the last ranks",
			harm: "Some ranks start from other parameters.",
			file: "collective/rooted.go", by: proved,
			old: "d *= 2 {\n\t\tfor i := range min(d, n-d) {", new: "d *= 2 {\n\t\tfor i := range min(d, max(0, n-2*d)) {",
		},
		{
			name: "chunks lose the elements that do not divide evenly",
			harm: "The last weights of a layer are never reduced.",
			file: "collective/schedule.go", by: catcher{"collective", "TestBoundTiles"},
			old: "whole, rest := elems/chunks, elems%chunks\n\treturn c*whole + c*rest/chunks", new: "return c * (elems / chunks)",
		},
		{
			name: "float64 is copied where it should be added",
			harm: "An all-reduce gives one rank's gradient for the sum.",
			file: "collective/program.go", by: runner,
			old: "add: st.Action == Add,", new: "add: st.Action == Add && l.size == 4,",
		},
		{
			name: "a rank sends on what has not come yet",
			harm: "Sums lack what others gave, on slow networks only.",
			file: "collective/engine.go", by: catcher{"collective", "TestAnySchedule"},
			old: "return min(max(r.lo+e.got-p.lo, 0), p.hi-p.lo)", new: "return min(max(r.lo+e.got-p.lo, p.hi-p.lo), p.hi-p.lo)",
		},
		{
			name: "a receive overwrites memory that is still to be sent",
			harm: "Wrong sums, on fast networks only.",
			file: "collective/engine.go", by: catcher{"collective", "TestEarlyReceiveWaitsForItsMemory"},
			old: "return min(max(from-p.lo, e.got), p.hi-p.lo)", new: "return min(max(from-p.lo, p.hi-p.lo), p.hi-p.lo)",
		},
		{
			name: "the first half of an element is forgotten",
			harm: "Sums over sockets take numbers from between two others, now and then.",
			file: "collective/engine.go", by: catcher{"collective", "TestBlocks"},
			old: "\t\tcopy(e.scratch, e.scratch[whole:have])\n", new: "",
		},
		{
			name: "an opening is taken for right without a look",
			harm: "Two ranks with different plans sum what does not belong together.",
			file: "collective/engine.go", by: catcher{"collective", "TestMismatch"},
			old: "|| l.theirs == l.due {", new: "|| l.theirs != l.due {",
		},
		{
			name: "half of the last place is always rounded up in bf16",
			harm: "Sums of many drift upwards.",
			file: "internal/half/scalar.go", by: catcher{"collective/reduce", "TestKernels"},
			old: "(b + 0x7fff + b>>16&1) >> 16", new: "(b + 0x8000) >> 16",
		},
	}
}

func sparseFaults() []fault {
	rows := catcher{"collective", "TestRowsAgainstTheObvious"}
	return []fault{
		{
			name: "rows of one key from two ranks stay two rows",
			harm: "The update overwrites one worker's gradient with the other's.",
			file: "collective/internal/merge/merge.go", by: rows,
			old: "if distinct == 0 || key != last {", new: "if distinct == 0 || key >= last {",
		},
		{
			name: "rows of one key are summed from the last rank down",
			harm: "Results differ in the last bit from those of servers and of other numbers of ranks.",
			file: "collective/internal/merge/merge.go", by: rows,
			old: "x < y || x == y && a < b", new: "x < y || x == y && a > b",
		},
		{
			name: "keys out of order are merged all the same",
			harm: "A reader that does not sort spoils tables without an error.",
			file: "collective/internal/merge/merge.go", by: catcher{"collective", "TestRowsRefuseBadKeys"},
			old: "} else if keys[at] <= key {", new: "} else if keys[at] < 0 {",
		},
		{
			name: "an exchange puts a rank's bytes in the place of the one before",
			harm: "The ranks disagree on who failed.",
			file: "collective/exchange.go", by: catcher{"collective", "TestExchange"},
			old: "x.Tag, x.all[i*x.size:(i+1)*x.size]", new: "x.Tag, x.all[mod(i-1, n)*x.size:][:x.size]",
		},
	}
}

func storeFaults() []fault {
	scripts, random := catcher{"ps", "TestScripts"}, catcher{"ps", "TestRandomRuns"}
	return []fault{
		{
			name: "a step is applied before all workers have contributed",
			harm: "A slow worker's rows count for nothing.",
			file: "ps/apply.go", by: scripts,
			old: `if missing := s.missing(); missing != "" {`, new: `if missing := s.missing(); missing != "" && v.Weight < 0 {`,
		},
		{
			name: "contributions are summed beginning with whose verdict came first",
			harm: "Two runs of one job end with other bits, and nobody can say why.",
			file: "ps/apply.go", by: random,
			old: "s.cells[i].apply(s.version, v.Weight, got)", new: "s.cells[i].apply(s.version, v.Weight, append(slices.Clone(got[s.at[v.from]:]), got[:s.at[v.from]]...))",
		},
		{
			name: "a repeated push is not recognised",
			harm: "After a reconnection the run ends with an error.",
			file: "ps/apply.go", by: random,
			old: "if old.seq != ev.Seq || old.status == Done {", new: "if old.seq == ev.Seq || old.status == Done {",
		},
		{
			name: "a second contribution takes the place of the first",
			harm: "A worker with a mistaken plan trains on half its gradients, and the accounts do not add up.",
			file: "ps/apply.go", by: scripts,
			old: "if r.got[at*len(s.peers)+w].stored {", new: "if r.got[at*len(s.peers)+w].stored && ev.Seq == 0 {",
		},
		{
			name: "a step of weight 0 is carried out",
			harm: "A skipped step leaves marks: rows of tables that no step has trained.",
			file: "ps/apply.go", by: scripts,
			old: "if v.Weight > 0 {\n\t\t\ts.cells", new: "if v.Weight >= 0 {\n\t\t\ts.cells",
		},
		{
			name: "workers may give different verdicts on one step",
			harm: "Two workers disagree on whether a step counts and the server takes sides in silence.",
			file: "ps/apply.go", by: scripts,
			old: "case old.Weight != v.Weight:", new: "case old.Weight != v.Weight && v.Weight < 0:",
		},
		{
			name: "a pull is answered from the version before",
			harm: "Workers compute with stale parameters; training is asynchronous without saying so.",
			file: "ps/apply.go", by: scripts,
			old: "case ev.Step == s.version:\n\t\ts.answer", new: "case ev.Step >= s.version:\n\t\ts.answer",
		},
		{
			name: "parameters change while they are being sent",
			harm: "A worker gets half of one version and half of the next, under load.",
			file: "ps/apply.go", by: catcher{"ps", "TestStableView"},
			old: "\t\tcase owes:", new: "\t\tcase owes || b.Keys == nil:",
		},
		{
			name: "a lost worker is waited for",
			harm: "The job hangs after a crash until a deadline that names the wrong one.",
			file: "ps/apply.go", by: scripts,
			old: "if s.peers[w].lost && s.round(s.version).stored[w] < len(s.cells) {", new: "if s.peers[w].lost && s.round(s.version).stored[w] > len(s.cells) {",
		},
	}
}

func rowFaults() []fault {
	random := catcher{"ps", "TestRandomRuns"}
	return []fault{
		{
			name: "a row is born from its place on the shard, not its id",
			harm: "Initial values depend on the order of the data and the number of servers.",
			file: "ps/table.go", by: random,
			old: "graph.Fill(t.Init, t.Name, int(id)*t.dim, t.p[n:])", new: "graph.Fill(t.Init, t.Name, slot*t.dim, t.p[n:])",
		},
		{
			name: "a row's slots are born as zeros",
			harm: "Adagrad's initial accumulator is ignored for tables.",
			file: "ps/table.go", by: random,
			old: "t.slots[i][n+j] = T(s.Init)", new: "t.slots[i][n+j] = T(0 * s.Init)",
		},
		{
			name: "rows of one key are applied one by one",
			harm: "An id that two workers met is updated by one of them only.",
			file: "ps/table.go", by: random,
			old: "addTo(t.g[(m-1)*t.dim:m*t.dim], row)", new: "copy(t.g[(m-1)*t.dim:m*t.dim], row)",
		},
		{
			name: "an import leaves out the slots",
			harm: "Servers that go on from a checkpoint have lost their momentum.",
			file: "ps/export.go", by: random,
			old: "\t\tfor a := range 1 + len(st.Slots) {", new: "\t\tfor a := range 1 {",
		},
		{
			name: "an import takes rows of other stores",
			harm: "After a change of the number of servers rows exist twice, and one copy never learns.",
			file: "ps/table.go", by: random,
			old: "if StoreOf(id, t.stores) != t.store {", new: "if StoreOf(id, t.stores) < 0 {",
		},
		{
			name: "an import does not notice missing elements",
			harm: "Part of a layer starts anew in the middle of a run.",
			file: "ps/dense.go", by: catcher{"ps", "TestImportRefuses"},
			old: "case s.lo > at:", new: "case s.lo > at && s.hi < 0:",
		},
		{
			name: "the index of rows loses entries when it grows",
			harm: "Rows of big tables are forgotten and start anew.",
			file: "ps/index.go", by: catcher{"ps", "TestIndex"},
			old: "for i, slot := range slots {\n\t\tif slot != 0 {", new: "for i, slot := range slots {\n\t\tif slot > 1 {",
		},
	}
}

func clientFaults() []fault {
	train := catcher{"ps", "TestTrain"}
	return []fault{
		{
			name: "rows of several stores land in the order they came",
			harm: "Embeddings are mixed up as soon as there are two servers.",
			file: "ps/link.go", by: train,
			old: "copy(data[pick*row:(pick+1)*row], buf[j*row:])", new: "copy(data[j*row:(j+1)*row], buf[j*row+0*pick:])",
		},
		{
			name: "a push sends the first rows for those of the store",
			harm: "Gradients reach rows of other ids.",
			file: "ps/link.go", by: train,
			old: "copy(buf[j*row:(j+1)*row], data[pick*row:])", new: "copy(buf[j*row:(j+1)*row], data[j*row+0*pick:])",
		},
		{
			name: "the verdict goes to the first store only",
			harm: "With two servers, half of the model stops learning or the run hangs.",
			file: "ps/client.go", by: train,
			old: "for _, l := range c.links {\n\t\tl.verdict.Store(v)", new: "for _, l := range c.links[:1] {\n\t\tl.verdict.Store(v)",
		},
		{
			name: "the verdict on the last step is not delivered",
			harm: "The saved model lacks its last step.",
			file: "ps/link.go", by: catcher{"ps", "TestLastVerdictArrives"},
			old: "if v := l.verdict.Load(); v != nil {", new: "if v := l.verdict.Load(); v != nil && kind != requestBye && kind != requestFlush {",
		},
		{
			name: "a client numbers its pushes alike",
			harm: "From the second push on the server takes them for repetitions: the model stops learning, without an error.",
			file: "ps/link.go", by: catcher{"ps", "TestTrain"},
			old: "\tl.seq++\n", new: "\tl.seq = 1\n",
		},
		{
			name: "a snapshot may be of a version that the server has left",
			harm: "A checkpoint holds layers of different steps.",
			file: "ps/shard.go", by: catcher{"ps", "TestScripts"},
			old: "case EventSnapshot:\n\t\tif ev.Step != s.version {", new: "case EventSnapshot:\n\t\tif ev.Step > s.version {",
		},
	}
}

func wireFaults() []fault {
	frames := catcher{"transport/sock", "TestForbiddenFrames"}
	return []fault{
		{
			name: "a damaged header is believed",
			harm: "One flipped bit of a length and gradients are read as headers.",
			file: "wire/wire.go", by: catcher{"wire", "TestHeaderDamage"},
			old: "got != want {\n\t\treturn Header{}, fmt.Errorf(\"header", new: "got < 0*want {\n\t\treturn Header{}, fmt.Errorf(\"header",
		},
		{
			name: "a damaged payload is believed",
			harm: "A flipped bit on the way becomes a weight.",
			file: "transport/sock/read.go", by: frames,
			old: "if err := h.CheckPayload(sum); err != nil {", new: "if err := h.CheckPayload(h.Checksum + 0*sum); err != nil {",
		},
		{
			name: "frames of an older generation are taken",
			harm: "After a restart, gradients of the ranks before get into the new run.",
			file: "transport/sock/read.go", by: frames,
			old: "if h.Generation != p.e.cfg.Generation {", new: "if h.Generation > p.e.cfg.Generation {",
		},
		{
			name: "a message longer than its credit is taken",
			harm: "A peer can write past a buffer's end, or crash the rank.",
			file: "transport/sock/read.go", by: frames,
			old: "n > room {", new: "n > room+1<<20 {",
		},
		{
			name: "who listens does not look at the proof",
			harm: "Anybody who reaches the port can join the job and give it gradients.",
			file: "transport/sock/handshake.go", by: catcher{"transport/sock", "TestRefusals"},
			old: "if !wire.Proof(payload).Equal(", new: "if len(payload) == 0 && !wire.Proof(payload).Equal(",
		},
		{
			name: "who dials does not look at the proof",
			harm: "Whoever takes over an address gets the parameters.",
			file: "transport/sock/handshake.go", by: catcher{"transport/sock", "TestFalseListener"},
			old: "if !wire.Proof(answer).Equal(", new: "if len(answer) == 0 && !wire.Proof(answer).Equal(",
		},
		{
			name: "one proof holds for both sides",
			harm: "A stranger gets in by sending a rank's own proof back to it.",
			file: "wire/handshake.go", by: catcher{"wire", "TestProof"},
			old: "mac.Write([]byte(side))", new: "mac.Write([]byte(Dialer))",
		},
	}
}

func transportFaults() []fault {
	return []fault{
		{
			name: "a credit is given twice",
			harm: "The peer sends before there is room, and loses its connection.",
			file: "transport/sock/peer.go", by: catcher{"transport/sock", "TestSuite/tcp/Rendezvous"},
			old: "\treturn p.owe(h)\n", new: "\t_ = p.owe(h)\n\treturn p.owe(h)\n",
		},
		{
			name: "a send that gives up keeps its credit",
			harm: "After a timeout that one could have survived, the next send of the tag waits for ever.",
			file: "transport/sock/peer.go", by: catcher{"transport/sock", "TestCreditHandedOn"},
			old: "\tp.release(n)\n\treturn cause", new: "\treturn cause",
		},
		{
			name: "a peer that is gone leaves its receives waiting",
			harm: "Who waits for a rank that crashed waits until its deadline.",
			file: "transport/sock/peer.go", by: catcher{"transport/sock", "TestGoneEndsAllWaits"},
			old: "n.posted.Pop().Complete(0, p.e.errorOf(p.rank, \"receive from\", tag, err))", new: "n.posted.Pop()",
		},
		{
			name: "messages of one tag overtake each other",
			harm: "Chunks of a ring land in each other's places.",
			file: "transport/queue.go", by: catcher{"transport", "TestQueue"},
			old: "ring[i] = q.ring[(q.first+i)&(len(q.ring)-1)]", new: "ring[i] = q.ring[i]",
		},
		{
			name: "in memory, a send that gives up loses its receive",
			harm: "Tests of everything above prove less than they say: a message is gone where a network would keep it.",
			file: "transport/mem/link.go", by: catcher{"transport/mem", "TestCancelAsReceiveIsPosted"},
			old: "if l.forget(tag, s) {", new: "if l.forget(tag, s) || true {",
		},
		{
			name: "in memory, a rank that is paused goes on",
			harm: "Tests of slow and hanging ranks prove nothing.",
			file: "transport/mem/link.go", by: catcher{"transport/mem", "TestPause"},
			old: "for l.paused == 0 && n.posted.Len() > 0", new: "for n.posted.Len() > 0",
		},
	}
}
