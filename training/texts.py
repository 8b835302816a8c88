#!/usr/bin/env python3
"""Writes held-out problems with their solutions as texts for perplexity.

    texts.py PROGRAM OUT [LEVEL]

OUT/aime.txt, ... have one problem each, with the tokenizer's marks, because the model was never
trained on two problems in a row. Prints the perplexity of each text under its own token
frequencies. This is the least that a model of single tokens can reach.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import tokenizers

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END, USER, ASSISTANT = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"


def main(program, out, level="5"):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizers.Tokenizer.from_file(str(HERE / "tokenizer" / "tokenizer.json"))
    for style in "aime", "math", "gpqa", "code":
        line = subprocess.run([program, "synth", "--style", style, "--level", level, "--count", "1", "--solutions"],
                              stdout=subprocess.PIPE, check=True).stdout
        row = json.loads(line)
        text = BEGIN + USER + row["prompt"] + ASSISTANT + row["solution"] + END
        (out / f"{style}.txt").write_text(text)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        share = np.bincount(ids)[np.bincount(ids) > 0] / len(ids)
        print(f"{style}: {len(ids)} tokens, unigram perplexity {np.exp(-(share * np.log(share)).sum()):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
