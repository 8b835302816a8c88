"""sglang_triton.py - SGLang's Triton decode operator over the format bf16, one query token per
sequence.

    --arm sglang=python:adapters/sglang_triton.py    isa: the most splits of a sequence, or
                                                     SGLang's choice

The package sglang must be installed. Only the operator is used, no engine. It reads one slot number
for each token, which schedule() computes from the block table.
"""
import importlib
import inspect

import torch

format = "bf16"
device = "cuda"
lse = False
limit_s = 600
PLACES = (("sglang.kernels.ops.attention.decode_attention",
           "sglang.kernels.ops.attention.metadata"),
          ("sglang.srt.layers.attention.triton_ops.decode_attention",
           "sglang.srt.layers.attention.triton_backend"))
operator, choose_splits, splits = None, None, 0


def setup(isa):
    global operator, choose_splits, splits
    splits = 0 if isa == "auto" else int(isa)
    import sglang
    for place, other in PLACES:
        try:
            operator = importlib.import_module(place).decode_attention_fwd
            choose_splits = importlib.import_module(other).get_num_kv_splits_triton
            break
        except (ImportError, AttributeError):
            continue
    if operator is None:
        raise ImportError("sglang %s has no decode_attention_fwd in %s"
                          % (sglang.__version__, " or ".join(p[0] for p in PLACES)))
    return {"kernel": "sglang %s Triton %s" % (sglang.__version__, isa)}


def power_of_two(n):
    return 1 << max(0, n - 1).bit_length()


class Plan:
    pass


def plan(cap, form):
    if form.name != "bf16" or cap.s_q != 1:
        raise NotImplementedError("it reads bf16, and one query token per sequence")
    p, gpu = Plan(), {"device": "cuda"}
    p.processors = torch.cuda.get_device_properties("cuda").multi_processor_count
    # As _mla_decode_kv_splits_cap() of SGLang, with its default of 8 splits.
    p.most = splits or max(8, min(power_of_two(p.processors),
                                  power_of_two(-(-cap.max_tokens // 32))))
    p.starts = torch.zeros(cap.batch + 1, dtype=torch.int32, **gpu)
    p.slots = torch.zeros(cap.batch * cap.max_tokens, dtype=torch.int64, **gpu)
    p.partial = torch.empty(cap.batch, cap.heads, p.most, cap.d_c, dtype=torch.float32, **gpu)
    p.partial_lse = torch.empty(cap.batch, cap.heads, p.most, dtype=torch.float32, **gpu)
    p.splits = torch.full((cap.batch,), p.most, dtype=torch.int32, **gpu)
    p.more = {"k_scale": 1.0, "v_scale": 1.0, "has_mla": True,
              "use_pdl": torch.cuda.get_device_capability()[0] >= 9}
    known = inspect.signature(operator).parameters
    p.more = {name: value for name, value in p.more.items() if name in known}
    return p


def schedule(p, step, q, cache):
    p.starts[1:step.batch + 1] = step.seqlens.cumsum(0)
    token = torch.arange(step.max_tokens, device="cuda")
    pages = step.block_table.long()[:, token // step.page_tokens]
    slots = pages * step.page_tokens + token % step.page_tokens
    used = slots[token[None, :] < step.seqlens[:, None]]
    p.slots[:used.numel()] = used
    if choose_splits and not splits:
        choose_splits[(1,)](p.splits, step.seqlens, step.batch, 1, step.heads, 1, p.most,
                            p.processors, MAX_NUM_SEQ=max(256, power_of_two(step.batch)))


def attend(p, step, q, cache, out, lse):
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages * step.page_tokens, 1, -1)
    operator(q[:, 0], pool, pool[..., :step.d_c], out[:, 0], p.starts, p.slots, p.partial,
             p.partial_lse, p.splits, p.most, step.softmax_scale, **p.more)
