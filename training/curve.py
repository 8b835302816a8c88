#!/usr/bin/env python3
"""Draws a run's log: the loss and the share of held-out answers that greedy decoding writes
exactly, over the number of training tokens.

    curve.py LOG.jsonl OUT.svg
"""
import collections
import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 56, 150, 20, 40
COLORS = {"aime": "#0072b2", "math": "#d55e00", "gpqa": "#009e73", "code": "#cc79a7", "needle": "#e69f00", "lookup": "#56b4e9",
          "variables": "#8c564b", "count": "#7f7f7f", "frequent": "#bcbd22", "order": "#17becf", "copy": "#9467bd", "turns": "#2ca02c"}


def read(path):
    losses, shares, tokens = [], collections.defaultdict(list), 0
    for line in open(path):
        row = json.loads(line)
        if "loss" in row:
            tokens = row["tokens"]
            losses.append((tokens, row["loss"]))
        for cell, (_, greedy, _) in row.get("nats_greedy_sampled", {}).items():
            shares[cell.split("-")[0]].append((tokens, greedy))
    return losses, {style: means(points) for style, points in shares.items()}


def means(points):
    """Averages over the levels of an evaluation."""
    at = collections.defaultdict(list)
    for tokens, share in points:
        at[tokens].append(share)
    return [(tokens, sum(v) / len(v)) for tokens, v in at.items()]


def thinned(points, most=400):
    step = -(-len(points) // most)
    return points[::step] + points[-1:]


def line(points, color, dash=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5" stroke-dasharray="{dash}"/>'


def text(x, y, what, anchor="start", color="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{what}</text>'


def main(log, out):
    losses, shares = read(log)
    last, wide, high = losses[-1][0], WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    top, low = math.log(max(v for _, v in losses)), math.log(min(v for _, v in losses) / 1.1)

    def across(tokens):
        return LEFT + wide * tokens / last
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           line([(LEFT, TOP), (LEFT, TOP + high), (LEFT + wide, TOP + high), (LEFT + wide, TOP)], "#999")]
    svg.append(line([(across(t), TOP + high * (top - math.log(v)) / (top - low)) for t, v in thinned(losses)], "#333"))
    for v in (5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
        if low < math.log(v) < top:
            svg.append(text(LEFT - 6, TOP + high * (top - math.log(v)) / (top - low) + 4, f"{v:g}", "end"))
    for share in (0, 25, 50, 75, 100):
        svg.append(text(LEFT + wide + 6, TOP + high * (1 - share / 100) + 4, f"{share} %"))
    for part in range(5):
        svg.append(text(LEFT + wide * part / 4, TOP + high + 16, f"{last * part / 4e6:.0f} M", "middle"))
    for i, (style, points) in enumerate(sorted(shares.items())):
        svg.append(line([(across(t), TOP + high * (1 - v)) for t, v in points], COLORS[style], "5 3"))
        svg.append(text(WIDTH - 90, TOP + 16 + 16 * i, style, color=COLORS[style]))
    svg.append(text(WIDTH - 90, TOP + 20 + 16 * len(shares), "loss (left)"))
    svg.append(text(LEFT + wide / 2, HEIGHT - 6, "tokens; nats a token (left), held-out answers exact by greedy decoding, mean of levels (right)", "middle"))
    with open(out, "w") as f:
        f.write("\n".join(svg) + "\n</svg>\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
