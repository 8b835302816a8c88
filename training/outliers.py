#!/usr/bin/env python3
"""Gives a model the RoPE outliers of large models: some pairs of the shared RoPE key reach 1e3.

    outliers.py CHECKPOINT OUT [PAIRS [LARGEST]]        default: 3 pairs that reach 1000

A pair of the key is multiplied by a power of two, and the same pair of every head's query is
divided by it. Rotation acts within pairs, and powers of two are exact. So every score stays the
same, and with BF16 or FP32 keys every logit, too. Only the range of the cached numbers changes. A
format that stores RoPE in e4m3 with scale 1 ends at 448, and loses as much as it would with a large
model.
"""
import json
import math
import pathlib
import shutil
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

SPREAD = 4.0  # a normal number is rarely beyond four standard deviations


def stretch(tensors, config, layer, pairs, largest):
    """Scales the pairs with the largest variance of keys."""
    prefix = f"model.layers.{layer}."
    key = tensors[prefix + "self_attn.kv_a_proj_with_mqa.weight"]
    query = tensors[prefix + "self_attn.q_b_proj.weight"]
    norm = tensors[prefix + "input_layernorm.weight"].float()
    rank, rope, nope = (config[n] for n in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"))
    spread = (key[rank:].float() * norm).norm(dim=1).view(-1, 2).amax(1)
    heads = query.view(-1, nope + rope, query.shape[1])
    for pair in spread.topk(pairs).indices.tolist():
        factor = 2.0 ** round(math.log2(largest / (SPREAD * spread[pair].item())))
        key[rank + 2 * pair:rank + 2 * pair + 2] *= factor
        heads[:, nope + 2 * pair:nope + 2 * pair + 2] /= factor
        print(f"layer {layer}: pair {pair} times {factor:g}")


def main(source, out, pairs="3", largest="1000"):
    source, out = pathlib.Path(source), pathlib.Path(out)
    shutil.copytree(source, out)
    config = json.loads((source / "config.json").read_text())
    files = sorted(source.glob("*.safetensors"))
    tensors, home = {}, {}
    for file in files:
        with safe_open(file, "pt") as f:
            for name in f.keys():
                tensors[name], home[name] = f.get_tensor(name), file.name
    for layer in range(config["num_hidden_layers"]):
        stretch(tensors, config, layer, int(pairs), float(largest))
    for file in files:
        save_file({n: t for n, t in tensors.items() if home[n] == file.name}, out / file.name, {"format": "pt"})


if __name__ == "__main__":
    main(*sys.argv[1:])
