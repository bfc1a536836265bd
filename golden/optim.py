#!/usr/bin/env python3
"""Golden numbers for the update rules and schedules of package optim.

Pinned: torch 1.13.*, numpy 1.24.* (checked below; other versions are refused).

    python3 golden/optim.py            # writes golden/testdata/optim.json
    python3 golden/optim.py --check    # fails if the file is not what it would write

Where PyTorch has the rule, PyTorch computes it: its optimizer is given the mean
gradient, with a state of zeros from the start (so that its special first step of a
momentum buffer is none) and, by row, one optimizer for each row whose step counter
is set to the step of the run. FTRL-proximal and LAMB are written here in NumPy from
the papers' algorithms, without a look at the Go code's forms.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch

for module, want in ((torch, "1.13."), (np, "1.24.")):
    if not module.__version__.startswith(want):
        sys.exit(f"{module.__name__} {module.__version__}: these numbers are pinned to {want}*")

STEPS = 10
SPLIT = 7  # a parameter of 7 elements and one of 6; norms are of each
SIZE = 13
ROWS, DIM = 6, 3
KEEP = (0, 1, STEPS - 1)  # the steps after which results are written
DTYPES = {"f64": (np.float64, torch.float64), "f32": (np.float32, torch.float32)}

DEFAULTS = {
    "momentum": {"momentum": 0.9},
    "adagrad": {"eps": 1e-10},
    "rmsprop": {"decay": 0.99, "eps": 1e-8},
    "adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
    "adamw": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
    "lamb": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-6},
    "ftrl": {"beta": 1.0, "lr_power": -0.5},
}

RULES = {
    "sgd": {"kind": "sgd", "lr": 0.1},
    "sgd l2": {"kind": "sgd", "lr": 0.13, "l2": 0.05},
    "momentum": {"kind": "momentum", "lr": 0.1},
    "momentum l2": {"kind": "momentum", "lr": 0.07, "momentum": 0.8, "l2": 0.05},
    "momentum dampening": {"kind": "momentum", "lr": 0.07, "momentum": 0.8, "dampening": 0.3},
    "momentum decay": {"kind": "momentum", "lr": 0.07, "weight_decay": 0.2},
    "nesterov": {"kind": "momentum", "lr": 0.1, "nesterov": True},
    "nesterov all": {"kind": "momentum", "lr": 0.07, "momentum": 0.8, "nesterov": True, "l2": 0.05},
    "adagrad": {"kind": "adagrad", "lr": 0.3},
    "adagrad all": {"kind": "adagrad", "lr": 0.3, "lr_decay": 0.2, "eps": 1e-3, "initial_accumulator": 0.2, "l2": 0.05},
    "rmsprop": {"kind": "rmsprop", "lr": 0.02},
    "rmsprop l2": {"kind": "rmsprop", "lr": 0.02, "decay": 0.9, "eps": 1e-3, "l2": 0.05},
    "rmsprop centered": {"kind": "rmsprop", "lr": 0.02, "decay": 0.9, "eps": 1e-3, "centered": True},
    "rmsprop momentum": {"kind": "rmsprop", "lr": 0.02, "eps": 1e-3, "momentum": 0.8},
    "rmsprop all": {"kind": "rmsprop", "lr": 0.02, "decay": 0.9, "eps": 1e-3, "centered": True, "momentum": 0.8, "l2": 0.05},
    "adam": {"kind": "adam", "lr": 0.02},
    "adam l2": {"kind": "adam", "lr": 0.02, "beta1": 0.7, "beta2": 0.95, "eps": 1e-3, "l2": 0.05},
    "amsgrad": {"kind": "adam", "lr": 0.02, "amsgrad": True},
    "amsgrad all": {"kind": "adam", "lr": 0.02, "beta1": 0.7, "beta2": 0.6, "eps": 1e-3, "amsgrad": True, "l2": 0.05},
    "adamw": {"kind": "adamw", "lr": 0.02},
    "adamw decay": {"kind": "adamw", "lr": 0.02, "beta1": 0.7, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.3},
    "adamw amsgrad": {"kind": "adamw", "lr": 0.02, "beta1": 0.7, "beta2": 0.6, "eps": 1e-3, "amsgrad": True, "weight_decay": 0.3},
    "ftrl": {"kind": "ftrl", "lr": 0.3},
    "ftrl l1 l2": {"kind": "ftrl", "lr": 0.3, "l1": 0.4, "l2": 0.1},
    "ftrl all": {"kind": "ftrl", "lr": 0.3, "l1": 0.4, "l2": 0.1, "beta": 0.5, "lr_power": -0.7, "initial_accumulator": 0.2},
    "lamb": {"kind": "lamb", "lr": 0.02},
    "lamb decay": {"kind": "lamb", "lr": 0.02, "beta1": 0.7, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1},
    "clip value": {"kind": "sgd", "lr": 0.1, "l2": 0.05, "clip_value": 0.4},
    "clip value adam": {"kind": "adam", "lr": 0.02, "eps": 1e-3, "l2": 0.05, "clip_value": 0.4},
    "clip value ftrl": {"kind": "ftrl", "lr": 0.3, "l1": 0.1, "clip_value": 0.4},
    "clip norm": {"kind": "sgd", "lr": 0.1, "l2": 0.05, "clip_norm": 2.0},
    "clip norm adagrad": {"kind": "adagrad", "lr": 0.1, "clip_norm": 2.0},
    "scheduled": {"kind": "momentum", "lr": 0.1, "schedule": {"kind": "cosine", "warmup": 3, "steps": 9, "min_lr": 0.01}},
    "scheduled adamw": {"kind": "adamw", "lr": 0.05, "schedule": {"kind": "step", "warmup": 2, "every": 3, "factor": 0.5}},
}

BY_ROW = ("sgd l2", "momentum l2", "momentum decay", "nesterov all", "adagrad all", "rmsprop all", "adam l2", "amsgrad all",
          "adamw amsgrad", "ftrl l1 l2", "ftrl all", "lamb decay", "clip value adam", "scheduled adamw")

SCHEDULES = [
    {},
    {"kind": "constant", "warmup": 4},
    {"kind": "step", "every": 7, "factor": 0.3},
    {"kind": "step", "warmup": 5, "every": 6, "factor": 0.5},
    {"kind": "cosine", "steps": 25},
    {"kind": "cosine", "warmup": 6, "steps": 30, "min_lr": 0.02},
    {"kind": "inverse_sqrt"},
    {"kind": "inverse_sqrt", "warmup": 8},
]


def rates(lr, schedule, steps):
    """The rate of each step, by PyTorch's schedulers; the inverse root by hand."""
    warmup, kind = schedule.get("warmup", 0), schedule.get("kind", "constant")

    def run(make, n):
        opt = torch.optim.SGD([torch.zeros(1)], lr=lr)
        scheduler = make(opt)
        out = []
        for _ in range(n):
            out.append(opt.param_groups[0]["lr"])
            opt.step()
            scheduler.step()
        return out

    lr_scheduler = torch.optim.lr_scheduler
    rising = run(lambda o: lr_scheduler.LinearLR(o, 1 / warmup, 1.0, warmup - 1), warmup) if warmup else []
    rest = max(steps - warmup, 0)
    if kind == "constant":
        course = [lr] * rest
    elif kind == "step":
        course = run(lambda o: lr_scheduler.StepLR(o, schedule["every"], schedule["factor"]), rest)
    elif kind == "cosine":
        fall, low = schedule["steps"] - warmup, schedule.get("min_lr", 0.0)
        course = run(lambda o: lr_scheduler.CosineAnnealingLR(o, fall, low), min(rest, fall + 1))
        course += [low] * (rest - len(course))  # PyTorch would rise again
    else:
        course = [lr * math.sqrt(max(warmup, 1) / (t + 1)) for t in range(warmup, steps)]
    return (rising + course)[:steps]


