"""The embedded model: a small version of DeepSeek-V3's architecture (MLA, and experts with sigmoid
routing and a bias that balances them). It is written for training. Keys and values are expanded.
Every expert is evaluated for every token and weighted by its gate. This is exact and, at this size,
faster than sorting tokens by expert.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    """The fields have the names of config.json."""
    vocab_size: int = 1536
    hidden_size: int = 256
    num_hidden_layers: int = 5
    num_attention_heads: int = 16
    q_lora_rank: int = 128
    kv_lora_rank: int = 512
    qk_nope_head_dim: int = 32
    qk_rope_head_dim: int = 64
    v_head_dim: int = 32
    intermediate_size: int = 1024
    first_k_dense_replace: int = 1
    n_routed_experts: int = 8
    n_shared_experts: int = 1
    num_experts_per_tok: int = 2
    moe_intermediate_size: int = 160
    routed_scaling_factor: float = 1.0
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 32768


SHAPES = {
    "model": Shape(),
    "probe": Shape(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, q_lora_rank=96, kv_lora_rank=96,
                   qk_nope_head_dim=16, qk_rope_head_dim=32, intermediate_size=256, n_routed_experts=2,
                   num_experts_per_tok=1, moe_intermediate_size=96),
    "tiny": Shape(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, q_lora_rank=64, kv_lora_rank=64,
                  qk_rope_head_dim=32, intermediate_size=384, n_routed_experts=4, moe_intermediate_size=96),
}


def rotary_tables(shape, positions):
    """cosine and sine [length, rope / 2], FP32."""
    pairs = torch.arange(0, shape.qk_rope_head_dim, 2, device=positions.device, dtype=torch.float32)
    angles = torch.outer(positions.float(), shape.rope_theta ** (-pairs / shape.qk_rope_head_dim))
    return angles.cos(), angles.sin()


def rotate(x, cosine, sine):
    """Rotates x [batch, length, heads, rope]. The two numbers of a pair are adjacent."""
    pair = x.float().unflatten(-1, (-1, 2))
    a, b = pair[..., 0], pair[..., 1]
    c, s = cosine[:, None], sine[:, None]
    return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2).to(x.dtype)


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        heads, width = s.num_attention_heads, s.qk_nope_head_dim + s.qk_rope_head_dim
        self.q_a_proj = nn.Linear(s.hidden_size, s.q_lora_rank, bias=False)
        self.q_a_layernorm = Norm(s.q_lora_rank, 1e-6)
        self.q_b_proj = nn.Linear(s.q_lora_rank, heads * width, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(s.hidden_size, s.kv_lora_rank + s.qk_rope_head_dim, bias=False)
        self.kv_a_layernorm = Norm(s.kv_lora_rank, 1e-6)
        self.kv_b_proj = nn.Linear(s.kv_lora_rank, heads * (s.qk_nope_head_dim + s.v_head_dim), bias=False)
        self.o_proj = nn.Linear(heads * s.v_head_dim, s.hidden_size, bias=False)

    def forward(self, x, tables, attend):
        s, heads = self.s, self.s.num_attention_heads
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))).unflatten(-1, (heads, -1))
        latent, k_rope = self.kv_a_proj_with_mqa(x).split([s.kv_lora_rank, s.qk_rope_head_dim], -1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent)).unflatten(-1, (heads, -1))
        k_nope, v = kv.split([s.qk_nope_head_dim, s.v_head_dim], -1)
        q_nope, q_rope = q.split([s.qk_nope_head_dim, s.qk_rope_head_dim], -1)
        k_rope = rotate(k_rope[:, :, None], *tables).expand(-1, -1, heads, -1)
        q = torch.cat((q_nope, rotate(q_rope, *tables)), -1)
        k = torch.cat((k_nope, k_rope), -1)
        out = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.o_proj(out.transpose(1, 2).flatten(-2))


class Dense(nn.Module):
    def __init__(self, s, width):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden_size, width, bias=False)
        self.up_proj = nn.Linear(s.hidden_size, width, bias=False)
        self.down_proj = nn.Linear(width, s.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """noaux_tc: the experts with the largest sigmoid + bias are chosen. Their weights are their
    sigmoids, divided by the sum of these."""

    def __init__(self, s):
        super().__init__()
        self.s = s
        n, inner = s.n_routed_experts, s.moe_intermediate_size
        self.gate = nn.Linear(s.hidden_size, n, bias=False)
        self.gate_proj = nn.Parameter(torch.empty(n, inner, s.hidden_size))
        self.up_proj = nn.Parameter(torch.empty(n, inner, s.hidden_size))
        self.down_proj = nn.Parameter(torch.empty(n, s.hidden_size, inner))
        self.shared_experts = Dense(s, s.n_shared_experts * inner)
        self.register_buffer("bias", torch.zeros(n))
        self.register_buffer("load", torch.zeros(n), persistent=False)

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            scores = F.linear(x.float(), self.gate.weight.float()).sigmoid()
        chosen = (scores + self.bias).topk(self.s.num_experts_per_tok, -1).indices
        mask = torch.zeros_like(scores).scatter(-1, chosen, 1.0)
        if self.training:
            self.load += mask.detach().flatten(0, -2).sum(0)
        weights = scores * mask
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.s.routed_scaling_factor
        inner = F.silu(F.linear(x, self.gate_proj.flatten(0, 1))) * F.linear(x, self.up_proj.flatten(0, 1))
        inner = inner.unflatten(-1, (self.s.n_routed_experts, -1)) * weights.unsqueeze(-1).to(inner.dtype)
        out = F.linear(inner.flatten(-2), self.down_proj.transpose(0, 1).flatten(1))
        return out + self.shared_experts(x)

    @torch.no_grad()
    def balance(self, step):
        """As in DeepSeek-V3, the bias falls for experts with more than the mean load and rises for
        others."""
        self.bias += step * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


class Layer(nn.Module):
    def __init__(self, s, index):
        super().__init__()
        self.input_layernorm = Norm(s.hidden_size, s.rms_norm_eps)
        self.self_attn = Attention(s)
        self.post_attention_layernorm = Norm(s.hidden_size, s.rms_norm_eps)
        self.mlp = Dense(s, s.intermediate_size) if index < s.first_k_dense_replace else Experts(s)

    def forward(self, x, tables, attend):
        x = x + self.self_attn(self.input_layernorm(x), tables, attend)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape, i) for i in range(shape.num_hidden_layers))
        self.norm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        self.initialise()

    def initialise(self):
        behind = 1 / math.sqrt(2 * self.shape.num_hidden_layers)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                spread = p.shape[-1] ** -0.5 if "embed" not in name else 1.0
                nn.init.normal_(p, 0, spread * (behind if "down_proj" in name or "o_proj" in name else 1))
        nn.init.normal_(self.lm_head.weight, 0, 0.02)

    def forward(self, tokens, positions, attend):
        """tokens [batch, length], positions [length] -> logits; attend(q, k, v) on [batch, heads,
        length, width]. Only differences of positions matter."""
        x = self.embed_tokens(tokens)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        tables = rotary_tables(self.shape, positions)
        for layer in self.layers:
            x = layer(x, tables, attend)
        return self.lm_head(self.norm(x))

    def balance(self, step):
        for layer in self.layers:
            if isinstance(layer.mlp, Experts):
                layer.mlp.balance(step)
