"""sglang_triton.py - SGLang's Triton decode operator over the format bf16, one query token per
sequence.

    --arm sglang=python:adapters/sglang_triton.py    isa: the number of splits, 8 if it is not given

The package sglang must be installed. Only the operator is used, no engine. It reads one slot number
for each token, which schedule() computes from the block table.
"""
import importlib

import torch

format = "bf16"
device = "cuda"
lse = False
limit_s = 600
PLACES = ("sglang.srt.layers.attention.triton_ops.decode_attention",
          "sglang.kernels.ops.attention.decode_attention")
operator, splits = None, 8


def setup(isa):
    global operator, splits
    splits = 8 if isa == "auto" else int(isa)
    import sglang
    for place in PLACES:
        try:
            operator = importlib.import_module(place).decode_attention_fwd
            break
        except ImportError:
            continue
    if operator is None:
        raise ImportError("sglang %s has no decode_attention_fwd in %s"
                          % (sglang.__version__, " or ".join(PLACES)))
    return {"kernel": "sglang %s splits %d" % (sglang.__version__, splits)}


class Plan:
    pass


def plan(cap, form):
    if form.name != "bf16" or cap.s_q != 1:
        raise NotImplementedError("it reads bf16, and one query token per sequence")
    p, gpu = Plan(), {"device": "cuda"}
    p.starts = torch.zeros(cap.batch + 1, dtype=torch.int32, **gpu)
    p.slots = torch.zeros(cap.batch * cap.max_tokens, dtype=torch.int64, **gpu)
    p.partial = torch.empty(cap.batch, cap.heads, splits, cap.d_c, dtype=torch.float32, **gpu)
    p.partial_lse = torch.empty(cap.batch, cap.heads, splits, dtype=torch.float32, **gpu)
    p.splits = torch.full((cap.batch,), splits, dtype=torch.int32, **gpu)
    return p


def schedule(p, step, q, cache):
    p.starts[1:step.batch + 1] = step.seqlens.cumsum(0)
    token = torch.arange(step.max_tokens, device="cuda")
    pages = step.block_table.long()[:, token // step.page_tokens]
    slots = pages * step.page_tokens + token % step.page_tokens
    used = slots[token[None, :] < step.seqlens[:, None]]
    p.slots[:used.numel()] = used


def attend(p, step, q, cache, out, lse):
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages * step.page_tokens, 1, -1)
    operator(q[:, 0], pool, pool[..., :step.d_c], out[:, 0], p.starts, p.slots, p.partial,
             p.partial_lse, p.splits, splits, step.softmax_scale)
