#!/usr/bin/env python3
"""Writes a run's state as a Hugging Face checkpoint: BF16, in files of less than 8 MB.

    export.py RUN/state.pt TOKENIZER_FOLDER OUT
"""
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file

import model as model_module

FILE_BYTES = 7_500_000


def tensors(state):
    """Yields (name, tensor) with the names of DeepSeek-V3's checkpoints."""
    for name, x in state.items():
        full = name if name.startswith("lm_head") else "model." + name
        stem, _, last = full.rpartition(".")
        if x.dim() == 3:
            for e in range(len(x)):
                yield f"{stem}.experts.{e}.{last}.weight", x[e]
        elif last == "bias":
            yield f"{stem}.gate.e_score_correction_bias", x
        else:
            yield full, x


def config(shape):
    return vars(shape) | {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_key_value_heads":
        shape.num_attention_heads, "hidden_act": "silu", "attention_bias": False, "moe_layer_freq": 1, "n_group": 1,
        "topk_group": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True,
        "rope_scaling": None, "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1,
        "torch_dtype": "bfloat16"}


def shards(named):
    """Divides the names, in order, into lists that fit into one file each."""
    out, used = [[]], 0
    for name, x in named.items():
        n = x.numel() * x.element_size()
        if used + n > FILE_BYTES and out[-1]:
            out.append([])
            used = 0
        out[-1].append(name)
        used += n
    return out


def write_json(path, what):
    path.write_text(json.dumps(what, indent=1) + "\n")


def main(state_path, tokenizer, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    state = torch.load(state_path, map_location="cpu", weights_only=True)
    shape = model_module.SHAPES[state["arguments"]["shape"]]
    named = {n: x.to(torch.float32 if n.endswith("correction_bias") else torch.bfloat16).contiguous().clone()
             for n, x in sorted(tensors(state["model"]))}
    parts, where = shards(named), {}
    for i, names in enumerate(parts):
        file = f"model-{i + 1:05}-of-{len(parts):05}.safetensors"
        save_file({n: named[n] for n in names}, out / file, {"format": "pt"})
        where |= dict.fromkeys(names, file)
    total = sum(x.numel() * x.element_size() for x in named.values())
    write_json(out / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})
    write_json(out / "config.json", config(shape))
    write_json(out / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1, "do_sample": True,
                                                "temperature": 1.0, "top_p": 0.95})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(tokenizer) / name, out / name)
    print(f"{out}: {sum(x.numel() for x in named.values())} parameters, {total} bytes, {len(parts)} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
