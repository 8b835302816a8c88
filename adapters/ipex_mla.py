"""ipex_mla.py - the decode operator of Intel Extension for PyTorch over the format bf16, on the host:
one query token per sequence, and sequences of equal length.

    --arm ipex=python:adapters/ipex_mla.py    isa: the splits of a sequence, 8 if it is auto

The package intel_extension_for_pytorch must be installed. The operator reads one slot number for each
token, which schedule() computes from the block table.
"""
import torch

format = "bf16"
lse = False
limit_s = 600
splits = 8


def setup(isa):
    global splits
    import intel_extension_for_pytorch as ipex
    splits = 8 if isa == "auto" else int(isa)
    return {"kernel": "ipex %s, %d splits" % (ipex.__version__, splits)}


class Plan:
    pass


def plan(cap, form):
    if form.name != "bf16" or cap.s_q != 1 or cap.heads == 1:
        raise NotImplementedError("it reads bf16, two heads or more, and one query token per sequence")
    p = Plan()
    p.slots = torch.zeros(cap.batch, cap.max_tokens + 1, dtype=torch.int64)
    p.partial = torch.empty(cap.batch, cap.heads, splits, cap.d_c + 1)
    return p


def schedule(p, step, q, cache):
    p.tokens = int(step.seqlens[0])
    if not bool((step.seqlens == p.tokens).all()):
        raise NotImplementedError("sequences have different lengths")
    token = torch.arange(p.tokens)
    pages = step.block_table.long()[:, token // step.page_tokens]
    p.slots[:step.batch, :p.tokens] = pages * step.page_tokens + token % step.page_tokens


def attend(p, step, q, cache, out, lse):
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages * step.page_tokens, 1, 1, -1)
    torch.ops.torch_ipex.decode_attention(q[:, 0], out[:, 0], pool,
                                          p.slots[:step.batch], p.partial[:step.batch],
                                          step.softmax_scale, 0.0, p.tokens)
