#!/usr/bin/env python3
"""Writes into published.json how many parameters and tensors transformers gives each model.

The file holds the config.json of published models, as their authors give it: the key `config` of each.
The counts are those of the tensors that a checkpoint has: an expert has three. No memory is needed,
because the models are on torch's device `meta`.

Development only: pip install torch transformers."""
import copy
import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForCausalLM

PATH = pathlib.Path(__file__).resolve().parent / "published.json"

models = json.loads(PATH.read_text())
for name, model in models.items():
    keys = copy.deepcopy(model["config"])  # transformers adds to its rope_scaling
    keys.pop("quantization_config", None)  # the counts are those of the weights without scales
    keys.pop("auto_map", None)
    kind = keys.pop("model_type").replace("kimi_k2", "deepseek_v3")  # see ../model/make_fixtures.py
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **keys))
    held = dict(built.named_parameters()) | {n: b for n, b in built.named_buffers() if "correction_bias" in n}
    model["parameters"] = sum(p.numel() for p in held.values())
    # transformers holds the experts of a layer as two tensors
    model["tensors"] = sum(3 * p.shape[0] // 2 if ".experts." in n else 1 for n, p in held.items())
    print(name, model["parameters"], model["tensors"])
PATH.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(m)}" for n, m in models.items()) + "\n}\n")
