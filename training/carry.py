#!/usr/bin/env python3
"""Packs a run's state into small files for transport: the upper 24 bits of every parameter, no
momentum.

    carry.py pack   RUN/state.pt PREFIX     writes PREFIX.0, PREFIX.1, ...
    carry.py unpack PREFIX RUN/state.pt     the run can continue from there, with zero momentum
"""
import io
import pathlib
import sys

import numpy as np
import torch

PART = 15 << 20


def pack(state_path, prefix):
    state = torch.load(state_path, map_location="cpu", weights_only=True)
    model, state["optimizers"] = state["model"], []
    state["model"] = {n: list(x.shape) for n, x in model.items()}
    head = io.BytesIO()
    torch.save(state, head)
    numbers = np.concatenate([x.float().numpy().ravel() for x in model.values()])
    upper = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4)[:, 1:]).tobytes()
    whole = len(head.getvalue()).to_bytes(8, "little") + head.getvalue() + upper
    for i in range(0, len(whole), PART):
        pathlib.Path(f"{prefix}.{i // PART}").write_bytes(whole[i:i + PART])


def unpack(prefix, state_path):
    first = pathlib.Path(prefix)
    parts = sorted(first.parent.glob(first.name + ".[0-9]"))
    whole = b"".join(p.read_bytes() for p in parts)
    n = 8 + int.from_bytes(whole[:8], "little")
    state = torch.load(io.BytesIO(whole[8:n]), weights_only=True)
    upper = np.frombuffer(whole[n:], np.uint8).reshape(-1, 3)
    numbers = np.zeros((len(upper), 4), np.uint8)
    numbers[:, 1:] = upper
    numbers, at = numbers.view(np.float32).ravel(), 0
    for name, shape in state["model"].items():
        size = int(np.prod(shape))
        state["model"][name] = torch.from_numpy(numbers[at:at + size].reshape(shape).copy())
        at += size
    pathlib.Path(state_path).parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, state_path)


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
