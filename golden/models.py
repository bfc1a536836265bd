#!/usr/bin/env python3
"""Golden numbers for the models of package model: ten losses of each.

Pinned: torch 1.13.*, numpy 1.24.* (checked below; other versions are refused).

    python3 golden/models.py            # writes golden/testdata/models.json
    python3 golden/models.py --check    # fails if the file is not what it would write

Every model is written here in PyTorch from its paper, without a look at the Go
code's forms: a factorisation machine sums over pairs, attention masks. One thread,
float64. A loss is the mean over the batch (of gpt: over the tokens) before the
step; every step sees the same batch.

Batch and initial values are not in the file. Both sides compute them, from the
name of a column or parameter and the number i of an element in it, row by row:

    x = (i*2654435761 + crc32(name)) mod 2^32
    x = x xor (x >> 15);  x = x*2246822519 mod 2^32;  bits = x xor (x >> 13)
    unit = (bits mod 2049 - 1024) / 1024           exact in float32
    id   = bits mod dim

A parameter is unit/4, a gain 1 + unit/4, a dense column unit. A ragged column has
the ids of its name and weight 1 each; where the number of entries varies, row r has
r mod 4 of them, with the weights unit of name.weights. A label is the id of "label"
among the classes, 2 for one logit; for a value it is unit, for a text the tokens one
further, the last being the id number rows*context of the tokens.
"""

import json
import math
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

for module, want in ((torch, "1.13."), (np, "1.24.")):
    if not module.__version__.startswith(want):
        sys.exit(f"{module.__name__} {module.__version__}: these numbers are pinned to {want}*")

torch.set_num_threads(1)
STEPS, ROWS = 10, 12


def bits(name, n):
    k, m = zlib.crc32(name.encode()), 0xFFFFFFFF
    out = []
    for i in range(n):
        x = (i * 2654435761 + k) & m
        x ^= x >> 15
        x = x * 2246822519 & m
        out.append(x ^ x >> 13)
    return out


def unit(name, *shape):
    return torch.tensor([(x % 2049 - 1024) / 1024 for x in bits(name, math.prod(shape))], dtype=torch.float64).reshape(shape)


def ids(name, dim, *shape):
    return torch.tensor([x % dim for x in bits(name, math.prod(shape))]).reshape(shape)


def parameter(name, shape):
    base = 1.0 if name.endswith("gain") else 0.0
    return (base + unit(name, *shape) / 4).requires_grad_()


def ragged(name, dim):
    """Rows of (ids, weights) whose number varies."""
    counts = [r % 4 for r in range(ROWS)]
    all_ids, weights, at, rows = ids(name, dim, sum(counts)), unit(name + ".weights", sum(counts)), 0, []
    for n in counts:
        rows.append((all_ids[at : at + n], weights[at : at + n]))
        at += n
    return rows


def dense(name, dim):
    return {"name": name, "kind": "dense", "dim": dim}


def sparse(name, dim, per_row=0):
    return {"name": name, "kind": "ragged", "dim": dim, "per_row": per_row}


def network(p, x, prefix="", n=0):
    """Fully connected layers, of which the last is linear."""
    n = n or max(int(k[len(prefix) + 1 :]) for k in p if k.startswith(prefix + "w") and k[len(prefix) + 1 :].isdigit())
    for i in range(1, n + 1):
        x = F.linear(x, p[f"{prefix}w{i}"].t(), p[f"{prefix}b{i}"])
        x = F.relu(x) if i < n else x
    return x


def shapes(widths, prefix=""):
    out = {}
    for i, (a, b) in enumerate(zip(widths, widths[1:]), 1):
        out[f"{prefix}w{i}"], out[f"{prefix}b{i}"] = [a, b], [b]
    return out


def bags(p, name, rows):
    return torch.stack([(p[name][i] * w[:, None]).sum(0) for i, w in rows])


def binary(z):
    return F.binary_cross_entropy_with_logits(z.reshape(-1), ids("label", 2, ROWS).double())


def classes(z):
    return F.cross_entropy(z, ids("label", z.shape[1], ROWS))


def logistic(p):
    return binary(bags(p, "w", ragged("x", 9)) + p["b"])


def softmax(p):
    return classes(F.linear(unit("x", ROWS, 7), p["w"].t(), p["b"]))


