"""triton_mla.py - an MLA decode kernel in Triton with split-KV: the template for kernels of your own.

    --arm triton=python:adapters/triton_mla.py                   the format bf16
    --arm triton8=python:adapters/triton_mla.py,format=snapmla   FP8 in memory, BF16 products

One program computes a block of rows (query token x head) of one sequence over one split of its
tokens. All rows of a sequence read the same tokens, so a tile of tokens is loaded once for the
scores and for the values. A second kernel merges the splits by their log-sum-exp. The number of
splits follows from the capacity alone, so a CUDA graph can replay the launches with other lengths.

With snapmla, the kernel quantises each query row to e4m3, as that format says. The e4m3 values of
queries and tokens are exact in bf16, so their products are computed in bf16. The scale of a token is
multiplied into its probability before that is rounded.

Without a GPU, the environment variable TRITON_INTERPRET=1 runs it on the CPU, slowly. There,
snapmla fails the check, because the interpreter truncates e4m3 numbers.
"""
import os

import torch
import triton
import triton.language as tl

format = "bf16"
kernel = "triton_mla"
limit_s = 600  # seconds for each call. Importing this file and compiling a kernel are in calls, too
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def setup(isa):
    if isa != "auto":
        raise NotImplementedError("it has no variant '%s'" % isa)
    if not INTERPRETED and not torch.cuda.is_available():
        raise NotImplementedError("it needs a CUDA device, or TRITON_INTERPRET=1")
    return {"device": "host" if INTERPRETED else "cuda"}


# Triton's interpreter (WIDE) multiplies the codes of bf16 numbers, and truncates where a GPU rounds.
# The next two functions work around that.
@triton.jit
def product(a, b, WIDE: tl.constexpr):
    if WIDE:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b)


@triton.jit
def rounded(x, WIDE: tl.constexpr):
    if WIDE:
        code = x.to(tl.uint32, bitcast=True)
        code = (code + 0x7FFF + ((code >> 16) & 1)) & 0xFFFF0000
        x = code.to(tl.float32, bitcast=True)
    return x.to(tl.bfloat16)


# On a GPU, `/` is approximate. Numbers halfway between two e4m3 numbers would then be rounded to the
# other one than the format says. So divisions that a rounding follows need IEEE division, which
# older versions of Triton have in another place.
if hasattr(tl, "div_rn"):
    @triton.jit
    def divided(x, y):
        return tl.div_rn(x, y)
else:
    @triton.jit
    def divided(x, y):
        return tl.math.div_rn(x, y)


