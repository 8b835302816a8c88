#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face's on the same texts, and times both on one core.

Development only: needs the PyPI package `tokenizers` (for a tiktoken.model: `tiktoken`); compiles our
sources into a shared library.

    agree.py DIR [--text FOLDER]... [--megabytes 8] [--every-character]

DIR holds a tokenizer.json or Kimi's tiktoken.model. The script makes the texts: 28 scripts, emoji,
control characters, digits, code, white space, malformed UTF-8, and the tokenizer's own added tokens.
--text adds every .txt, .po, .md, .c and .py file below a folder. Exits 1 on any difference."""
import argparse
import ctypes
import importlib.metadata
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import types
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
ROOT = pathlib.Path(__file__).resolve().parents[3]

SCRIPTS = {
    "latin": [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F)], "greek": [(0x391, 0x3C9)],
    "cyrillic": [(0x410, 0x44F)], "armenian": [(0x531, 0x556), (0x561, 0x586)],
    "hebrew": [(0x5D0, 0x5EA), (0x5B0, 0x5BC)], "arabic": [(0x620, 0x64A), (0x64B, 0x652)],
    "devanagari": [(0x904, 0x94D)], "bengali": [(0x985, 0x9B9), (0x9BE, 0x9CD)],
    "gurmukhi": [(0xA05, 0xA39), (0xA3E, 0xA4D)], "gujarati": [(0xA85, 0xACD)],
    "tamil": [(0xB85, 0xBCD)], "telugu": [(0xC05, 0xC4D)], "kannada": [(0xC85, 0xCCD)],
    "malayalam": [(0xD05, 0xD4D)], "sinhala": [(0xD85, 0xDC6)], "thai": [(0xE01, 0xE3A), (0xE40, 0xE4E)],
    "lao": [(0xE81, 0xEBD)], "tibetan": [(0xF40, 0xF6C), (0xF71, 0xF84)], "myanmar": [(0x1000, 0x103E)],
    "georgian": [(0x10D0, 0x10FA)], "ethiopic": [(0x1200, 0x135A)], "khmer": [(0x1780, 0x17D3)],
    "mongolian": [(0x1820, 0x1878)], "hiragana": [(0x3041, 0x3096)], "katakana": [(0x30A1, 0x30FA)],
    "han": [(0x4E00, 0x9FFF), (0x3400, 0x4DBF)], "hangul": [(0xAC00, 0xD7A3)],
    "gothic": [(0x10330, 0x1034A)],
}
EMOJI = ["😀", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "1️⃣", "🏳️‍🌈", "🧑🏿‍🚀"]


def word(rng, ranges):
    out = []
    for _ in range(rng.randint(1, 9)):
        lo, hi = rng.choice(ranges)
        out.append(chr(rng.randint(lo, hi)))
    return "".join(out)


def noise(rng, added):
    kind = rng.randrange(10)
    if kind == 0:
        return "".join(rng.choice("0123456789٠١२३") for _ in range(rng.randint(1, 40)))
    if kind == 1:
        return "".join(rng.choice(" \t\n\r\u3000\u00a0\u2028\u0085\u180e\u200b") for _ in range(rng.randint(1, 60)))
    if kind == 2:
        return " " * rng.randint(1, 3000)
    if kind == 3:
        return rng.choice(EMOJI) * rng.randint(1, 3)
    if kind == 4:
        return "".join(chr(rng.randrange(0x20)) for _ in range(5)) + "\x7f"
    if kind == 5:
        return "".join(rng.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»—…。、「」") for _ in range(rng.randint(1, 12)))
    if kind == 6:
        return "for (int i=0;i<n;++i) {\r\n\t\tx->y[i] = \"it's\";  // we'll\n}\n\n\n"
    if kind == 7 and added:
        return rng.choice(added)
    if kind == 8:
        return "".join(chr(c) for c in (rng.randrange(0x110000) for _ in range(20)) if unicodedata.category(chr(c)) != "Cs")
    return "I'm IT'S don't WE'LL he'd x1y2z3 3.14159 1,000,000 0xdeadbeef"


def synthetic(seed, size, added):
    rng = random.Random(seed)
    names = list(SCRIPTS)
    out, n = [], 0
    while n < size:
        ranges = SCRIPTS[rng.choice(names)]
        part = rng.choice(["", " "]).join(word(rng, ranges) + " " * (rng.random() < 0.7) for _ in range(30))
        part += noise(rng, added) + rng.choice(["", " ", "\n"])
        out.append(part)
        n += len(part.encode())
    return out


def documents(parts, rng):
    """Joins the parts into texts of 1 to 200 of them."""
    i = 0
    while i < len(parts):
        n = rng.choice([1, 1, 2, 5, 20, 200])
        yield "".join(parts[i:i + n])
        i += n


def broken(rng, n):
    """Byte strings with malformed UTF-8, and what Python makes of them."""
    for _ in range(n):
        b = bytearray("aé漢😀 x".encode() * 3)
        for _ in range(rng.randint(1, 6)):
            b[rng.randrange(len(b))] = rng.randrange(256)
        yield bytes(b)


class Err(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 600)]


class Ids(ctypes.Structure):
    _fields_ = [("v", ctypes.POINTER(ctypes.c_int32)), ("n", ctypes.c_size_t), ("cap", ctypes.c_size_t)]


class Buf(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t), ("cap", ctypes.c_size_t),
                ("limit", ctypes.c_size_t), ("failed", ctypes.c_bool)]


class Ours:
    def __init__(self, folder):
        self.dir = tempfile.TemporaryDirectory()
        lib = os.path.join(self.dir.name, "tokenizer.so")
        sources = sorted((ROOT / "generator/local/tokenizer").glob("*.c"))
        sources += [ROOT / "base" / f"{m}.c" for m in ("arena", "buf", "err", "fault", "fs", "json", "text")]
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-std=c17", "-D_GNU_SOURCE", "-I.", "-o", lib,
                        *map(str, sources), "-ljansson", "-lpcre2-8", "-lm"], cwd=ROOT, check=True)
        self.c = ctypes.CDLL(lib)
        self.err = Err()
        self.t, self.e = ctypes.c_void_p(), ctypes.c_void_p()
        start = time.process_time()
        self.check(self.c.tokenizer_open(ctypes.byref(self.t), str(folder).encode(), ctypes.byref(self.err)))
        self.load_s = time.process_time() - start
        self.check(self.c.tok_encoder_create(ctypes.byref(self.e), self.t, ctypes.byref(self.err)))

    def check(self, status):
        if status:
            sys.exit(f"ours: {self.err.text.decode(errors='replace')}")

    def encode_raw(self, text, flags=0):
        """The ids as a C array. Only this call is timed."""
        ids = Ids()
        self.check(self.c.tok_encode(self.e, text, ctypes.c_size_t(len(text)), flags, ctypes.byref(ids),
                                     ctypes.byref(self.err)))
        return ids

    def encode(self, text, flags=0):
        ids = self.encode_raw(text, flags)
        out = ids.v[:ids.n]
        self.c.tok_ids_release(ctypes.byref(ids))
        return out

    def decode(self, ids, skip):
        out = Buf()
        array = (ctypes.c_int32 * max(1, len(ids)))(*ids)
        self.check(self.c.tok_decode(self.t, array, ctypes.c_size_t(len(ids)), skip, ctypes.byref(out),
                                     ctypes.byref(self.err)))
        text = ctypes.string_at(out.data, out.len) if out.len else b""
        self.c.buf_release(ctypes.byref(out))
        return text


class Tiktoken:
    """Kimi's tokenizer over OpenAI's library, with the calls of Hugging Face's that are used below."""

    def __init__(self, folder):
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe
        ranks = load_tiktoken_bpe(os.path.join(folder, "tiktoken.model"))
        config = json.loads((pathlib.Path(folder) / "tokenizer_config.json").read_text())
        names = {int(i): t["content"] for i, t in config["added_tokens_decoder"].items()}
        self.special = {names.get(i, f"<|reserved_token_{i}|>"): i for i in range(len(ranks), len(ranks) + 256)}
        upper, lower = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]")
        head, tail = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        pattern = "|".join([r"[\p{Han}]+", head + upper + "*" + lower + "+" + tail, head + upper + "+" + lower + "*" + tail,
                            r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
        self.e = tiktoken.Encoding("kimi", pat_str=pattern, mergeable_ranks=ranks, special_tokens=self.special)

    def encode(self, text, add_special_tokens=False):
        return types.SimpleNamespace(ids=self.e.encode(text, allowed_special="all"))

    def decode(self, ids, skip_special_tokens=False):
        first = self.e.n_vocab - len(self.special)
        return self.e.decode([i for i in ids if i < first or not skip_special_tokens])

    def get_vocab_size(self):
        return self.e.n_vocab

    def contents(self):
        return list(self.special)


class HuggingFace:
    def __init__(self, folder):
        import tokenizers
        self.t = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.encode, self.decode, self.get_vocab_size = self.t.encode, self.t.decode, self.t.get_vocab_size

    def contents(self):
        return [t.content for t in self.t.get_added_tokens_decoder().values()]

    def reversible(self):
        """Bytes, and no added token that swallows the white space beside it."""
        added = self.t.get_added_tokens_decoder().values()
        return '"ByteLevel"' in self.t.decoder.__getstate__().decode() and not any(t.lstrip or t.rstrip for t in added)


def show(name, text, ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    print(f"{name}: differs at {at}: ours {ours[at:at + 8]} theirs {theirs[at:at + 8]} in {text[:60]!r}")


def compare(ours, theirs, docs, reversible):
    bad = 0
    for doc in docs:
        raw = doc.encode()
        a, b = ours.encode(raw), theirs.encode(doc, add_special_tokens=False).ids
        if a != b:
            bad += 1
            if bad <= 5:
                show("encode", doc, a, b)
            continue
        for skip in (False, True):
            x, y = ours.decode(a, skip), theirs.decode(b, skip_special_tokens=skip).encode()
            if x != y:
                bad += 1
                if bad <= 5:
                    show(f"decode(skip={skip})", doc, x, y)
        if reversible and ours.decode(a, False) != raw:
            bad += 1
            print(f"round trip: {doc[:60]!r}")
    return bad


def timing(ours, theirs, docs, rounds=3):
    """Runs alternating passes over the same texts, and returns the medians of megabytes per second."""
    size = sum(len(d.encode()) for d in docs) / 1e6
    raws = [d.encode() for d in docs]
    rates = {"ours": [], "theirs": []}
    for _ in range(rounds):
        start = time.process_time()
        for raw in raws:
            ids = ours.encode_raw(raw)
            ours.c.tok_ids_release(ctypes.byref(ids))
        rates["ours"].append(size / (time.process_time() - start))
        start = time.process_time()
        for doc in docs:
            theirs.encode(doc, add_special_tokens=False)
        rates["theirs"].append(size / (time.process_time() - start))
    return {k: statistics.median(v) for k, v in rates.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dir")
    ap.add_argument("--text", action="append", default=[])
    ap.add_argument("--megabytes", type=float, default=8)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--every-character", action="store_true")
    args = ap.parse_args()
    start = time.process_time()
    huggingface = os.path.exists(os.path.join(args.dir, "tokenizer.json"))
    theirs = HuggingFace(args.dir) if huggingface else Tiktoken(args.dir)
    theirs_load_s = time.process_time() - start
    ours = Ours(args.dir)
    name = "tokenizers" if huggingface else "tiktoken"
    print(f"{name} {importlib.metadata.version(name)}; loading: ours {ours.load_s:.2f} s, theirs {theirs_load_s:.2f} s")
    reversible = not huggingface or theirs.reversible()
    added = theirs.contents()
    rng = random.Random(args.seed)
    sets = {"made here": list(documents(synthetic(args.seed, args.megabytes * 1e6, added), rng))}
    for folder in args.text:
        files = [p for p in sorted(pathlib.Path(folder).rglob("*")) if p.suffix in (".txt", ".po", ".md", ".c", ".py")]
        sets[folder] = [p.read_text(errors="replace") for p in files if p.stat().st_size < 1 << 20]
    bad = 0
    for raw in broken(rng, 3000):
        a, b = ours.encode(raw), theirs.encode(raw.decode(errors="replace"), add_special_tokens=False).ids
        bad += a != b
    ids = [[rng.randrange(theirs.get_vocab_size()) for _ in range(rng.randint(1, 12))] for _ in range(20000)]
    wrong = [i for i in ids if ours.decode(i, False) != theirs.decode(i, skip_special_tokens=False).encode()]
    for i in wrong[:5]:
        print("decode", i, ours.decode(i, False), theirs.decode(i, skip_special_tokens=False).encode())
    print(f"malformed UTF-8: 3000 texts, {bad} differ; decoding random ids: 20000, {len(wrong)} differ")
    bad += len(wrong)
    if args.every_character:
        chars = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) != "Cs"]
        for form in ("{0}", "a{0}b", " {0} ", "1{0}{0}2", "漢{0}\n"):
            diff = [c for c in chars if ours.encode(form.format(c).encode()) !=
                    theirs.encode(form.format(c), add_special_tokens=False).ids]
            bad += len(diff)
            print(f"every character in {form!r}: {len(diff)} differ {[hex(ord(c)) for c in diff[:10]]}")
    for name, docs in sets.items():
        if not docs:
            continue
        wrong = compare(ours, theirs, docs, reversible)
        rate = timing(ours, theirs, docs)
        size = sum(len(d.encode()) for d in docs) / 1e6
        print(f"{name}: {len(docs)} texts, {size:.1f} MB, {wrong} differ; MB/s a core: ours {rate['ours']:.2f}, "
              f"theirs {rate['theirs']:.2f}, {rate['ours'] / rate['theirs']:.1f}x")
        bad += wrong
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
