"""flashmla.py - FlashMLA's dense decode kernel over the format bf16.

    --arm flashmla=python:adapters/flashmla.py

The package flash_mla of deepseek-ai/FlashMLA must be installed.
"""
import torch

format = "bf16"
device = "cuda"
limit_s = 600
library = None


def setup(isa):
    global library
    import flash_mla  # a clear error if it is missing
    library = flash_mla


def plan(cap, form):
    if form.name != "bf16" or form.page_tokens != 64 or (cap.d_c, cap.d_r) != (512, 64):
        raise NotImplementedError("it reads bf16 in pages of 64 tokens, with 512 + 64 columns")
    return {}


def schedule(state, step, q, cache):
    try:  # newer versions make the metadata at the first call
        state["made"] = library.get_mla_metadata(step.seqlens, step.s_q * step.heads, 1)
    except TypeError:
        state["made"] = library.get_mla_metadata()


def attend(state, step, q, cache, out, lse):
    metadata, splits = state["made"]
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages, step.page_tokens, 1, -1)
    result, logs = library.flash_mla_with_kvcache(
        q, pool, step.block_table, step.seqlens, step.d_c, metadata, splits,
        softmax_scale=step.softmax_scale, causal=True)
    out.copy_(result)
    lse.copy_(logs.transpose(1, 2))
