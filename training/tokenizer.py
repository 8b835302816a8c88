#!/usr/bin/env python3
"""Trains the tokenizer of the embedded model on its own problems and long texts: byte-level BPE,
with single digits.

    tokenizer.py PROGRAM OUT        PROGRAM: the built snapmla; OUT: a folder, e.g. training/tokenizer

Each sign and each digit is one token, so that a number or an equation is always split in the same
way. Only letters of one word are merged.
"""
import json
import pathlib
import subprocess
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 1536
PROBLEMS, CHATS = 20000, 6000
KINDS = "needle,variables,count,order,copy,turns"  # the others are lists of codes or of invented words
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
SPLIT = r"[0-9]| ?[A-Z]?[a-z]+| ?[A-Z]|[:;,] ?|[^\sA-Za-z0-9]|\s"
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '<｜User｜>' + m['content'] }}"
            "{% elif m['role'] == 'assistant' %}{{ '<｜Assistant｜>' + m['content'] + eos_token }}"
            "{% else %}{{ m['content'] }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}")


def texts(program):
    command = [program, "synth", "--split", "train", "--solutions", "--seed", "1", "--count", str(PROBLEMS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as rows:
        for line in rows.stdout:
            row = json.loads(line)
            yield row["prompt"]
            yield row["solution"]
    command = [program, "synth", "--split", "train", "--long", KINDS, "--length", "1024", "--seed", "1", "--count", str(CHATS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as rows:
        for line in rows.stdout:
            for message in json.loads(line)["messages"]:
                yield message["content"]


def main(program, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(texts(program), trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=[BEGIN, END, USER, ASSISTANT]))
    tok.add_special_tokens([AddedToken(t, normalized=False) for t in (BEGIN, END, USER, ASSISTANT)])
    tok.save(str(out / "tokenizer.json"))
    (out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END, "add_bos_token": False,
        "model_max_length": 32768, "chat_template": TEMPLATE}, indent=1, ensure_ascii=False) + "\n")
    print(tok.get_vocab_size(), "tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
