#!/usr/bin/env python3
"""Writes what test_grouped.c compares with: a tiny Llama that training/grouped.py rewrote, run by transformers.

    python3 make_grouped.py     (needs torch and transformers; run from this folder)

The folders grouped-rope and grouped-content have the rewritten checkpoints. grouped.bin has the logits of the
original for TOKENS tokens: f32 [TOKENS][vocab] computed in FP32. Token t is splitmix64(t) mod vocab."""
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

from make_fixtures import TOKENS, splitmix, np

HERE = pathlib.Path(__file__).parent
CONFIG = dict(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, head_dim=32, max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=1000.0,
              tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, attention_bias=False, mlp_bias=False)

torch.manual_seed(7)
config = transformers.LlamaConfig(**CONFIG)
config._attn_implementation = "eager"
model = transformers.LlamaForCausalLM(config).eval()
for name, p in model.named_parameters():
    p.data = (1 + 0.25 * torch.randn_like(p) if "norm" in name else
              torch.randn_like(p) * (1 if "embed" in name else p.shape[-1] ** -0.5)).to(torch.bfloat16).float()
tokens = torch.from_numpy((splitmix(np.arange(TOKENS, dtype=np.uint64)) % np.uint64(64)).astype(np.int64))
with torch.no_grad():
    exact = model(input_ids=tokens[None], use_cache=False).logits[0].numpy()
(HERE / "grouped.bin").write_bytes(exact.astype("<f4").tobytes())
with tempfile.TemporaryDirectory() as source:
    model.to(torch.bfloat16).save_pretrained(source)
    for how in ("rope", "content"):
        subprocess.run([sys.executable, HERE / "../../../training/grouped.py", source, HERE / f"grouped-{how}",
                        "--map", how, "--pad", "128"], check=True)
