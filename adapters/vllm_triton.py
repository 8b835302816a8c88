"""vllm_triton.py - vLLM's Triton MLA decode operator over the format bf16, one query token per
sequence.

    --arm vllm=python:adapters/vllm_triton.py            isa: the number of splits, or vLLM's choice
    --arm vllm8=python:adapters/vllm_triton.py,isa=fp8   the same over an e4m3 cache without scales

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
E4M3 = {"name": "e4m3", "description": "e4m3 without scales, multiplied in BF16.",
        "order": "interleaved", "content": {"type": "e4m3fn", "scale": {"fixed": 1.0}},
        "rope": {"type": "e4m3fn", "scale": {"fixed": 1.0}},
        "attention": {"queries": "bf16", "probabilities": "bf16"}}
operator, parameters, splits = None, (), 0


def setup(isa):
    global operator, parameters, splits
    splits = 0 if isa in ("auto", "fp8") else int(isa)
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
    parameters = inspect.signature(operator).parameters
    return {"kernel": "vllm %s Triton %s" % (vllm.__version__, isa), "lse": "lse" in parameters,
            "format": E4M3 if isa == "fp8" else "bf16"}


def choose_splits(max_tokens):
    """As _compute_num_kv_splits() of vLLM: a power of two, with at least 512 tokens per split."""
    most = 2 * torch.cuda.get_device_properties("cuda").multi_processor_count
    return min(1 << (max(1, max_tokens // 512) - 1).bit_length(), most)


class Plan:
    pass


def plan(cap, form):
    kinds = {name: kind for name, (kind, _) in form.planes.items()}
    kind = kinds.get("content")
    if kind not in ("bf16", "e4m3fn") or kinds != {"content": kind, "rope": kind} or cap.s_q != 1:
        raise NotImplementedError("it reads bf16 or e4m3, and one query token per sequence")
    p = Plan()
    p.kind = torch.bfloat16 if kind == "bf16" else torch.float8_e4m3fn
    p.splits = splits or choose_splits(cap.max_tokens)
    p.partial = torch.empty(cap.batch, cap.heads, p.splits, cap.d_c + 1, dtype=torch.float32,
                            device="cuda")
    p.one = torch.ones((), dtype=torch.float32, device="cuda")
    return p


def attend(p, step, q, cache, out, lse):
    pool = cache.pool(0).view(p.kind).view(cache.pages, step.page_tokens, 1, -1)
    more = {"lse": lse[:, 0], "k_scale": p.one, "v_scale": p.one, "is_mla": True}
    more = {name: value for name, value in more.items() if name in parameters}
    operator(q=q[:, 0], k_buffer=pool, v_buffer=pool[..., :step.d_c], o=out[:, 0],
             req_to_token=step.block_table, b_seq_len=step.seqlens, attn_logits=p.partial,
             num_kv_splits=p.splits, sm_scale=step.softmax_scale, page_size=step.page_tokens,
             **more)
