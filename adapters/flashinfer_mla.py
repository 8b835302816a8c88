"""flashinfer_mla.py - FlashInfer's BatchMLAPagedAttentionWrapper.

    --arm fi=python:adapters/flashinfer_mla.py,isa=fa3        isa: auto, fa2, fa3, cutlass
    --arm fi8=python:adapters/flashinfer_mla.py,isa=fa3-fp8   the same over an e4m3 cache

With "-fp8", the cache holds e4m3 numbers without scales, and the products are those of BF16.

FlashInfer must be installed (pip install flashinfer-python). It compiles its kernels at the first
step, so that may take minutes. plan() of the wrapper runs in schedule(), which is not timed. The
page numbers are read from the block table at that time.
"""
import inspect
import math

import torch

format = "bf16"
device = "cuda"
limit_s = 1800
E4M3 = {"name": "e4m3", "description": "e4m3 without scales, multiplied in BF16.",
        "order": "interleaved", "content": {"type": "e4m3fn", "scale": {"fixed": 1.0}},
        "rope": {"type": "e4m3fn", "scale": {"fixed": 1.0}},
        "attention": {"queries": "bf16", "probabilities": "bf16"}}
choice, Wrapper, natural = "auto", None, False


def setup(isa):
    global choice, Wrapper, natural
    import flashinfer  # a clear error if it is missing
    from flashinfer.mla import BatchMLAPagedAttentionWrapper as Wrapper
    choice = isa.removesuffix("-fp8")
    if choice not in ("auto", "fa2", "fa3", "cutlass"):
        raise NotImplementedError("isa must be fa2, fa3 or cutlass, not '%s'" % isa)
    natural = "return_lse_base_on_e" in inspect.signature(Wrapper.run).parameters
    return {"kernel": "flashinfer %s %s" % (flashinfer.__version__, isa),
            "format": E4M3 if isa.endswith("-fp8") else "bf16"}


class Plan:
    pass


def plan(cap, form):
    kinds = {name: kind for name, (kind, _) in form.planes.items()}
    p, gpu = Plan(), {"device": "cuda"}
    p.fp8 = kinds == {"content": "e4m3fn", "rope": "e4m3fn"}
    if not p.fp8 and kinds != {"content": "bf16", "rope": "bf16"}:
        raise NotImplementedError("it reads bf16 and e4m3 without scales, not %s" % form.name)
    pages = cap.batch * -(-cap.max_tokens // form.page_tokens)
    p.q_starts = torch.arange(cap.batch + 1, dtype=torch.int32, **gpu) * cap.s_q
    p.starts = torch.zeros(cap.batch + 1, dtype=torch.int32, **gpu)
    p.pages = torch.zeros(pages, dtype=torch.int32, **gpu)
    p.lengths = torch.zeros(cap.batch, dtype=torch.int32, **gpu)
    p.wrapper = Wrapper(
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
    try:
        p.wrapper.plan(q_starts, starts, pages, step.seqlens.clone(), step.heads, step.d_c,
                       step.d_r, step.page_tokens, True, step.softmax_scale, torch.bfloat16,
                       torch.float8_e4m3fn if p.fp8 else torch.bfloat16)
    except ValueError as error:  # newer versions have a type of their own for what they refuse
        if "Unsupported" not in type(error).__name__:
            raise
        raise NotImplementedError(str(error)) from error


def attend(p, step, q, cache, out, lse):
    rows = q.view(step.batch * step.s_q, step.heads, step.d_c + step.d_r)
    logs = lse.view(step.batch * step.s_q, step.heads)
    more = {"return_lse_base_on_e": True} if natural else {}
    if p.fp8:
        more.update(ckv_scale=1.0, kpe_scale=1.0)
    p.wrapper.run(rows[..., :step.d_c], rows[..., step.d_c:], cache.plane("content"),
                  cache.plane("rope"), out=out.view(-1, step.heads, step.d_c), lse=logs,
                  return_lse=True, **more)
    if not natural:
        logs.mul_(math.log(2))  # older versions write the logarithm to base 2
