"""Causal attention within documents, several ways: the fastest that works on the device is taken.

Each takes the documents of a step, [1, length] with numbers that never fall, and gives a function of q, k, v
[1, heads, length, width]. All of it can stand within torch.compile.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.attention.varlen import varlen_attn

BLOCK = 128
# For queries and keys 96 wide PyTorch has no sizes of its own; those for 128 fit, as which they are computed.
TUNED = {"fwd_BLOCK_M": 128, "fwd_BLOCK_N": 64, "fwd_num_stages": 3, "fwd_num_warps": 8}


def _by_rows(rows, attention):
    """attention(q, k, v) on [rows, heads, length, width] of what is one sequence."""
    def attend(*qkv):
        q, k, v = (x[0].unflatten(1, (rows, -1)).transpose(0, 1) for x in qkv)
        return attention(q, k, v).transpose(0, 1).flatten(1, 2)[None]
    return attend


def dense(rows):
    """A mask of every pair of a row: for small sizes, and to check the others."""
    def of(documents):
        ids = documents.view(rows, -1)
        mask = (ids[:, None, :, None] == ids[:, None, None, :]) & torch.ones(
            ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
        return _by_rows(rows, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    return of


def _ordered(blocks):
    """How many blocks of each row are set, and which: the set ones first, ascending."""
    count = blocks.sum(-1, dtype=torch.int32)
    order = torch.argsort(blocks.to(torch.int32), dim=-1, descending=True, stable=True)
    return count[None, None].contiguous(), order.to(torch.int32)[None, None].contiguous()


def block_mask(documents):
    """Which 128 x 128 blocks hold pairs that see each other, and in which of them all pairs do."""
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
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()  # its code for the CPU reads others wrongly
        return flex_attention(q, k, v, block_mask=mask, scale=scale, kernel_options=TUNED if q.is_cuda else None)
    return attend


def flex_padded(documents):
    """With zeros behind queries and keys, for compilers that want powers of two: 96 becomes 128."""
    return flex(documents, 32)


def bounds(documents):
    """Where documents begin, and behind the last the end again and again: int32 [length / 128 + 1]."""
    ids, length = documents[0], documents.shape[1]
    at = torch.arange(length, device=ids.device)
    begins = torch.cat((torch.ones_like(ids[:1], dtype=torch.bool), ids[1:] != ids[:-1]))
    return F.pad(torch.where(begins, at, length).sort().values[:length // 128], (0, 1), value=length).to(torch.int32)


def ragged(longest):
    """By the fused kernels for sequences of many lengths: documents of at least 128 tokens on average."""
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
    """Without regard to documents, through the fused kernels: what stands before a document in its row is noise
    that the model learns to ignore. The last resort."""
    def causal(q, k, v):
        wide = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
        return F.scaled_dot_product_attention(q, k, wide, is_causal=True)[..., :v.shape[-1]]
    return lambda documents: _by_rows(rows, causal)
