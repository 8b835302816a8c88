#!/usr/bin/env python3
"""Compares the decoding speed of one sequence between snapmla and llama.cpp. Both run the same random model, of the
DeepSeek-V3 architecture and about as large as the shipped model, in turn on the same cores. Its BF16 numbers are
written as a checkpoint and as GGUF.

    pip install numpy gguf llama-cpp-python tokenizers
    python3 generator/test/speed/against_llama.py [--threads 2] [--rounds 5] [--tokens 256] [--program build/snapmla]

Prints how many of both programs' greedy tokens agree until they first differ, and tokens per second at a short
and a long context. The figure of a round is that of its median token, so that other programs on the machine
change it little. The output has the median of the rounds and their range. Development only.
"""
import argparse
import ctypes
import json
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import tempfile
import time

import gguf
import llama_cpp
import numpy as np
import tokenizers

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = dict(
    architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", hidden_size=320,
    intermediate_size=1024, moe_intermediate_size=192, num_hidden_layers=5, num_attention_heads=16,
    num_key_value_heads=16, n_shared_experts=1, n_routed_experts=8, num_experts_per_tok=2,
    first_k_dense_replace=1, moe_layer_freq=1, q_lora_rank=128, kv_lora_rank=512,
    qk_nope_head_dim=64, qk_rope_head_dim=64, v_head_dim=64, vocab_size=4096, hidden_act="silu",
    max_position_embeddings=8192, rms_norm_eps=1e-6, rope_theta=10000.0, topk_method="noaux_tc",
    n_group=1, topk_group=1, scoring_func="sigmoid", norm_topk_prob=True,
    routed_scaling_factor=2.5, tie_word_embeddings=False, torch_dtype="bfloat16")


def shapes(c):
    """Name, shape and spread of every tensor of the checkpoint."""
    h, heads, qk = c["hidden_size"], c["num_attention_heads"], c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    yield "model.embed_tokens.weight", (c["vocab_size"], h)
    yield "lm_head.weight", (c["vocab_size"], h)
    yield "model.norm.weight", (h,)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", (h,)
        yield p + "post_attention_layernorm.weight", (h,)
        a = p + "self_attn."
        yield a + "q_a_proj.weight", (c["q_lora_rank"], h)
        yield a + "q_a_layernorm.weight", (c["q_lora_rank"],)
        yield a + "q_b_proj.weight", (heads * qk, c["q_lora_rank"])
        yield a + "kv_a_proj_with_mqa.weight", (c["kv_lora_rank"] + c["qk_rope_head_dim"], h)
        yield a + "kv_a_layernorm.weight", (c["kv_lora_rank"],)
        yield a + "kv_b_proj.weight", (heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), c["kv_lora_rank"])
        yield a + "o_proj.weight", (h, heads * c["v_head_dim"])
        if i < c["first_k_dense_replace"]:
            yield from ffn(p + "mlp.", h, c["intermediate_size"])
            continue
        yield p + "mlp.gate.weight", (c["n_routed_experts"], h)
        yield p + "mlp.gate.e_score_correction_bias", (c["n_routed_experts"],)
        yield from ffn(p + "mlp.shared_experts.", h, c["moe_intermediate_size"] * c["n_shared_experts"])
        for e in range(c["n_routed_experts"]):
            yield from ffn(f"{p}mlp.experts.{e}.", h, c["moe_intermediate_size"])


def ffn(p, hidden, inner):
    yield p + "gate_proj.weight", (inner, hidden)
    yield p + "up_proj.weight", (inner, hidden)
    yield p + "down_proj.weight", (hidden, inner)


