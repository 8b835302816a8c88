#!/usr/bin/env python3
"""Writes what test_model.c compares with: tiny checkpoints of every architecture, run by transformers.

    python3 make_fixtures.py [NAME...]     (needs torch and transformers; run from this folder)

A fixture is a folder:
    config.json     as the architecture's checkpoints have it
    tensors.txt     one tensor in each line: name, type, spread, centre, dimensions. Weights are not stored: number
                    i of a tensor is centre + spread * (2 u - 1), u = the upper 24 bits of splitmix64 of
                    (FNV-1a of the name, i), rounded to the type
    reference.bin   logits of TOKENS tokens: f32 [TOKENS][vocab] computed in FP32, bf16 [TOKENS][vocab] in
                    BF16, then u8 [TOKENS][MoE layers][experts per token] that the BF16 run chose, sorted
Token t is splitmix64(t) mod vocab.
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers

TOKENS = 80  # more than a page

YARN = dict(type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=32, beta_slow=1)
DEEPSEEK = dict(
    hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=4, n_shared_experts=2, n_routed_experts=8,
    num_experts_per_tok=2, first_k_dense_replace=1, moe_layer_freq=1, kv_lora_rank=64,
    qk_nope_head_dim=32, qk_rope_head_dim=32, v_head_dim=32, vocab_size=64, hidden_act="silu",
    max_position_embeddings=128, rms_norm_eps=1e-6, rope_theta=10000.0, attention_bias=False,
    tie_word_embeddings=False, bos_token_id=0, eos_token_id=1, torch_dtype="bfloat16")

FIXTURES = {
    "v2-lite": DEEPSEEK | dict(
        architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", q_lora_rank=None,
        topk_method="greedy", n_group=1, topk_group=1, scoring_func="softmax",
        norm_topk_prob=False, routed_scaling_factor=1.0,
        rope_scaling=YARN | dict(mscale=0.707, mscale_all_dim=0.707)),
    "v2": DEEPSEEK | dict(
        architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", q_lora_rank=48,
        topk_method="group_limited_greedy", n_group=4, topk_group=2, scoring_func="softmax",
        norm_topk_prob=False, routed_scaling_factor=4.0,
        rope_scaling=YARN | dict(mscale=1.0, mscale_all_dim=0.8)),
    "v3": DEEPSEEK | dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", q_lora_rank=48,
        topk_method="noaux_tc", n_group=4, topk_group=2, scoring_func="sigmoid",
        norm_topk_prob=True, routed_scaling_factor=2.5, n_shared_experts=1,
        rope_scaling=YARN | dict(mscale=1.0, mscale_all_dim=1.0)),
    # DeepSeek-R1 and V3.1 as published, but smaller. A token chooses 8 experts from 4 of 8 groups.
    "r1": DEEPSEEK | dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", q_lora_rank=48,
        topk_method="noaux_tc", n_group=8, topk_group=4, n_routed_experts=32, num_experts_per_tok=8,
        scoring_func="sigmoid", norm_topk_prob=True, routed_scaling_factor=2.5, n_shared_experts=1,
        num_hidden_layers=2, moe_intermediate_size=16,
        num_nextn_predict_layers=1, max_position_embeddings=1280, ep_size=1, pretraining_tp=1,
        aux_loss_alpha=0.001, seq_aux=True, initializer_range=0.02, attention_dropout=0.0,
        use_cache=True, rope_scaling=YARN | dict(factor=40, mscale=1.0, mscale_all_dim=1.0)),
    # Kimi-K2 as published, but smaller. It has one group, and equal values of beta_fast and beta_slow.
    "kimi-k2": DEEPSEEK | dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="kimi_k2", q_lora_rank=48,
        topk_method="noaux_tc", n_group=1, topk_group=1, n_routed_experts=24, num_experts_per_tok=8,
        scoring_func="sigmoid", norm_topk_prob=True, routed_scaling_factor=2.827, n_shared_experts=1,
        num_hidden_layers=2, moe_intermediate_size=16, num_nextn_predict_layers=0, max_position_embeddings=1024,
        ep_size=1, pretraining_tp=1, aux_loss_alpha=0.001, seq_aux=True, initializer_range=0.02,
        attention_dropout=0.0, use_cache=True, rope_theta=50000.0,
        rope_scaling=YARN | dict(factor=32.0, beta_fast=1.0, beta_slow=1.0, mscale=1.0,
                                 mscale_all_dim=1.0)),
    # Moonlight-16B-A3B as published, but smaller
    "moonlight": DEEPSEEK | dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", q_lora_rank=None,
        topk_method="noaux_tc", n_group=1, topk_group=1, n_routed_experts=16, num_experts_per_tok=6,
        scoring_func="sigmoid", norm_topk_prob=True, routed_scaling_factor=2.446,
        moe_intermediate_size=16, num_nextn_predict_layers=0, ep_size=1, pretraining_tp=1,
        aux_loss_alpha=0.001, seq_aux=True, initializer_range=0.02, attention_dropout=0.0,
        use_cache=True, rms_norm_eps=1e-5, rope_theta=50000.0),
    # GLM-4.7-Flash as published, but smaller. Its config.json has no scoring_func.
    "glm": DEEPSEEK | dict(
        architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite", q_lora_rank=48,
        topk_method="noaux_tc", n_group=1, topk_group=1, n_routed_experts=16, num_experts_per_tok=4,
        norm_topk_prob=True, routed_scaling_factor=1.8, n_shared_experts=1, num_attention_heads=6,
        num_key_value_heads=6, qk_nope_head_dim=96, v_head_dim=128, num_nextn_predict_layers=1,
        rms_norm_eps=1e-5, rope_theta=1000000, rope_scaling=None, partial_rotary_factor=1.0,
        attention_dropout=0.0, bos_token_id=None, eos_token_id=[1, 2, 3], pad_token_id=1),
    "longcat": dict(
        architectures=["LongcatFlashForCausalLM"], model_type="longcat_flash", hidden_size=64,
        ffn_hidden_size=96, expert_ffn_hidden_size=32, num_layers=2, num_attention_heads=4,
        n_routed_experts=8, zero_expert_num=4, zero_expert_type="identity", moe_topk=3,
        q_lora_rank=48, kv_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=32, v_head_dim=32,
        mla_scale_q_lora=True, mla_scale_kv_lora=True, vocab_size=64,
        max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=10000000.0,
        attention_bias=False, attention_method="MLA", routed_scaling_factor=3.0, router_bias=False,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=1, torch_dtype="bfloat16"),
    "minicpm3": dict(
        architectures=["MiniCPM3ForCausalLM"], model_type="minicpm3", hidden_size=128,
        intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        q_lora_rank=48, kv_lora_rank=64, qk_nope_head_dim=32, qk_rope_head_dim=32, vocab_size=64,
        hidden_act="silu", max_position_embeddings=128, rms_norm_eps=1e-5, scale_emb=12,
        scale_depth=1.4, dim_model_base=32, attention_bias=False, rope_theta=10000.0,
        tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, torch_dtype="bfloat16",
        rope_scaling=dict(type="longrope", original_max_position_embeddings=128,
                          short_factor=[1 + i / 16 for i in range(16)],
                          long_factor=[1 + i / 8 for i in range(16)])),
}


def splitmix(x):
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return h


def numbers(name, spread, centre, shape, bf16):
    n = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = splitmix(np.uint64(fnv1a(name)) + np.arange(n, dtype=np.uint64))
    u = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    x = torch.from_numpy(np.float32(centre) + np.float32(spread) * u).reshape(shape)
    return x.to(torch.bfloat16).float() if bf16 else x


def describe(name, shape):
    """Type, spread and centre."""
    if "correction_bias" in name:
        return "F32", 0.02, 0.0
    if "norm" in name:
        return "BF16", 0.25, 1.0
    if name.endswith("embed_tokens.weight"):
        return "BF16", 1.0, 0.0
    kind = "F32" if "classifier" in name else "BF16"
    return kind, round(math.sqrt(3 / shape[-1]), 4), 0.0


def checkpoint_names(name, shape):
    """The tensors of a checkpoint that stand for a parameter of transformers, with their place in it."""
    if name.endswith("experts.gate_up_proj"):
        half = shape[1] // 2
        stem = name.removesuffix("gate_up_proj")
        for e in range(shape[0]):
            yield f"{stem}{e}.gate_proj.weight", (e, slice(0, half))
            yield f"{stem}{e}.up_proj.weight", (e, slice(half, None))
    elif name.endswith("experts.down_proj"):
        stem = name.removesuffix("down_proj")
        for e in range(shape[0]):
            yield f"{stem}{e}.down_proj.weight", (e,)
    else:
        yield name, ()


def fill(model, config):
    lines = []
    state = dict(model.named_parameters()) | {
        n: b for n, b in model.named_buffers() if "correction_bias" in n}
    for full, p in sorted(state.items()):
        routed = config.get("n_routed_experts", 0)
        for name, place in checkpoint_names(full, p.shape):
            if ".experts." in name and int(name.split(".experts.")[1].split(".")[0]) >= routed:
                continue
            shape = tuple(p.data[place].shape)
            kind, spread, centre = describe(name, shape)
            p.data[place] = numbers(name, spread, centre, shape, kind == "BF16")
            lines.append(f"{name} {kind} {spread} {centre} {' '.join(map(str, shape))}")
    return lines


def prediction_layer(config):
    """Tensors of the layer that predicts a further token, which a run of the model ignores."""
    if not config.get("num_nextn_predict_layers"):
        return []
    hidden, vocab, at = config["hidden_size"], config["vocab_size"], config["num_hidden_layers"]
    shapes = {"eh_proj": (hidden, 2 * hidden), "enorm": (hidden,), "hnorm": (hidden,),
              "embed_tokens": (vocab, hidden), "shared_head.head": (vocab, hidden),
              "shared_head.norm": (hidden,)}
    names = {f"model.layers.{at}.{n}.weight": s for n, s in shapes.items()}
    return [f"{n} BF16 1.0 0.0 {' '.join(map(str, s))}" for n, s in names.items()]


def run(model, tokens):
    chosen = []
    hooks = [m.register_forward_hook(lambda m, i, o: chosen.append(o[2]))
             for m in model.modules() if type(m).__name__.endswith("TopkRouter")]
    with torch.no_grad():
        logits = model(input_ids=tokens[None], use_cache=False).logits[0]
    for h in hooks:
        h.remove()
    experts = torch.stack([c.sort(-1)[0] for c in chosen], 1) if chosen else torch.zeros(0)
    return logits.float().numpy(), experts.numpy().astype(np.uint8)


def make(name):
    folder = pathlib.Path(__file__).parent / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(FIXTURES[name], indent=1) + "\n")
    # transformers has no kimi_k2. Its authors say that it is DeepSeek-V3 under a name of its own.
    # transformers takes LongCat's head_dim for its rotary width.
    keys = FIXTURES[name] | dict(head_dim=FIXTURES[name]["qk_rope_head_dim"])
    kind = keys.pop("model_type").replace("kimi_k2", "deepseek_v3")
    config = transformers.AutoConfig.for_model(kind, **keys)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    (folder / "tensors.txt").write_text("\n".join(
        fill(model, FIXTURES[name]) + prediction_layer(FIXTURES[name])) + "\n")
    vocab = FIXTURES[name]["vocab_size"]
    tokens = torch.from_numpy((splitmix(np.arange(TOKENS, dtype=np.uint64)) %
                               np.uint64(vocab)).astype(np.int64))
    exact, _ = run(model, tokens)
    kept = {n: b.clone() for n, b in model.named_buffers()}
    model.to(torch.bfloat16)
    for n, b in model.named_buffers():  # rope tables and routing biases stay FP32 in transformers
        b.data = kept[n]
    rounded, experts = run(model, tokens)
    with open(folder / "reference.bin", "wb") as f:
        f.write(exact.astype("<f4").tobytes())
        f.write(torch.from_numpy(rounded).to(torch.bfloat16).view(torch.int16).numpy().tobytes())
        f.write(experts.tobytes())
    error = np.linalg.norm(rounded - exact, axis=1) / np.linalg.norm(exact, axis=1)
    print(f"{name}: |logits| {np.abs(exact).mean():.3f}, BF16 against FP32 {np.median(error):.2e} "
          f"median {error.max():.2e} worst, experts {experts.shape}, rope {config.rope_parameters}")


if __name__ == "__main__":
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for fixture in sys.argv[1:] or FIXTURES:
        make(fixture)
