"""torch_sdpa.py - MLA decoding with torch.nn.functional.scaled_dot_product_attention, as a baseline
that everybody has.

The pages of each sequence are gathered into one tensor, and all heads of a sequence are rows of one
attention. The arithmetic is FP32, because in BF16 torch rounds the scores. There is no log-sum-exp.

    --arm torch=python:adapters/torch_sdpa.py          isa=cpu or isa=cuda chooses the device
"""
import torch
from torch.nn.functional import scaled_dot_product_attention

format = "bf16"
kernel = "scaled_dot_product_attention"
lse = False


def setup(isa):
    if isa not in ("auto", "cpu", "cuda"):
        raise NotImplementedError("isa must be cpu or cuda, not '%s'" % isa)
    cuda = torch.cuda.is_available() if isa == "auto" else isa == "cuda"
    if cuda and not torch.cuda.is_available():
        raise NotImplementedError("this torch has no CUDA device")
    return {"device": "cuda" if cuda else "host"}


def plan(cap, form):
    if form.name != "bf16":
        raise NotImplementedError("it reads the format bf16, not %s" % form.name)
    return {"tokens": torch.arange(cap.max_tokens + form.page_tokens,
                                   device="cuda" if torch.cuda.is_available() else "cpu")}


def attend(state, step, q, cache, out, lse):
    pages = -(-step.max_tokens // step.page_tokens)
    width = step.d_c + step.d_r
    # Table entries past the end of a sequence may be out of range, and slots there may hold NaN.
    table = step.block_table[:, :pages].clamp(0, cache.pages - 1).long()
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages, step.page_tokens, width)
    kv = pool[table].view(step.batch, pages * step.page_tokens, width).float()
    place = state["tokens"].to(kv.device)[:kv.shape[1]]
    here = place[None, :] < step.seqlens[:, None]
    kv = torch.where(here[:, :, None], kv, 0.0)
    draft = torch.arange(step.s_q, device=kv.device).repeat_interleave(step.heads)
    visible = step.seqlens[:, None] - (step.s_q - 1 - draft)[None, :]
    mask = place[None, None, :] < visible[:, :, None]
    rows = q.view(step.batch, 1, step.s_q * step.heads, width).float()
    result = scaled_dot_product_attention(rows, kv[:, None], kv[:, None, :, :step.d_c],
                                          attn_mask=mask[:, None], scale=step.softmax_scale)
    out.copy_(result.view(out.shape))