def make_weights(c):
    rng = np.random.default_rng(1)
    weights = {}
    for name, shape in shapes(c):
        if "norm" in name:
            x = 1 + 0.1 * rng.standard_normal(shape, np.float32)
        elif "bias" in name:
            x = 0.02 * rng.standard_normal(shape, np.float32)
        else:
            x = rng.standard_normal(shape, np.float32) / np.sqrt(shape[-1], dtype=np.float32)
        u = x.view(np.uint32)  # to the nearest BF16
        weights[name] = ((u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return weights


def strengthen(c, weights):
    """Makes the last eight RoPE columns of the keys outliers of up to 1e3, and those of the queries smaller."""
    for i in range(c["num_hidden_layers"]):
        a = f"model.layers.{i}.self_attn."
        weights[a + "kv_a_proj_with_mqa.weight"][-8:] *= 256
        weights[a + "q_b_proj.weight"].reshape(c["num_attention_heads"], -1, c["q_lora_rank"])[:, -8:] /= 16


def write_checkpoint(folder, c, weights):
    (folder / "config.json").write_text(json.dumps(c))
    shutil.copy(HERE.parent / "tokenizer/bytes/tokenizer.json", folder / "tokenizer.json")
    header, data = {}, b""
    for name, x in weights.items():
        f32 = "bias" in name
        raw = x.tobytes() if f32 else (x.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "F32" if f32 else "BF16", "shape": x.shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_gguf(path, c, weights):
    w = gguf.GGUFWriter(path, "deepseek2")
    nope, rope, v = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    heads, rank = c["num_attention_heads"], c["kv_lora_rank"]
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(1)
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_rope_freq_base(c["rope_theta"])
    w.add_rope_dimension_count(rope)
    w.add_key_length(rank + rope)
    w.add_value_length(rank)
    w.add_key_length_mla(nope + rope)
    w.add_value_length_mla(v)
    w.add_q_lora_rank(c["q_lora_rank"])
    w.add_kv_lora_rank(rank)
    w.add_vocab_size(c["vocab_size"])
    w.add_leading_dense_block_count(c["first_k_dense_replace"])
    w.add_expert_count(c["n_routed_experts"])
    w.add_expert_used_count(c["num_experts_per_tok"])
    w.add_expert_shared_count(c["n_shared_experts"])
    w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    w.add_expert_weights_scale(c["routed_scaling_factor"])
    w.add_expert_weights_norm(c["norm_topk_prob"])
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    w.add_tokenizer_model("no_vocab")

    def put(name, x, f32=False):
        kind = gguf.GGMLQuantizationType.F32 if f32 or x.ndim == 1 else gguf.GGMLQuantizationType.BF16
        w.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(x), kind), raw_dtype=kind)

    put("token_embd.weight", weights["model.embed_tokens.weight"])
    put("output.weight", weights["lm_head.weight"])
    put("output_norm.weight", weights["model.norm.weight"])
    names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm",
             "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
             "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
             "mlp.shared_experts.down_proj": "ffn_down_shexp"}
    for i in range(c["num_hidden_layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        for theirs, ours in names.items():
            if p + theirs + ".weight" in weights:
                put(b + ours + ".weight", weights[p + theirs + ".weight"])
        kv_b = weights[p + "self_attn.kv_b_proj.weight"].reshape(heads, nope + v, rank)
        put(b + "attn_k_b.weight", kv_b[:, :nope].transpose(0, 2, 1))
        put(b + "attn_v_b.weight", kv_b[:, nope:])
        if i < c["first_k_dense_replace"]:
            continue
        put(b + "ffn_gate_inp.weight", weights[p + "mlp.gate.weight"], f32=True)
        put(b + "exp_probs_b.bias", weights[p + "mlp.gate.e_score_correction_bias"])
        for part in "gate", "up", "down":
            put(f"{b}ffn_{part}_exps.weight", np.stack(
                [weights[f"{p}mlp.experts.{e}.{part}_proj.weight"] for e in range(c["n_routed_experts"])]))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


class Llama:
    def __init__(self, path, threads, context):
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p())
        self.model = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params())
        p = llama_cpp.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_threads, p.n_threads_batch = context, 512, threads, threads
        self.ctx = llama_cpp.llama_init_from_model(self.model, p)
        assert self.model and self.ctx

    @staticmethod
    @llama_cpp.llama_log_callback
    def quiet(level, text, data):
        pass

    def decode(self, tokens):
        for at in range(0, len(tokens), 512):
            part = (llama_cpp.llama_token * len(tokens[at:at + 512]))(*tokens[at:at + 512])
            assert llama_cpp.llama_decode(self.ctx, llama_cpp.llama_batch_get_one(part, len(part))) == 0

    def generate(self, prompt, n, vocab):
        """Returns the greedy tokens, and the tokens per second that follow from the median gap between them."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.ctx), True)
        self.decode(prompt)
        out, gaps = [], []
        last = time.perf_counter()
        for i in range(n):
            row = llama_cpp.llama_get_logits_ith(self.ctx, -1)
            out.append(int(np.argmax(np.ctypeslib.as_array(row, (vocab,)))))
            now = time.perf_counter()
            gaps.append(now - last)
            last = now
            if i + 1 < n:
                self.decode(out[-1:])
        return out, 1 / statistics.median(gaps[1:])


def run_ours(args, folder, text, context):
    command = [args.program, "generate", "--file", str(text), "--chat-template", "none", "--temperature", "0",
               "--max-tokens", str(args.tokens), "--threads", str(args.threads), "--context", str(context),
               "--precision", args.precision, "--stats", "--json", str(folder)]
    r = subprocess.run(command, check=True, capture_output=True, text=True)
    ids = json.loads(r.stdout)["answers"][0]["ids"]
    return ids, 1000 / float(re.search(r"gaps p50 ([\d.]+) ms", r.stderr)[1])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", default="build/snapmla")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--tokens", type=int, default=128)
    a.add_argument("--contexts", default="16,4096")
    a.add_argument("--precision", default="bf16")
    a.add_argument("--keep", help="a folder for the two models")
    a.add_argument("--outliers", action="store_true", help="only make the checkpoint, its slowest RoPE pairs' "
                   "keys 256 times as large, as real models have them")
    args = a.parse_args()
    folder = pathlib.Path(args.keep or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    weights = make_weights(CONFIG)
    if args.outliers:
        strengthen(CONFIG, weights)
        write_checkpoint(folder, CONFIG | {"max_position_embeddings": 1 << 17}, weights)
        return
    write_checkpoint(folder, CONFIG, weights)
    write_gguf(folder / "model.gguf", CONFIG, weights)
    print(f"{sum(x.size for x in weights.values()) / 1e6:.1f} M parameters, {args.threads} threads, "
          f"{args.tokens} tokens, llama-cpp-python {llama_cpp.__version__}")
    vocab = CONFIG["vocab_size"]
    for context in map(int, args.contexts.split(",")):
        text = folder / "prompt.txt"
        text.write_text("".join(chr(97 + (i * i + i // 7) % 26) for i in range(context)))
        room = context + args.tokens + 64
        prompt = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text.read_text()).ids
        llama = Llama(folder / "model.gguf", args.threads, room)
        ours, theirs = [], []
        for _ in range(args.rounds):
            ids, speed = run_ours(args, folder, text, room)
            ours.append(speed)
            tokens, speed = llama.generate(prompt, args.tokens, vocab)
            theirs.append(speed)
        ratios = sorted(o / t for o, t in zip(ours, theirs))
        show = lambda x: f"{statistics.median(x):.0f} ({min(x):.0f}..{max(x):.0f})"
        same = next((i for i, (x, y) in enumerate(zip(ids, tokens)) if x != y), len(ids))
        print(f"prompt of {len(prompt)}: ours {show(ours)} tokens/s, llama.cpp {show(theirs)}, ratio "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f}), {same} tokens agree", flush=True)


main()