class Torch:
    """A rule of PyTorch over tensors of its own, with a state of zeros."""

    def __init__(self, rule, params, dtype):
        self.rule = r = {**DEFAULTS.get(rule["kind"], {}), **rule}
        self.decay = 0.0
        self.params = [torch.tensor(p, dtype=dtype) for p in params]
        k, lr, l2 = r["kind"], r["lr"], r.get("l2", 0.0)
        if k in ("sgd", "momentum"):
            self.decay = r.get("weight_decay", 0.0)
            self.opt = torch.optim.SGD(self.params, lr=lr, weight_decay=l2, momentum=r.get("momentum", 0.0),
                                       dampening=r.get("dampening", 0.0), nesterov=r.get("nesterov", False), foreach=False)
            slots = ["momentum_buffer"] if k == "momentum" else []
        elif k == "adagrad":
            self.opt = torch.optim.Adagrad(self.params, lr=lr, lr_decay=r.get("lr_decay", 0.0), weight_decay=l2,
                                           initial_accumulator_value=r.get("initial_accumulator", 0.0), eps=r["eps"], foreach=False)
            slots = ["sum"]
        elif k == "rmsprop":
            self.opt = torch.optim.RMSprop(self.params, lr=lr, alpha=r["decay"], eps=r["eps"], weight_decay=l2,
                                           momentum=r.get("momentum", 0.0), centered=r.get("centered", False), foreach=False)
            slots = ["square_avg"] + ["grad_avg"] * r.get("centered", False) + ["momentum_buffer"] * ("momentum" in r)
        else:
            make = torch.optim.Adam if k == "adam" else torch.optim.AdamW
            self.opt = make(self.params, lr=lr, betas=(r["beta1"], r["beta2"]), eps=r["eps"],
                            weight_decay=l2 if k == "adam" else r["weight_decay"], amsgrad=r.get("amsgrad", False), foreach=False)
            slots = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * r.get("amsgrad", False)
        self.slots = slots
        for p in self.params:
            for s in slots:
                if s not in self.opt.state[p]:
                    self.opt.state[p][s] = torch.zeros_like(p)

    def step(self, t, rate, grads):
        self.opt.param_groups[0]["lr"] = rate
        for p, g in zip(self.params, grads):
            p.grad = torch.tensor(g, dtype=p.dtype)
            state = self.opt.state[p]
            if self.rule["kind"] == "rmsprop":
                state["step"] = t
            elif self.rule["kind"] not in ("sgd", "momentum"):
                state["step"] = torch.tensor(float(t))
            if self.decay:
                p.mul_(1 - rate * self.decay)
        self.opt.step()

    def results(self):
        return ([p.tolist() for p in self.params],
                [[self.opt.state[p][s].tolist() for p in self.params] for s in self.slots])


