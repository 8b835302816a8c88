#!/usr/bin/env python3
"""Writes inventory.json: tiny models of every architecture as transformers saves them, each with its
config.json and the names and shapes of its tensors.

Development only: pip install torch transformers safetensors."""
import json
import pathlib
import tempfile

from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
MLA = dict(vocab_size=40, hidden_size=24, num_attention_heads=3, kv_lora_rank=10, qk_nope_head_dim=6, qk_rope_head_dim=4,
           v_head_dim=8, max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=None)
MOE = dict(intermediate_size=20, moe_intermediate_size=14, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=2,
           first_k_dense_replace=1, num_hidden_layers=3)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707,
            original_max_position_embeddings=16)
LONG = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.5], long_factor=[1.0, 2.5],
            original_max_position_embeddings=32)
MODELS = {
    "v2-lite": ("deepseek_v2", {**MLA, **MOE, "q_lora_rank": None, "rope_parameters": YARN}),
    "v2": ("deepseek_v2", {**MLA, **MOE, "q_lora_rank": 12, "n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy"}),
    "v3": ("deepseek_v3", {**MLA, **MOE, "q_lora_rank": 12, "n_group": 4, "topk_group": 2, "n_shared_experts": 1,
                           "rope_parameters": YARN}),
    "glm": ("glm4_moe_lite", {**MLA, "q_lora_rank": 12, "intermediate_size": 20, "moe_intermediate_size": 14,
                              "n_routed_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 3,
                              "num_key_value_heads": 3}),
    "longcat": ("longcat_flash", {**MLA, "q_lora_rank": 12, "num_layers": 2, "ffn_hidden_size": 20, "n_routed_experts": 4,
                                  "zero_expert_num": 2, "moe_topk": 3, "expert_ffn_hidden_size": 14}),
    "minicpm3": ("minicpm3", {**MLA, "q_lora_rank": 12, "num_hidden_layers": 2, "intermediate_size": 20,
                              "num_key_value_heads": 3, "rope_parameters": LONG}),
}

out = {}
for name, (kind, keys) in MODELS.items():
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **keys))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        with safe_open(pathlib.Path(folder) / "model.safetensors", "np") as f:
            out[name] = {"config": config, "tensors": {k: list(f.get_slice(k).get_shape()) for k in sorted(f.keys())}}
(HERE / "inventory.json").write_text(json.dumps(out, indent=None, sort_keys=True) + "\n")
