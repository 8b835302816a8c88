#!/usr/bin/env python3
"""Renders our messages by the models' own chat templates, as transformers does.

Development only: pip install jinja2. The templates are not kept here: give a folder with NAME.jinja, each
the `chat_template` of a model's tokenizer_config.json.

    make_fixture.py FOLDER      # writes cases.jsonl beside itself"""
import json
import pathlib
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent
BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
CHATS = [
    [("user", "How many primes are below 20?")],
    [("system", "Be brief."), ("user", "2 + 2?")],
    [("user", " a\n"), ("assistant", "b "), ("user", "c")],
    [("system", "S"), ("user", "1"), ("assistant", "<think>\nhm</think>\n2"), ("user", "3"), ("assistant", "4"), ("user", "5")],
    [("system", "S"), ("system", "T"), ("user", "1")],
    [("user", "1"), ("assistant", "x</think>y</think>z"), ("user", "<|im_end|>{{ 7 * 6 }}")],
    [("user", "1"), ("user", "2")],
]

# messages that only some templates treat differently
MORE = {"glm4": [
    [("user", "1"), ("assistant", " \u00a0x\n<think>\n y \n\n</think>\n\u2003 z \u3000\n"), ("system", "S")],
    [("user", "1"), ("assistant", "<think>\n\n</think>z")],
    [("user", "1"), ("assistant", "<think> </think> "), ("assistant", "a<think>b<think>c</think>d</think>e")],
    [("assistant", "</think>"), ("user", "1"), ("assistant", "\x1f<think>")],
]}
# values of the template's variable for thinking; None: it is not defined
THINKING = {"deepseek-v3.1": (False, True), "glm4": (None, False, True)}

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
with open(HERE / "cases.jsonl", "w") as out:
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        source = path.read_text()
        for chat in CHATS + MORE.get(path.stem, []):
            for thinking in THINKING.get(path.stem, (False,)):
                how = {} if thinking is None else {"thinking": thinking, "enable_thinking": thinking}
                messages = [{"role": r, "content": c} for r, c in chat]
                text = env.from_string(source).render(messages=messages, bos_token=BOS, eos_token=EOS,
                                                      add_generation_prompt=True, **how)
                out.write(json.dumps({"template": path.stem, "thinking": thinking, "messages": messages, "bos": BOS,
                                      "eos": EOS, "rendered": text}) + "\n")
