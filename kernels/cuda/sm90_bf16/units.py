#!/usr/bin/env python3
"""Measures the error that rounding P to bf16 adds, for different windows of the reference exponent E (bf16_config.h).

Computes attention of single rows in FP64, with P = 2^(score - E) rounded to bf16 as the kernel rounds it, and
compares it with the same rows without rounding. E becomes the row's maximum when that is more than WINDOW octaves
above E. Prints the relative norm of the error per row, over draws of N(0,1). Needs numpy.
docs/lab/2026-11-22-bf16-kernel.md compares its figures with those of the device. Example:

    units.py --tokens 300 --draws 200 --window 0 8
"""
import argparse

import numpy as np

PAGE, WIDTH, CONTENT = 64, 576, 512
LOG2_SCALE = 192 ** -0.5 / np.log(2)


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def attend(score, value, window):
    """Attention of one row, page by page. With window None, P is not rounded."""
    out, total, unit = np.zeros(CONTENT), 0.0, None
    for at in range(0, len(score), PAGE):
        page = score[at : at + PAGE]
        if unit is None or page.max() > unit + (window or 0):
            shift = 0.0 if unit is None else 2.0 ** (unit - page.max())
            out, total, unit = out * shift, total * shift, page.max()
        p = np.exp2(page - unit)
        out += (p if window is None else bf16(p)) @ value[at : at + PAGE]
        total += p.sum()
    return out / total


def error_of(rng, tokens, window):
    key, query = bf16(rng.standard_normal((tokens, WIDTH))), bf16(rng.standard_normal(WIDTH))
    score, value = key @ query * LOG2_SCALE, key[:, :CONTENT]
    exact = attend(score, value, None)
    return np.linalg.norm(bf16(attend(score, value, window)) - exact) / np.linalg.norm(exact)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--window", type=float, nargs="+", default=[0, 8])
    args = parser.parse_args()
    for window in args.window:
        errors = np.array([error_of(np.random.default_rng(i), args.tokens, window) for i in range(args.draws)])
        print(
            f"window {window:g}: mean {errors.mean():.2e}, most {errors.max():.2e}, "
            f"above 2.5e-3 in {(errors > 2.5e-3).sum()} of {args.draws}"
        )


if __name__ == "__main__":
    main()