def linear(p):
    return F.mse_loss((unit("x", ROWS, 7) @ p["w"] + p["b"]).reshape(-1), unit("label", ROWS)) / 2


def mlp(p):
    return classes(network(p, unit("x", ROWS, 7)))


def cnn(p):
    x = unit("x", ROWS, 60).reshape(ROWS, 2, 5, 6)
    for i in (1, 2):
        x = F.max_pool2d(F.relu(F.conv2d(x, p[f"conv{i}.w"], p[f"conv{i}.b"].reshape(-1), padding=1)), 2)
    return classes(network(p, x.reshape(ROWS, -1)))


def fm(p):
    z = []
    for i, x in ragged("x", 9):
        v = p["embed"][i] * x[:, None]
        pairs = sum(((v[a] * v[b]).sum() for b in range(len(i)) for a in range(b)), torch.zeros((), dtype=torch.float64))
        z.append((p["w"][i, 0] * x).sum() + pairs)
    return binary(torch.stack(z) + p["b"])


def wide_and_deep(p):
    num, cat = unit("num", ROWS, 5), ids("cat", 31, ROWS, 4)
    v = F.embedding(cat, p["embed"])
    z = network(p, torch.cat([num, v.reshape(ROWS, -1)], 1))[:, 0]
    return z + F.embedding(cat, p["wide"]).sum((1, 2)) + (num @ p["linear"])[:, 0], v


def ctr(p):
    return binary(wide_and_deep(p)[0])


def deepfm(p):
    z, v = wide_and_deep(p)
    return binary(z + sum((v[:, a] * v[:, b]).sum(1) for b in range(4) for a in range(b)))


def dlrm(p):
    b = F.relu(network(p, unit("num", ROWS, 5), "bottom."))
    v = torch.cat([b[:, None], F.embedding(ids("cat", 31, ROWS, 4), p["embed"])], 1)
    i = torch.triu_indices(5, 5, 1)
    z = torch.bmm(v, v.transpose(1, 2))[:, i[0], i[1]]
    return binary(network(p, torch.cat([b, z], 1)))


VOCABULARY, CONTEXT, WIDTH, HEADS, BLOCKS = 11, 6, 8, 2, 2


def gpt(p):
    stream = ids("tokens", VOCABULARY, ROWS * CONTEXT + 1)
    x = F.embedding(stream[:-1].reshape(ROWS, CONTEXT), p["embed"]) + p["position"]
    mask = torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), 1)
    project = lambda h, name: F.linear(h, p[name + "w"].t(), p[name + "b"])
    norm = lambda h, name: F.layer_norm(h, (WIDTH,), p[name + "gain"], p[name + "bias"])
    for b in range(1, BLOCKS + 1):
        name = f"block{b}."
        h = norm(x, name + "norm1.")
        q, k, v = (project(h, name + part).view(ROWS, CONTEXT, HEADS, -1).transpose(1, 2) for part in ("q.", "k.", "v."))
        a = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(mask, -math.inf).softmax(-1) @ v
        x = x + project(a.transpose(1, 2).reshape(ROWS, CONTEXT, WIDTH), name + "o.")
        x = x + project(F.gelu(project(norm(x, name + "norm2."), name + "up.")), name + "down.")
    z = project(norm(x, "norm."), "out.")
    return F.cross_entropy(z.reshape(-1, VOCABULARY), stream[1:])


def gpt_shapes():
    d, out = WIDTH, {"embed": [VOCABULARY, WIDTH], "position": [CONTEXT, WIDTH], "norm.gain": [WIDTH], "norm.bias": [WIDTH]}
    layers = {"out.": (d, VOCABULARY)}
    for b in range(1, BLOCKS + 1):
        for n in ("norm1.", "norm2."):
            out[f"block{b}.{n}gain"], out[f"block{b}.{n}bias"] = [d], [d]
        layers.update({f"block{b}.{n}.": (d, d) for n in "qkvo"})
        layers.update({f"block{b}.up.": (d, 4 * d), f"block{b}.down.": (4 * d, d)})
    for name, (i, o) in layers.items():
        out[name + "w"], out[name + "b"] = [i, o], [o]
    return out


