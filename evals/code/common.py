# Functions that the drivers of judged programs share. Each driver follows this text in one file.
import importlib.machinery
import json
import os
import site
import sys

# The interpreter starts without its site module, so that no other code runs. Programs expect two
# things of that module: the function exit() and the packages that the judge offers.
site.setquit()
sys.path[:1] = []


class Offered:
    """Finds the offered packages (packages.h), and the one that sympy needs, among the distribution's."""

    names = {"numpy", "scipy", "sympy", "mpmath"}
    folders = [p for p in site.getsitepackages() if os.path.isdir(p)]

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in cls.names:
            return importlib.machinery.PathFinder.find_spec(name, cls.folders, target)


sys.meta_path.append(Offered)
sys.set_int_max_str_digits(50000)

# The names that LiveCodeBench makes available, in this order: later ones hide earlier ones.
STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io "
    "sys json builtins typing"
).split()
PROMISED = (
    "".join(f"from {m} import *\n" for m in STARRED)
    + "".join(f"import {m}\n" for m in STARRED if m not in ("builtins", "typing"))
    + "sys.setrecursionlimit(50000)\n"
)


def program():
    with open("/box/program.py", "rb") as f:
        return f.read()


def request():
    with os.fdopen(4, "rb") as f:
        return json.loads(f.read())


def say(data):
    data = memoryview(data)
    while data:
        data = data[os.write(3, data) :]


def encode(value, out, depth=0):
    """Appends a value as JSON; tuples in parentheses, ! for a value that equals no JSON value."""
    if value is None or value is True or value is False:
        out.append({None: "null", True: "true", False: "false"}[value])
    elif depth > 400:
        out.append("!")
    elif isinstance(value, str):
        out.append(json.encoder.py_encode_basestring_ascii(str(value)))
    elif isinstance(value, int):
        out.append(int.__repr__(value))
    elif isinstance(value, float):
        text = float.__repr__(value)
        out.append({"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text))
    elif isinstance(value, (list, tuple)):
        closing = "[]" if isinstance(value, list) else "()"
        out.append(closing[0])
        for i, item in enumerate(value):
            out.append("," if i else "")
            encode(item, out, depth + 1)
        out.append(closing[1])
    elif isinstance(value, dict) and all(isinstance(k, str) for k in value):
        out.append("{")
        for i, (key, item) in enumerate(value.items()):
            out.append("," if i else "")
            encode(key, out, depth + 1)
            out.append(":")
            encode(item, out, depth + 1)
        out.append("}")
    else:
        encode_number(value, out)


def encode_number(value, out):
    """Encodes a number of another type, such as numpy's, as the int or float it equals exactly."""
    for kind in (int, float):
        try:
            same = kind(value)
            if not isinstance(value, (bytes, bytearray)) and bool(same == value):
                return encode(same, out)
        except Exception:
            pass
    out.append("!")


def encoded(value):
    out = []
    try:
        encode(value, out)
    except Exception:
        out = ["!"]
    return "".join(out).encode()
