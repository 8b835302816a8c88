"""flashinfer_mla.py - FlashInfer's BatchMLAPagedAttentionWrapper over the format bf16.

    --arm fi=python:adapters/flashinfer_mla.py,isa=fa3       isa: auto, fa2, fa3, cutlass

FlashInfer must be installed (pip install flashinfer-python). It compiles its kernels at the first
step, so that may take minutes. plan() of the wrapper runs in schedule(), which is not timed. The
page numbers are read from the block table at that time.
"""
import math

import torch

format = "bf16"
device = "cuda"
limit_s = 1800
choice = "auto"


def setup(isa):
    global choice
    import flashinfer  # a clear error if it is missing
    if isa not in ("auto", "fa2", "fa3", "cutlass"):
        raise NotImplementedError("isa must be fa2, fa3 or cutlass, not '%s'" % isa)
    choice = isa
    return {"kernel": "flashinfer %s %s" % (flashinfer.__version__, isa)}


class Plan:
    pass


def plan(cap, form):
    from flashinfer.mla import BatchMLAPagedAttentionWrapper
    if form.name != "bf16":
        raise NotImplementedError("it reads the format bf16, not %s" % form.name)
    p, gpu = Plan(), {"device": "cuda"}
    pages = cap.batch * -(-cap.max_tokens // form.page_tokens)
    p.q_starts = torch.arange(cap.batch + 1, dtype=torch.int32, **gpu) * cap.s_q
    p.starts = torch.zeros(cap.batch + 1, dtype=torch.int32, **gpu)
    p.pages = torch.zeros(pages, dtype=torch.int32, **gpu)
    p.lengths = torch.zeros(cap.batch, dtype=torch.int32, **gpu)
    p.wrapper = BatchMLAPagedAttentionWrapper(
        torch.empty(256 << 20, dtype=torch.int8, **gpu), use_cuda_graph=True,
        qo_indptr=p.q_starts, kv_indptr=p.starts, kv_indices=p.pages, kv_len_arr=p.lengths,
        backend=choice)
    return p


def schedule(p, step, q, cache):
    used = (step.seqlens + step.page_tokens - 1) // step.page_tokens
    starts = torch.nn.functional.pad(used.cumsum(0, dtype=torch.int32), (1, 0))
    column = torch.arange(step.block_table.shape[1], device="cuda")
    pages = step.block_table[column[None, :] < used[:, None]]
    q_starts = torch.arange(step.batch + 1, dtype=torch.int32, device="cuda") * step.s_q
    p.wrapper.plan(q_starts, starts, pages, step.seqlens, step.heads, step.d_c, step.d_r,
                   step.page_tokens, True, step.softmax_scale, torch.bfloat16, torch.bfloat16)


def attend(p, step, q, cache, out, lse):
    rows = q.view(step.batch * step.s_q, step.heads, step.d_c + step.d_r)
    logs = lse.view(step.batch * step.s_q, step.heads)
    p.wrapper.run(rows[..., :step.d_c], rows[..., step.d_c:], cache.plane("content"),
                  cache.plane("rope"), out=out.view(-1, step.heads, step.d_c), lse=logs,
                  return_lse=True)
    logs.mul_(math.log(2))  # FlashInfer's logarithm has base 2
