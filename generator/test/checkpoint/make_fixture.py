#!/usr/bin/env python3
"""Writes a checkpoint of two shards with the library `safetensors`, and the numbers it holds as numpy and
ml_dtypes read them (expected.json).

Development only: pip install safetensors ml_dtypes."""
import json
import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32, "F8_E4M3": ml_dtypes.float8_e4m3fn}
BLOCK = 4

rng = np.random.default_rng(1)


def numbers(dtype, shape):
    """Draws random bit patterns of the dtype. NaN and infinities become 0.5."""
    kind = KINDS[dtype]
    bits = rng.integers(0, 256, size=(*shape, np.dtype(kind).itemsize), dtype=np.uint8)
    x = bits.view(kind).reshape(shape)
    return np.where(np.isfinite(x.astype(np.float32)), x, kind(0.5)).astype(kind)


a = {"bf16": numbers("BF16", (3, 5)), "f16": numbers("F16", (7, 9)), "vector": numbers("F32", (6,))}
fp8 = numbers("F8_E4M3", (10, 7))
scales = np.exp(rng.normal(size=(3, 2))).astype(np.float32)
b = {"fp8.weight": fp8, "fp8.weight_scale_inv": scales, "empty": numbers("BF16", (0, 4))}

shards = {"model-00001-of-00002.safetensors": a, "model-00002-of-00002.safetensors": b}
expected = {}
for name, tensors in shards.items():
    save_file(tensors, HERE / name, {"format": "pt"})
    for k, x in tensors.items():
        expected[k] = x.astype(np.float32)
for i in range(10):
    for j in range(7):
        expected["fp8.weight"][i, j] = np.float32(fp8[i, j].astype(np.float32) * scales[i // BLOCK, j // BLOCK])
index = {"metadata": {"total_size": 0}, "weight_map": {k: n for n, t in shards.items() for k in t}}
(HERE / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
(HERE / "expected.json").write_text(json.dumps({k: {"shape": list(x.shape), "values": [float(v) for v in x.ravel()]}
                                                for k, x in expected.items()}) + "\n")
