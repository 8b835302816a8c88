#!/usr/bin/env python3
"""Rewrites a model with grouped-query attention (the Llama architecture) for MLA.

    grouped.py SOURCE OUT --map rope|content [--pad COLUMNS]

SOURCE is a folder with config.json and safetensors, or a GGUF file of llama.cpp, whose weights are then
dequantised. OUT becomes a checkpoint that `snapmla` opens. It needs numpy and safetensors; a GGUF file also needs
the package gguf.

The heads of a group share one key and one value. Both are products of the hidden state, so a cache row can hold
them side by side, for all groups. `kv_b_proj` then only chooses the columns of a head's group, and there is no norm.

    --map rope      the values are the content, the keys the RoPE part, which an FP8 cache leaves in BF16.
                    A query is zero in the columns of other groups. qk_nope_head_dim is 0.
    --map content   values and keys are the content, padded with zeros to a multiple of --pad columns (512, as the
                    kernels for Hopper need it), so that keys and queries are quantised too. The RoPE part is 64 columns of zeros.

Both compute what the source computes, with the sums in another order."""
import argparse
import json
import pathlib
import shutil

import numpy as np

ROPE = 64  # columns of zeros


# ---- sources: (config in Hugging Face's keys, tensors in its names and layout) ----

def bf16_to_f32(raw, shape):
    return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)


def read_safetensors(path):
    """Yields (name, float32 array). Reads BF16, which numpy does not have."""
    data = path.read_bytes()
    head = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:8 + head]).items():
        if name == "__metadata__":
            continue
        raw = np.frombuffer(data, np.uint8)[8 + head:][slice(*entry["data_offsets"])]
        kind, shape = entry["dtype"], entry["shape"]
        yield name, bf16_to_f32(raw, shape) if kind == "BF16" else \
            raw.view({"F32": "<f4", "F16": "<f2"}[kind]).astype(np.float32).reshape(shape)


def from_folder(path):
    tensors = {}
    for file in sorted(path.glob("*.safetensors")):
        tensors |= read_safetensors(file)
    return json.loads((path / "config.json").read_text()), tensors


GGUF_NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
              "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
              "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def gguf_name(name):
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
                "output.weight": "lm_head.weight"}[name]
    _, layer, part, last = name.split(".")
    return f"model.layers.{layer}.{GGUF_NAMES[part]}.{last}"