class FTRL:
    """Algorithm 1 of McMahan et al. 2013: w follows from z and n when it is needed."""

    def __init__(self, rule, params, dtype):
        r = {**DEFAULTS["ftrl"], **rule}
        self.alpha, self.beta, self.l1, self.l2 = r["lr"], r["beta"], r.get("l1", 0.0), r.get("l2", 0.0)
        self.power, self.dtype = -r["lr_power"], dtype
        self.z = [np.zeros(len(p)) for p in params]
        self.n = [np.full(len(p), float(dtype(r.get("initial_accumulator", 0.0)))) for p in params]

    def weights(self, z, n):
        shrunk = -(z - np.sign(z) * self.l1) / ((self.beta + n**self.power) / self.alpha + self.l2)
        return np.where(np.abs(z) <= self.l1, 0.0, shrunk)

    def step(self, t, rate, grads):
        for i, g in enumerate(grads):
            g, n = np.asarray(g, dtype=np.float64), self.n[i]
            sigma = ((n + g * g) ** self.power - n**self.power) / self.alpha
            self.z[i] = self.z[i] + g - sigma * self.weights(self.z[i], n)
            self.n[i] = n + g * g

    def results(self):
        w = [self.weights(z, n) for z, n in zip(self.z, self.n)]
        return [x.tolist() for x in w], [[x.tolist() for x in self.z], [x.tolist() for x in self.n]]


class LAMB:
    """Algorithm 2 of You et al. 2020 with the identity for phi."""

    def __init__(self, rule, params, dtype):
        self.r = {**DEFAULTS["lamb"], **rule}
        self.x = [np.array(p, dtype=np.float64) for p in params]
        self.m = [np.zeros(len(p)) for p in params]
        self.v = [np.zeros(len(p)) for p in params]

    def step(self, t, rate, grads):
        r = self.r
        for i, g in enumerate(grads):
            g = np.asarray(g, dtype=np.float64)
            self.m[i] = r["beta1"] * self.m[i] + (1 - r["beta1"]) * g
            self.v[i] = r["beta2"] * self.v[i] + (1 - r["beta2"]) * g * g
            m, v = self.m[i] / (1 - r["beta1"] ** (t + 1)), self.v[i] / (1 - r["beta2"] ** (t + 1))
            step = m / (np.sqrt(v) + r["eps"]) + r.get("weight_decay", 0.0) * self.x[i]
            long, wide = np.linalg.norm(self.x[i]), np.linalg.norm(step)
            self.x[i] = self.x[i] - rate * (long / wide if long > 0 and wide > 0 else 1.0) * step

    def results(self):
        return [x.tolist() for x in self.x], [[x.tolist() for x in self.m], [x.tolist() for x in self.v]]


def short(name, results):
    """Nine digits tell all float32 apart."""
    if name == "f64":
        return results
    return {k: [[float(f"{x:.9g}") for x in v] for v in lists] for k, lists in results.items()}


def make(rule, params, name):
    numpy_type, torch_type = DTYPES[name]
    if rule["kind"] == "ftrl":
        return FTRL(rule, params, numpy_type)
    if rule["kind"] == "lamb":
        return LAMB(rule, params, numpy_type)
    return Torch(rule, params, torch_type)


def clipped(rule, grads):
    """PyTorch's clipping; the norm exactly, to which PyTorch adds 1e-6."""
    tensors = [torch.zeros(len(g), dtype=torch.float64, requires_grad=True) for g in grads]
    for x, g in zip(tensors, grads):
        x.grad = torch.tensor(g, dtype=torch.float64)
    if "clip_value" in rule:
        torch.nn.utils.clip_grad_value_(tensors, rule["clip_value"])
    if "clip_norm" in rule:
        norm = torch.nn.utils.clip_grad_norm_(tensors, rule["clip_norm"]).item()
        exact = [np.asarray(g, dtype=np.float64) * min(1.0, rule["clip_norm"] / norm) for g in grads]
        for x, e in zip(tensors, exact):
            assert np.allclose(x.grad.numpy(), e, rtol=1e-6, atol=0)
        return exact
    return [x.grad.numpy() for x in tensors]


