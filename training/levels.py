#!/usr/bin/env python3
"""Prints the accuracy by set, level and arm of an evaluation of our own problems, as Markdown.

    levels.py RUN [COMPACT]     COMPACT: an xz file for the samples without texts, one per line

Levels come from the names of the problems, for instance math-4-heldout-17.
"""
import collections
import json
import lzma
import pathlib
import sys

KEPT = ("task", "problem", "sample", "arm", "verdict", "extracted", "completion_tokens", "finish_reason")


def table(cells, arms):
    levels = sorted({level for _, level, _ in cells})
    print("accuracy %, (answers), tokens an answer\n")
    print("| set | arm |" + "".join(f" level {i} |" for i in levels) + " all |")
    print("|---|---|" + "---|" * (len(levels) + 1))
    for task in sorted({task for task, _, _ in cells}):
        for arm in arms:
            parts = [cells.get((task, level, arm), (0, 0, 0)) for level in levels]
            parts.append(tuple(map(sum, zip(*parts))))
            print(f"| {task} | {arm} |" + "".join(
                f" {100 * right / n:.1f} ({n}), {tokens / n:.0f} |" if n else " |" for right, n, tokens in parts))


def main(run, compact=None):
    cells, arms = collections.defaultdict(lambda: (0, 0, 0)), {}
    out = lzma.open(compact, "wt") if compact else None
    with open(pathlib.Path(run) / "samples.jsonl") as lines:
        for line in lines:
            s = json.loads(line)
            if out:
                out.write(json.dumps([s[k] for k in KEPT], separators=(",", ":")) + "\n")
            if s["failed"]:
                continue
            arms[s["arm"]] = None
            key = s["task"], int(s["problem"].split("-")[1]), s["arm"]
            right, n, tokens = cells[key]
            cells[key] = right + (s["verdict"] == "correct"), n + 1, tokens + s["completion_tokens"]
    if out:
        out.close()
    table(cells, arms)


if __name__ == "__main__":
    main(*sys.argv[1:])