# Triton compiles a kernel again if an integer argument becomes 1, or a multiple of 16, or stops being
# one. That takes seconds and makes these kernels no faster, so it is switched off for the arguments
# that change with the shape.
@triton.jit(do_not_specialize=["heads", "s_q", "splits", "table_width", "pages"])
def partial_attention(q, content, rope, token_scale, lengths, table, out, lse, softmax_scale,
                      heads, s_q, splits, table_width, pages, content_page, content_token,
                      rope_page, rope_token, scale_page, scale_token, D_C: tl.constexpr,
                      D_R: tl.constexpr, PAGE: tl.constexpr, ROWS: tl.constexpr,
                      TOKENS: tl.constexpr, FP8: tl.constexpr,
                      SPLIT: tl.constexpr, WIDE: tl.constexpr):
    sequence = tl.program_id(0)
    split = tl.program_id(2)
    rows = heads * s_q
    length = tl.load(lengths + sequence)
    each = tl.cdiv(tl.cdiv(length, TOKENS), splits) * TOKENS
    first = split * each
    last = tl.minimum(length, first + each)

    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    exists = row < rows
    visible = length - (s_q - 1 - row // heads)
    c = tl.arange(0, D_C)
    r = tl.arange(0, D_R)
    at = q + (sequence * rows + row).to(tl.int64)[:, None] * (D_C + D_R)
    q_c = tl.load(at + c[None, :], mask=exists[:, None], other=0.0)
    q_r = tl.load(at + D_C + r[None, :], mask=exists[:, None], other=0.0)
    factor = tl.full([ROWS], softmax_scale * 1.4426950408889634, tl.float32)  # for base 2
    if FP8:
        wide = q_c.to(tl.float32)
        unit = divided(tl.maximum(tl.max(tl.abs(wide), 1), 1e-10),
                       tl.full([ROWS], 448.0, tl.float32))
        q_c = divided(wide, tl.broadcast_to(unit[:, None], [ROWS, D_C]))
        q_c = q_c.to(tl.float8e4nv).to(tl.bfloat16)
        q_r = divided(q_r.to(tl.float32), tl.broadcast_to(unit[:, None], [ROWS, D_R]))
        q_r = q_r.to(tl.bfloat16)
        factor = factor * unit

    most = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, D_C], tl.float32)
    for start in range(first, last, TOKENS):
        page = tl.load(table + sequence * table_width + start // PAGE)
        page = tl.minimum(tl.maximum(page, 0), pages - 1).to(tl.int64)
        token = start + tl.arange(0, TOKENS)
        slot = start % PAGE + tl.arange(0, TOKENS)
        live = token < last
        k_c = tl.load(content + page * content_page + slot[:, None] * content_token + c[None, :],
                      mask=live[:, None], other=0.0)
        k_r = tl.load(rope + page * rope_page + slot[:, None] * rope_token + r[None, :],
                      mask=live[:, None], other=0.0)
        if FP8:
            k_c = k_c.to(tl.bfloat16)
        score = product(q_c, tl.trans(k_c), WIDE) + product(q_r, tl.trans(k_r), WIDE)
        score = score * factor[:, None]
        if FP8:
            unit_k = tl.load(token_scale + page * scale_page + slot * scale_token, mask=live,
                             other=0.0)
            score = score * unit_k[None, :]
        score = tl.where(live[None, :] & (token[None, :] < visible[:, None]), score, float("-inf"))
        top = tl.maximum(most, tl.max(score, 1))
        base = tl.where(top == float("-inf"), 0.0, top)
        p = tl.exp2(score - base[:, None])
        fade = tl.exp2(most - base)
        total = total * fade + tl.sum(p, 1)
        if FP8:
            p = p * unit_k[None, :]
        sums = sums * fade[:, None] + product(rounded(p, WIDE), k_c, WIDE)
        most = top

    some = total > 0.0
    result = sums / tl.where(some, total, 1.0)[:, None]
    log = tl.where(some, (most + tl.log2(tl.where(some, total, 1.0))) * 0.6931471805599453,
                   float("-inf"))
    place = (sequence * rows + row).to(tl.int64) * splits + split
    if SPLIT:
        tl.store(out + place[:, None] * D_C + c[None, :], result, mask=exists[:, None])
    else:
        tl.store(out + place[:, None] * D_C + c[None, :], rounded(result, WIDE),
                 mask=exists[:, None])
    tl.store(lse + place, log, mask=exists)


@triton.jit(do_not_specialize=["splits"])
def merge(partial, partial_lse, out, lse, splits, D_C: tl.constexpr, SPLITS: tl.constexpr,
          WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, SPLITS)
    c = tl.arange(0, D_C)
    logs = tl.load(partial_lse + row * splits + s, mask=s < splits, other=float("-inf"))
    most = tl.max(logs, 0)
    base = tl.where(most == float("-inf"), 0.0, most)
    weight = tl.exp(logs - base)
    total = tl.sum(weight, 0)
    values = tl.load(partial + (row * splits + s)[:, None] * D_C + c[None, :],
                     mask=(s < splits)[:, None], other=0.0)
    result = tl.sum(values * weight[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    tl.store(out + row * D_C + c, rounded(result, WIDE))
    tl.store(lse + row, tl.where(total > 0.0, base + tl.log(total), float("-inf")))


def is_snapmla(form):
    return (form.planes.get("content", ("",))[0] == "e4m3fn"
            and form.planes.get("content.scale") == ("fp32", 1)
            and form.planes.get("rope", ("",))[0] == "bf16"
            and form.descriptor["rope"].get("scale") == "content")


def best_splits(items, tiles, processors):
    """The number of splits with the shortest estimated time, if each of `items` (a sequence's block
    of rows) has `tiles` tiles. The time is the number of rounds in which the processors take all
    splits, times the tiles of a split. FIXED further tiles stand for the start of a split and its
    share of the merge. There are at most `tiles` / FIXED splits."""
    FIXED = 4
    most = min(triton.cdiv(tiles, FIXED), 64)
    return min(range(1, most + 1),
               key=lambda n: triton.cdiv(items * n, processors) * (triton.cdiv(tiles, n) + FIXED))


class Plan:
    pass


def plan(cap, form):
    kinds = {name: kind for name, (kind, _) in form.planes.items()}
    p = Plan()
    p.fp8 = is_snapmla(form)
    if not p.fp8 and kinds != {"content": "bf16", "rope": "bf16"}:
        raise NotImplementedError("it reads bf16 and snapmla, not %s" % form.name)
    if cap.d_c & (cap.d_c - 1) or cap.d_r & (cap.d_r - 1):
        raise NotImplementedError("the widths must be powers of two, not %d and %d"
                                  % (cap.d_c, cap.d_r))
    rows = cap.heads * cap.s_q
    p.rows = min(64, max(16, triton.next_power_of_2(rows)))
    p.tokens = min(64 if p.rows == 16 else 32, form.page_tokens & -form.page_tokens)
    if p.tokens < 16:
        raise NotImplementedError("pages of %d tokens: it needs a multiple of 16"
                                  % form.page_tokens)
    p.blocks = triton.cdiv(rows, p.rows)
    device = torch.device("cpu" if INTERPRETED else "cuda")
    processors = 2 if INTERPRETED else torch.cuda.get_device_properties(
        device).multi_processor_count
    p.splits = best_splits(cap.batch * p.blocks, triton.cdiv(cap.max_tokens, p.tokens), processors)
    if p.splits > 1:
        p.partial = torch.empty(cap.batch * rows * p.splits, cap.d_c, device=device)
        p.partial_lse = torch.empty(cap.batch * rows * p.splits, device=device)
    return p


def attend(p, step, q, cache, out, lse):
    content, rope = cache.plane("content"), cache.plane("rope")
    scale = cache.plane("content.scale") if p.fp8 else content
    split = p.splits > 1
    partial_attention[(step.batch, p.blocks, p.splits)](
        q, content, rope, scale, step.seqlens, step.block_table, p.partial if split else out,
        p.partial_lse if split else lse, step.softmax_scale, step.heads, step.s_q, p.splits,
        step.block_table.shape[1], cache.pages, content.stride(0), content.stride(1),
        rope.stride(0), rope.stride(1), scale.stride(0), scale.stride(1), D_C=step.d_c,
        D_R=step.d_r, PAGE=step.page_tokens, ROWS=p.rows, TOKENS=p.tokens, FP8=p.fp8,
        SPLIT=split, WIDE=INTERPRETED, num_warps=8 if p.rows > 16 else 4, num_stages=2)
    if split:
        merge[(step.batch * step.s_q * step.heads,)](
            p.partial, p.partial_lse, out, lse, p.splits, D_C=step.d_c,
            SPLITS=triton.next_power_of_2(p.splits), WIDE=INTERPRETED, num_warps=4)