def dense(rule, name, start, sums, totals):
    if rule["kind"] == "ftrl":
        start = np.zeros(SIZE)
    cut = lambda v: [v[:SPLIT], v[SPLIT:]]
    m = make(rule, cut(start), name)
    rate = rates(rule["lr"], rule.get("schedule", {}), STEPS)
    after = []
    for t in range(STEPS):
        m.step(t, rate[t], clipped(rule, cut(sums[t] / totals[t])))
        if t in KEEP:
            after.append(sum(m.results()[0], []))
    return short(name, {"params": after, "slots": [sum(s, []) for s in m.results()[1]]})


def by_row(rule, name, start, sums, totals, touched):
    """One optimizer a row: it steps only where its row is touched. LAMB has one
    that is handed the touched rows as one tensor."""
    if rule["kind"] == "ftrl":
        start = np.zeros((ROWS, DIM))
    rate = rates(rule["lr"], rule.get("schedule", {}), STEPS)
    rows = [make(rule, [start[i]], name) for i in range(ROWS)]
    after = []
    for t in range(STEPS):
        grads = {i: clipped(rule, [sums[t][k] / totals[t]])[0] for k, i in enumerate(touched[t])}
        if rule["kind"] == "lamb":
            whole = make(rule, [np.concatenate([rows[i].x[0] for i in touched[t]])], name)
            whole.m = [np.concatenate([rows[i].m[0] for i in touched[t]])]
            whole.v = [np.concatenate([rows[i].v[0] for i in touched[t]])]
            whole.step(t, rate[t], [np.concatenate([grads[i] for i in touched[t]])])
            for k, i in enumerate(touched[t]):
                part = slice(k * DIM, (k + 1) * DIM)
                rows[i].x, rows[i].m, rows[i].v = [whole.x[0][part]], [whole.m[0][part]], [whole.v[0][part]]
        else:
            for i, g in grads.items():
                rows[i].step(t, rate[t], [g])
        if t in KEEP:
            after.append(sum((r.results()[0][0] for r in rows), []))
    slots = [r.results()[1] for r in rows]
    return short(name, {"params": after, "slots": [sum((s[k][0] for s in slots), []) for k in range(len(slots[0]))]})


def main():
    rng = np.random.default_rng(7)
    single = lambda v: np.asarray(v, dtype=np.float32).astype(np.float64)  # exact in both types
    start = single(rng.normal(size=SIZE))
    totals = single(rng.uniform(1, 9, size=STEPS))
    sums = single(rng.normal(size=(STEPS, SIZE)) * rng.uniform(0.3, 2, size=SIZE) * totals[:, None])
    sums[:, 3] = 0  # nothing ever pulls at it
    sums[4:, 10] = 0
    table = single(rng.normal(size=(ROWS, DIM)))
    touched = [sorted(rng.choice(ROWS - 1, size=int(rng.integers(1, ROWS - 1)), replace=False).tolist()) for _ in range(STEPS)]
    row_sums = [single(rng.normal(size=(len(at), DIM)) * totals[t]) for t, at in enumerate(touched)]
    out = {
        "made_by": f"golden/optim.py, torch {torch.__version__}, numpy {np.__version__}",
        "split": SPLIT, "rows": ROWS, "dim": DIM, "keep": list(KEEP),
        "start": start.tolist(), "totals": totals.tolist(), "sums": sums.tolist(),
        "table": table.ravel().tolist(), "touched": touched, "row_sums": [s.ravel().tolist() for s in row_sums],
        "dense": [{"name": n, "dtype": d, "rule": r, **dense(r, d, start, sums, totals)} for n, r in RULES.items() for d in DTYPES],
        "by_row": [{"name": n, "dtype": d, "rule": RULES[n], **by_row(RULES[n], d, table, row_sums, totals, touched)}
                   for n in BY_ROW for d in DTYPES],
        "rates": [{"lr": 0.1, "schedule": s, "rate": rates(0.1, s, 40)} for s in SCHEDULES],
    }
    lines = json.dumps(out, indent=None).replace(', {"name"', ',\n{"name"').replace(', "by_row"', ',\n"by_row"') + "\n"
    path = Path(__file__).parent / "testdata" / "optim.json"
    if "--check" in sys.argv:
        if path.read_text() != lines:
            sys.exit(f"{path} is not what this script writes")
    else:
        path.write_text(lines)


main()
