#!/usr/bin/env python3
"""Draws comments and sentences of documents at random, for readers who have never seen the project.

    python3 ci/prose_sample.py SEED [COMMENTS [SENTENCES]]     60 and 40 by default

Run it at the root of the repository. It prints one JSON object per line: the kind ("comment" or "sentence"), the file,
the line and the text. The same seed on the same commit gives the same draw.

Comments come from every C, CUDA and OpenCL file that git tracks. Comments of fewer than four words are left out: most
of them only name a unit. Sentences come from the paragraphs and lists of every tracked Markdown file, without tables,
code blocks and headings. Reports that the program wrote itself, under results/DEVICE/ and results/paper.md, are left out.
CONTRIBUTING.md says how such a draw is judged."""
import json
import random
import re
import subprocess
import sys

SOURCE = re.compile(r"\.(c|h|cu|cuh|cl)$")
GENERATED = re.compile(r"^results/([^/]+/|paper\.md)")
# A string or character literal, or a comment; adjacent // lines are one comment.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*', re.S)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])")


def words(text):
    return re.findall(r"[A-Za-z][A-Za-z'_]*", text)


def comments(path, text):
    for match in TOKEN.finditer(text):
        found = match.group()
        if found[0] == "/" and len(words(found)) >= 4:
            yield {"kind": "comment", "file": path, "line": text.count("\n", 0, match.start()) + 1, "text": found}


def paragraphs(text):
    """Yields (first line, text) of each paragraph or list item outside code blocks, tables and headings."""
    first, lines, in_code = 0, [], False
    for number, line in enumerate(text.split("\n") + [""], 1):
        fence = line.lstrip().startswith("```")
        in_code ^= fence
        plain = not (fence or in_code or not line.strip() or line.lstrip()[0] in "|#<!" or line.startswith("    "))
        if lines and (not plain or re.match(r"\s*([-*]|\d+\.)\s", line)):
            yield first, " ".join(lines)
            lines = []
        if plain:
            first = first if lines else number
            lines.append(re.sub(r"^\s*([-*]|\d+\.)\s+", "", line).strip())


def sentences(path, text):
    for line, paragraph in paragraphs(text):
        for sentence in SENTENCE_END.split(paragraph):
            if len(words(sentence)) >= 5:
                yield {"kind": "sentence", "file": path, "line": line, "text": sentence}


def draw(seed, n_comments, n_sentences):
    paths = subprocess.check_output(["git", "ls-files"], text=True).split("\n")
    found = {"comment": [], "sentence": []}
    for path in paths:
        is_source = SOURCE.search(path)
        if is_source or (path.endswith(".md") and not GENERATED.match(path)):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for row in (comments if is_source else sentences)(path, text):
                found[row["kind"]].append(row)
    rng = random.Random(seed)
    return rng.sample(found["comment"], n_comments) + rng.sample(found["sentence"], n_sentences)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    counts = [int(a) for a in sys.argv[2:]] + [60, 40][len(sys.argv) - 2:]
    for row in draw(int(sys.argv[1]), *counts):
        print(json.dumps(row, ensure_ascii=False))
