"""flashmla_fp8.py - FlashMLA's dense FP8 decode kernel, as vLLM and sgl_kernel contain it, over the
format vllm-e4m3.

    --arm flashmla8=python:adapters/flashmla_fp8.py      isa: auto, vllm, sgl

The kernel reads queries in e4m3. schedule() makes them from the BF16 queries, so that, as for the
program's own FP8 arm, this is not part of the time of attention. The kernel allocates its results
itself. attend() copies the output, which adds one launch of a few microseconds to every step, and
does not return the log-sum-exp.
"""
import importlib

import torch

format = "vllm-e4m3"
device = "cuda"
limit_s = 600
lse = False
PLACES = {"vllm": ("vllm._flashmla_extension_C", "_flashmla_extension_C"),
          "sgl": ("sgl_kernel.flashmla_ops", "sgl_kernel")}
operators = None


def setup(isa):
    global operators
    if isa not in ("auto", *PLACES):
        raise NotImplementedError("isa must be auto, vllm or sgl, not '%s'" % isa)
    failures = []
    for name in PLACES if isa == "auto" else [isa]:
        module, namespace = PLACES[name]
        try:
            importlib.import_module(module)
        except ImportError as error:
            failures.append("%s: %s" % (name, error))
            continue
        operators = getattr(torch.ops, namespace)
        package = importlib.import_module(module.split(".")[0])
        return {"kernel": "FlashMLA FP8 in %s %s" % (name, getattr(package, "__version__", ""))}
    raise ImportError("; ".join(failures))


class Plan:
    made = None


def plan(cap, form):
    kinds = {name: kind for name, (kind, _) in form.planes.items()}
    if kinds != {"content": "e4m3fn", "rope": "e4m3fn"} or form.page_tokens != 64 \
            or (cap.d_c, cap.d_r) != (512, 64):
        raise NotImplementedError(
            "it reads e4m3 without scales in pages of 64 tokens, with 512 + 64 columns")
    p = Plan()
    p.q = torch.empty(cap.batch, cap.s_q, cap.heads, cap.d_c + cap.d_r, device="cuda",
                      dtype=torch.float8_e4m3fn)
    p.scale = torch.ones(1, dtype=torch.float32, device="cuda")
    return p


def schedule(p, step, q, cache):
    p.q.copy_(q.float().clamp(-448, 448))
    made = operators.get_mla_decoding_metadata_dense_fp8(step.seqlens, step.s_q * step.heads, 1)
    if p.made:  # a recorded step reads these tensors
        for old, new in zip(p.made, made):
            old.copy_(new)
    else:
        p.made = made


def attend(p, step, q, cache, out, lse):
    pool = cache.pool(0).view(torch.float8_e4m3fn).view(cache.pages, step.page_tokens, 1, -1)
    result = operators.fwd_kvcache_mla_fp8(
        p.q, pool, step.d_c, step.seqlens, step.block_table, step.softmax_scale, True, p.made[0],
        p.made[1], p.scale, p.scale)
    out.copy_(result[0])