SGD = {"kind": "sgd", "lr": 0.3}
CLICKS = [dense("num", 5), sparse("cat", 31, 4)]
TABLES = {"embed": [31, 3], "wide": [31, 1], "linear": [5, 1]}
TOKENS = [sparse("tokens", VOCABULARY, CONTEXT)]
MODELS = [
    ("logistic", logistic, SGD, {"kind": "logistic"}, [sparse("x", 9)], {"w": [9, 1], "b": [1]}),
    ("logistic by row", logistic, SGD, {"kind": "logistic", "table": True}, [sparse("x", 9)], {"w": [9, 1], "b": [1]}),
    ("softmax", softmax, SGD, {"kind": "softmax", "classes": 3}, [dense("x", 7)], {"w": [7, 3], "b": [3]}),
    ("linear", linear, SGD, {"kind": "linear"}, [dense("x", 7)], {"w": [7, 1], "b": [1]}),
    ("mlp", mlp, SGD, {"kind": "mlp", "hidden": [6, 5], "classes": 3}, [dense("x", 7)], shapes([7, 6, 5, 3])),
    ("cnn", cnn, SGD, {"kind": "cnn", "image": [2, 5, 6], "filters": [3, 4], "hidden": [5], "classes": 3}, [dense("x", 60)],
     {"conv1.w": [3, 2, 3, 3], "conv1.b": [3, 1, 1], "conv2.w": [4, 3, 3, 3], "conv2.b": [4, 1, 1], **shapes([4, 5, 3])}),
    ("fm", fm, SGD, {"kind": "fm", "dim": 3}, [sparse("x", 9)], {"w": [9, 1], "embed": [9, 3], "b": [1]}),
    ("ctr", ctr, {"kind": "adagrad", "lr": 0.1, "initial_accumulator": 0.1}, {"kind": "ctr", "hidden": [6], "dim": 3}, CLICKS,
     {**TABLES, **shapes([17, 6, 1])}),
    ("deepfm", deepfm, SGD, {"kind": "deepfm", "hidden": [6], "dim": 3}, CLICKS, {**TABLES, **shapes([17, 6, 1])}),
    ("dlrm", dlrm, SGD, {"kind": "dlrm", "bottom": [4], "hidden": [6, 5], "dim": 3}, CLICKS,
     {"embed": [31, 3], **shapes([5, 4, 3], "bottom."), **shapes([13, 6, 5, 1])}),
    ("gpt", gpt, SGD, {"kind": "gpt", "dim": WIDTH, "layers": BLOCKS, "heads": HEADS}, TOKENS, gpt_shapes()),
    ("gpt adamw", gpt, {"kind": "adamw", "lr": 0.01, "eps": 1e-3}, {"kind": "gpt", "dim": WIDTH, "layers": BLOCKS, "heads": HEADS},
     TOKENS, gpt_shapes()),
]


def optimizer(rule, params):
    if rule["kind"] == "sgd":
        return torch.optim.SGD(params, lr=rule["lr"], foreach=False)
    if rule["kind"] == "adagrad":
        return torch.optim.Adagrad(params, lr=rule["lr"], initial_accumulator_value=rule["initial_accumulator"], foreach=False)
    return torch.optim.AdamW(params, lr=rule["lr"], eps=rule["eps"], weight_decay=0.01, foreach=False)


def losses(loss, rule, sizes):
    p = {name: parameter(name, shape) for name, shape in sizes.items()}
    opt, out = optimizer(rule, list(p.values())), []
    for _ in range(STEPS):
        opt.zero_grad()
        mean = loss(p)
        mean.backward()
        assert all(x.grad is not None for x in p.values())
        opt.step()
        out.append(mean.item())
    return out


def main():
    models = [{"name": name, "model": model, "optimizer": rule, "columns": columns, "params": sizes, "losses": losses(loss, rule, sizes)}
              for name, loss, rule, model, columns, sizes in MODELS]
    out = {"made_by": f"golden/models.py, torch {torch.__version__}, float64", "rows": ROWS, "models": models}
    lines = json.dumps(out).replace('{"name": "', '\n{"name": "').replace(', "losses"', ',\n"losses"') + "\n"
    path = Path(__file__).parent / "testdata" / "models.json"
    if "--check" in sys.argv:
        if path.read_text() != lines:
            sys.exit(f"{path} is not what this script writes")
    else:
        path.write_text(lines)


main()