def unpermute(w, heads):
    """llama.cpp stores the two numbers of a RoPE pair side by side, Hugging Face half a head apart."""
    rows, columns = w.shape
    return w.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def from_gguf(path, out):
    import gguf
    reader = gguf.GGUFReader(path)
    value = {key: field.contents() for key, field in reader.fields.items()}
    config = {
        "vocab_size": len(value["tokenizer.ggml.tokens"]),
        "hidden_size": value["llama.embedding_length"], "num_hidden_layers": value["llama.block_count"],
        "intermediate_size": value["llama.feed_forward_length"],
        "num_attention_heads": value["llama.attention.head_count"],
        "num_key_value_heads": value["llama.attention.head_count_kv"],
        "max_position_embeddings": value["llama.context_length"],
        "rms_norm_eps": value["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": value["llama.rope.freq_base"],
        "bos_token_id": value["tokenizer.ggml.bos_token_id"], "eos_token_id": value["tokenizer.ggml.eos_token_id"]}
    tensors = {}
    for t in reader.tensors:
        name = gguf_name(t.name)
        w = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if ".q_proj" in name or ".k_proj" in name:
            w = unpermute(w, config["num_attention_heads" if ".q_proj" in name else "num_key_value_heads"])
        tensors[name] = w
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    write_tokenizer(value, out)
    return config, tensors


def write_tokenizer(value, out):
    """The tokenizer of a GGUF file in the files of Hugging Face."""
    if value["tokenizer.ggml.model"] != "gpt2" or value["tokenizer.ggml.pre"] != "smollm":
        raise SystemExit("only the tokenizer of SmolLM is known")
    tokens, kinds = value["tokenizer.ggml.tokens"], value["tokenizer.ggml.token_type"]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    write_json(out / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": i, "content": t} | plain for i, t in enumerate(tokens) if kinds[i] == 3],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": value["tokenizer.ggml.merges"]}})
    write_json(out / "tokenizer_config.json", {
        "bos_token": tokens[value["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[value["tokenizer.ggml.eos_token_id"]],
        "chat_template": value["tokenizer.chat_template"], "tokenizer_class": "PreTrainedTokenizerFast"})


# ---- the two maps ----

class Shape:
    def __init__(self, config, by_content, pad):
        self.by_content = by_content
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        self.size = config.get("head_dim") or config["hidden_size"] // self.heads
        self.wide = self.groups * self.size  # all keys, or all values
        self.content = -(-2 * self.wide // pad) * pad if by_content else self.wide
        self.rope = ROPE if by_content else self.wide
        self.nope = self.size if by_content else 0

    def group(self, head):
        """The columns of a head's group among all keys, or among all values."""
        first = head // (self.heads // self.groups) * self.size
        return slice(first, first + self.size)


def queries(s, q):
    out = np.zeros((s.heads, s.nope + s.rope, q.shape[1]), np.float32)
    for head in range(s.heads):
        out[head, slice(0, s.size) if s.by_content else s.group(head)] = q[head * s.size:(head + 1) * s.size]
    return out.reshape(-1, q.shape[1])


def rows_of_cache(s, k, v):
    out = np.zeros((s.content + s.rope, k.shape[1]), np.float32)
    out[:s.wide] = v
    first = s.wide if s.by_content else s.content
    out[first:first + s.wide] = k
    return out


def choice(s):
    """kv_b_proj: for each head the columns of its key, if that is in the content, and those of its value."""
    one = np.eye(s.content, dtype=np.float32)
    parts = []
    for head in range(s.heads):
        if s.by_content:
            parts.append(one[s.wide:][s.group(head)])
        parts.append(one[s.group(head)])
    return np.concatenate(parts)


def rewrite(s, tensors):
    out = {}
    for name, w in tensors.items():
        stem = name.partition("self_attn.")[0]
        if name.endswith((".k_proj.weight", ".v_proj.weight", ".rotary_emb.inv_freq")):
            continue
        if name.endswith(".q_proj.weight"):
            here = stem + "self_attn."
            out[here + "q_proj.weight"] = queries(s, w)
            out[here + "kv_a_proj_with_mqa.weight"] = rows_of_cache(
                s, tensors[here + "k_proj.weight"], tensors[here + "v_proj.weight"])
            out[here + "kv_b_proj.weight"] = choice(s)
        elif ".self_attn." in name and not name.endswith(".o_proj.weight"):
            raise SystemExit(f"{name} is not supported")  # a bias, or a norm of queries
        else:
            out[name] = w
    return out


def rewrite_config(s, config):
    keep = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "max_position_embeddings", "rms_norm_eps", "rope_theta", "tie_word_embeddings", "bos_token_id",
            "eos_token_id"]
    rope = config.get("rope_parameters") or {}  # newer files have rope_theta and rope_scaling there
    if rope.get("rope_type", "default") != "default":
        raise SystemExit("scaled RoPE is not supported")
    config = config | {key: rope[key] for key in ("rope_theta",) if key in rope}
    for key in ("rope_scaling", "attention_bias", "mlp_bias", "sliding_window"):
        if config.get(key):
            raise SystemExit(f"{key} is not supported")
    return {key: config[key] for key in keep if key in config} | {
        "architectures": ["GroupedQueryMlaForCausalLM"], "model_type": "grouped_query_mla", "head_dim": s.size,
        "kv_lora_rank": s.content, "qk_nope_head_dim": s.nope, "qk_rope_head_dim": s.rope, "v_head_dim": s.size,
        "hidden_act": "silu", "torch_dtype": "bfloat16"} | (
            {"rotated_content": [s.wide, s.wide]} if s.by_content else {})


# ---- the result ----

def write_json(path, what):
    path.write_text(json.dumps(what, indent=1, ensure_ascii=False) + "\n")


def f32_to_bf16(x):
    """Rounds to nearest, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def write_safetensors(path, tensors):
    head, at = {}, 0
    for name, w in tensors.items():
        head[name] = {"dtype": "BF16", "shape": list(w.shape), "data_offsets": [at, at + 2 * w.size]}
        at += 2 * w.size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for w in tensors.values():
            file.write(f32_to_bf16(w).tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--map", choices=["rope", "content"], required=True)
    parser.add_argument("--pad", type=int, default=512)
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    config, tensors = from_folder(args.source) if args.source.is_dir() else from_gguf(args.source, args.out)
    shape = Shape(config, args.map == "content", args.pad)
    write_safetensors(args.out / "model.safetensors", rewrite(shape, tensors))
    write_json(args.out / "config.json", rewrite_config(shape, config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
        if args.source.is_dir() and (args.source / name).exists():
            shutil.copy(args.source / name, args.out / name)


if __name__ == "__main__":
    main()
