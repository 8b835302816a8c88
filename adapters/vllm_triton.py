"""vllm_triton.py - vLLM's Triton MLA decode operator over the format bf16, one query token per
sequence.

    --arm vllm=python:adapters/vllm_triton.py        isa: the number of splits, 4 if it is not given

The package vllm must be installed. Only the operator is used, no engine.
"""
import importlib
import inspect

import torch

format = "bf16"
device = "cuda"
limit_s = 600
PLACES = ("vllm.v1.attention.ops.triton_decode_attention",
          "vllm.attention.ops.triton_decode_attention")
operator, has_lse, splits = None, False, 4


def setup(isa):
    global operator, has_lse, splits
    splits = 4 if isa == "auto" else int(isa)
    import vllm
    for place in PLACES:
        try:
            operator = importlib.import_module(place).decode_attention_fwd
            break
        except ImportError:
            continue
    if operator is None:
        raise ImportError("vllm %s has no decode_attention_fwd in %s"
                          % (vllm.__version__, " or ".join(PLACES)))
    has_lse = "lse" in inspect.signature(operator).parameters
    return {"kernel": "vllm %s splits %d" % (vllm.__version__, splits), "lse": has_lse}


def plan(cap, form):
    if form.name != "bf16" or cap.s_q != 1:
        raise NotImplementedError("it reads bf16, and one query token per sequence")
    return torch.empty(cap.batch, cap.heads, splits, cap.d_c + 1, dtype=torch.float32,
                       device="cuda")


def attend(partial, step, q, cache, out, lse):
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages, step.page_tokens, 1, -1)
    own = {"lse": lse[:, 0]} if has_lse else {}
    operator(q=q[:, 0], k_buffer=pool, v_buffer=pool[..., :step.d_c], o=out[:, 0],
             req_to_token=step.block_table, b_seq_len=step.seqlens, attn_logits=partial,
             num_kv_splits=splits, sm_scale=step.softmax_scale, page_size=step.page_tokens, **own)
