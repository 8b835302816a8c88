"""The weights of a checkpoint as a state of model.py, also for another tokenizer.

A token that the checkpoint's vocabulary has keeps its row of the embedding and of the output. A new
token gets the mean row of the checkpoint's tokens into which its text is split.
"""
import pathlib

import tokenizers
import torch
from safetensors import safe_open

VOCABULARY = "embed_tokens.weight", "lm_head.weight"


def read(folder):
    out = {}
    for file in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(file, "pt") as f:
            out |= {name: f.get_tensor(name).float() for name in f.keys()}
    return out


def rows_of(folder, tokenizer):
    """For each token of the new tokenizer, the ids of the old tokens into which its text is split."""
    old = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    new = tokenizers.Tokenizer.from_file(str(tokenizer))
    known = old.get_vocab()
    for i in range(new.get_vocab_size()):
        text = new.id_to_token(i)
        if text in known:
            yield [known[text]]
        else:
            yield [old.token_to_id(t.value) for t in old.model.tokenize(text)]


def state(folder, tokenizer, like):
    """`like` has the names and shapes of the model."""
    have, out = read(folder), {}
    rows = list(rows_of(folder, tokenizer))
    for name, x in like.items():
        full = name if name.startswith("lm_head") else "model." + name
        stem, _, last = full.rpartition(".")
        if x.dim() == 3:
            out[name] = torch.stack([have[f"{stem}.experts.{e}.{last}.weight"] for e in range(len(x))])
        elif last == "bias":
            out[name] = have[f"{stem}.gate.e_score_correction_bias"]
        elif name in VOCABULARY:
            out[name] = torch.stack([have[full][ids].mean(0) for ids in rows])
        else:
            out[name] = have[full]
        if out[name].shape != x.shape:
            raise ValueError(f"{name}: the checkpoint has {list(out[name].shape)}, the model {list(x.shape)}")
    return out
