"""Causal attention within documents, in several versions. train.py uses the first of them that works
on the device.

Each version takes the document numbers of a step, [1, length] and never decreasing. It returns a
function of q, k, v [1, heads, length, width]. Everything can be used inside torch.compile.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.attention.varlen import varlen_attn

BLOCK = 128
PART = 2048  # queries
# PyTorch has no block sizes for a width of 96. It computes that width as 128, so the sizes for 128
# fit.
TUNED = {"fwd_BLOCK_M": 128, "fwd_BLOCK_N": 64, "fwd_num_stages": 3, "fwd_num_warps": 8}


def _by_rows(rows, attention):
    """Splits one sequence into rows and calls attention(q, k, v) on [rows, heads, length, width]."""
    def attend(*qkv):
        q, k, v = (x[0].unflatten(1, (rows, -1)).transpose(0, 1) for x in qkv)
        return attention(q, k, v).transpose(0, 1).flatten(1, 2)[None]
    return attend


def dense(rows):
    """Uses a mask with every pair of a row: for small sizes, and to check the other versions. Queries
    are taken in parts, so that long rows need little memory."""
    def of(documents):
        ids = documents.view(rows, -1)
        at = torch.arange(ids.shape[1], device=ids.device)

        def part(q, k, v, first):
            end = first + q.shape[2]
            mask = (ids[:, None, first:end, None] == ids[:, None, None, :end]) & (at[first:end, None] >= at[:end])
            return F.scaled_dot_product_attention(q, k[:, :, :end], v[:, :, :end], attn_mask=mask)

        def attention(q, k, v):
            return torch.cat([part(q[:, :, i:i + PART], k, v, i) for i in range(0, q.shape[2], PART)], 2)
        return _by_rows(rows, attention)
    return of


def _ordered(blocks):
    """The number of set blocks in each row, and the order of blocks: set ones first, ascending."""
    count = blocks.sum(-1, dtype=torch.int32)
    order = torch.argsort(blocks.to(torch.int32), dim=-1, descending=True, stable=True)
    return count[None, None].contiguous(), order.to(torch.int32)[None, None].contiguous()


def block_mask(documents):
    """The 128 x 128 blocks in which some pairs are not masked, and those in which no pair is."""
    ids = documents[0]
    first, last = ids.view(-1, BLOCK)[:, 0], ids.view(-1, BLOCK)[:, -1]
    at = torch.arange(first.numel(), device=ids.device)
    causal = at[:, None] >= at[None, :]
    touches = (first[:, None] <= last[None, :]) & (last[:, None] >= first[None, :])
    whole = (at[:, None] > at[None, :]) & (first[:, None] == last[None, :]) & (last[:, None] == first[None, :])

    def sees(b, h, q, k):
        return (q >= k) & (ids[q] == ids[k])
    return BlockMask.from_kv_blocks(*_ordered(causal & touches & ~whole), *_ordered(whole), BLOCK_SIZE=BLOCK,
                                    mask_mod=sees)


def flex(documents, pad=0):
    mask = block_mask(documents)

    def attend(q, k, v):
        scale = q.shape[-1] ** -0.5
        if pad:
            q, k = F.pad(q, (0, pad)), F.pad(k, (0, pad))
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()  # the CPU code needs contiguous tensors
        return flex_attention(q, k, v, block_mask=mask, scale=scale, kernel_options=TUNED if q.is_cuda else None)
    return attend


def flex_padded(documents):
    """Pads queries and keys with zeros from 96 to 128, for compilers that need powers of two."""
    return flex(documents, 32)


def bounds(documents):
    """The starts of documents, then `length` repeated: int32 [length / 128 + 1]."""
    ids, length = documents[0], documents.shape[1]
    at = torch.arange(length, device=ids.device)
    begins = torch.cat((torch.ones_like(ids[:1], dtype=torch.bool), ids[1:] != ids[:-1]))
    return F.pad(torch.where(begins, at, length).sort().values[:length // 128], (0, 1), value=length).to(torch.int32)


def ragged(longest):
    """Uses fused kernels for several lengths. Documents must have at least 128 tokens on average."""
    def of(documents):
        cuts = bounds(documents)

        def attend(q, k, v):
            wide = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
            q, k, wide = (x[0].transpose(0, 1).contiguous() for x in (q, k, wide))
            out = varlen_attn(q, k, wide, cuts, cuts, longest, longest, window_size=(-1, 0))
            return out[..., :v.shape[-1]].transpose(0, 1)[None]
        return attend
    return of


def across(rows):
    """Uses fused kernels, in which a token also attends to the earlier documents of its row. They
    are noise, which the model learns to ignore. So this is the last choice."""
    def causal(q, k, v):
        wide = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
        return F.scaled_dot_product_attention(q, k, wide, is_causal=True)[..., :v.shape[-1]]
    return lambda documents: _by_rows(rows, causal)
