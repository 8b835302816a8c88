#!/usr/bin/env python3
"""Compares our normalisation forms with Hugging Face's. The texts are every character between two others, and random
texts of marks, Hangul and composed letters. Prints the characters that differ as the table of forms.c. They differ
because Hugging Face's tables are older than utf8proc's. Development only: pip install tokenizers; libutf8proc-dev."""
import ctypes
import pathlib
import random
import subprocess
import tempfile

from tokenizers import normalizers

ROOT = pathlib.Path(__file__).resolve().parents[3]
THEIRS = [None, normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]


class Buf(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t), ("cap", ctypes.c_size_t),
                ("limit", ctypes.c_size_t), ("failed", ctypes.c_bool)]


def load():
    lib = tempfile.NamedTemporaryFile(suffix=".so").name
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-std=c17", "-D_GNU_SOURCE", "-DSNAPMLA_UTF8PROC", "-I.", "-o", lib,
                    "generator/local/tokenizer/forms.c", "base/buf.c", "base/err.c", "-lutf8proc"], cwd=ROOT, check=True)
    return ctypes.CDLL(lib)


def ours(lib, form, text):
    out, raw, err = Buf(), text.encode(), ctypes.create_string_buffer(2000)
    assert lib.form_apply(form, raw, ctypes.c_size_t(len(raw)), ctypes.byref(out), err) == 0
    got = ctypes.string_at(out.data, out.len) if out.len else b""
    lib.buf_release(ctypes.byref(out))
    return got.decode()


def main():
    lib = load()
    differ = sorted(c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and any(
        ours(lib, f, text) != THEIRS[f].normalize_str(text)
        for f in range(1, 5) for text in (f"a{chr(c)}\u0301", f"\u0323{chr(c)}\u0301\u0323", f"{chr(c)}\u0334\u0301")))
    ranges = []
    for c in differ:
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    for first, last in ranges:
        print(f"    {{0x{first:04X}, 0x{last:04X}}},")
    rng = random.Random(5)
    pool = [*range(0x300, 0x370)] * 3 + [*range(0x41, 0x5B)] * 4 + [*range(0xC0, 0x250), *range(0x900, 0xE00),
            *range(0x1100, 0x1200), *range(0xAC00, 0xAC40), *range(0x3040, 0x30FF), *range(0x1E00, 0x2000),
            *range(0xF900, 0xFB50), *range(0x1D15E, 0x1D165), *range(0x1AB0, 0x1AD0)]
    bad = 0
    for _ in range(20000):
        text = "".join(chr(rng.choice(pool)) for _ in range(rng.randint(1, 30)))
        bad += any(ours(lib, f, text) != THEIRS[f].normalize_str(text) for f in range(1, 5))
    print(f"/* {len(differ)} characters differ, {bad} of 20000 random texts */")


main()
