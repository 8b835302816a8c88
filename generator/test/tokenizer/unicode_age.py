#!/usr/bin/env python3
"""Prints the table of unicode_age.c: the general categories that Hugging Face's `tokenizers` gives to characters
that are newer than Unicode 14. They are found by matching its regular expressions. Development only.

    python3.11 generator/test/tokenizer/unicode_age.py     (a Python whose own tables are Unicode 14's)"""
import importlib.metadata
import unicodedata

from tokenizers import Regex, pre_tokenizers

assert unicodedata.unidata_version.startswith("14."), "needs Python 3.11"
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Cf Zs".split()
added = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Cn"]
text = "".join(added)


def matched(pattern):
    """Places of the text that the pattern matches."""
    cut = pre_tokenizers.Split(Regex(pattern), "removed")
    kept = set()
    for _, (start, end) in cut.pre_tokenize_str(text):
        kept.update(range(start, end))
    return [i for i in range(len(text)) if i not in kept]


kind = {}
for category in CATEGORIES:
    for i in matched(r"\p{%s}" % category):
        kind[ord(text[i])] = category
for i in matched(r"\p{Han}"):
    kind[ord(text[i])] = "Han" if kind.get(ord(text[i])) == "Lo" else kind.get(ord(text[i]), "?") + "Han"
print(f"/* {len(kind)} characters, as tokenizers {importlib.metadata.version('tokenizers')} knows them. */")
ranges = []
for c in sorted(kind):
    if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == kind[c]:
        ranges[-1][1] = c
    else:
        ranges.append([c, c, kind[c]])
for first, last, k in ranges:
    print(f"    {{0x{first:04X}, 0x{last:04X}, NEW_{k.upper()}}},")
