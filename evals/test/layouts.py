"""Judges right programs in many layouts of chat answers, and mutants of them.

    layouts.py SNAPMLA [--humaneval FILE] [--mbpp FILE] [--every N] [--mutants N] [--layout NAME]...

The layouts imitate how models answer: kinds of fences, lists, quotations, no fence at all, text and
further blocks before and after the program. Each right program must pass in each layout, and a wrong
program in the same layout must not. The programs are ours, below. HumanEval.jsonl[.gz] and mbpp.jsonl
add the canonical solutions of those sets, and no wrong programs. --every takes each N-th of them.
--mutants N also changes N places of each solution. The verdict about a mutant must be the one that
plain Python gives, without a sandbox. --layout picks layouts; "none" picks none of them.

Prints a table and what failed. The exit code is 1 if something failed, and 6 if programs cannot be
isolated here. Python 3.9 or newer.
"""
import argparse
import ast
import builtins
import gzip
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# ---- our problems ----

# Functions: (imports, header, documentation, body, assertions about f).
FUNCTIONS = [
    (
        "",
        "def count_vowels(text: str) -> int:",
        "How many of the letters a, e, i, o, u the text has.",
        'return sum(c in "aeiou" for c in text)',
        ["f('banana') == 3", "f('') == 0", "f('rhythm') == 0"],
    ),
    (
        "from typing import Dict, List, Tuple",
        "def longest_runs(values: List[int],\n                 bounds: Tuple[int, int] = (0, 9)) -> Dict[int, int]:",
        "Length of the longest run of each value within the bounds.",
        "best: Dict[int, int] = {}\n"
        "run = 0\n"
        "for i, v in enumerate(values):\n"
        "    # don't count a run twice; it's \"over\" when the value changes\n"
        "    run = run + 1 if i and values[i - 1] == v else 1\n"
        "\n"
        "    if bounds[0] <= v <= bounds[1]:\n"
        "        best[v] = max(best.get(v, 0), run)\n"
        "return best",
        ["f([1, 1, 2]) == {1: 2, 2: 1}", "f([]) == {}", "f([3, 12, 3, 3]) == {3: 2}"],
    ),
    (
        "",
        "def describe(name, size):",
        "A line with the name and the size, such as 'a (2 items)'.",
        "def plural(n):\n"
        "    return 'item' if n == 1 else 'items'\n"
        "\n"
        "return f\"{name} ({size} {plural(size)})\" if name else f'{{{size:>3}}}'",
        ["f('a', 2) == 'a (2 items)'", "f('b', 1) == 'b (1 item)'", "f('', 7) == '{  7}'"],
    ),
    (
        "import re",
        "def functions_of(source):",
        "Names of the functions that a source text defines.",
        "example = '''\n"
        "def functions_of(source):\n"
        "    return None\n"
        "'''\n"
        "assert 'def ' in example\n"
        "return re.findall(r'^def (\\w+)', source, re.M)",
        ["f('def a(): pass') == ['a']", "f('') == []", "f('x\\ndef b(): 1\\n def c(): 2') == ['b']"],
    ),
    (
        "",
        "def collatz(n, *, seen=None):",
        "Number of steps from n to 1 (halve, or triple and add one).",
        "steps = 0\nwhile n != 1:\n\tn = n // 2 if n % 2 == 0 else 3 * n + 1\n\tsteps += 1\nreturn steps",
        ["f(1) == 0", "f(6) == 8", "f(27) == 111"],
    ),
    (
        "LIMIT = 10",
        "def clip(values):",
        "The values, but none above the limit.",
        "return [min(v, LIMIT) for v in values] \\\n    if values else []",
        ["f([1, 11]) == [1, 10]", "f([]) == []", "f([10]) == [10]"],
    ),
]

# Programs: (source, [(input, output), ...]).
PROGRAMS = [
    ("n = int(input())\nprint(n * 2)", [("3\n", "6\n"), ("-1", "-2")]),
    (
        "import sys\n\ndef main():\n    n, *values = map(int, sys.stdin.read().split())\n    print(sum(values[:n]))\n\n"
        'if __name__ == "__main__":\n    main()',
        [("2\n3 4 5\n", "7\n"), ("0\n", "0\n")],
    ),
    (
        "from sys import stdin, stdout\nfor line in stdin:\n    stdout.write(line[::-1].strip() + '\\n')",
        [("ab\ncd\n", "ba\ndc\n"), ("x", "x\n")],
    ),
    ("print(max(map(int, open(0).read().split())))", [("1 5 2\n", "5\n"), ("7", "7")]),
    (
        "import sys\ninput = sys.stdin.readline\n\n\nclass Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n\n"
        "    def text(self):\n        return f\"{self.a}-{self.b}\"  # it's short\n\n\n"
        "t = int(input())\nfor _ in range(t):\n    print(Pair(*input().split()).text())",
        [("2\na b\nc d\n", "a-b\nc-d\n"), ("0\n", "")],
    ),
    ("a, b = input().split()\nprint('YES' if a == b[::-1] else 'NO')", [("ab ba", "YES"), ("ab ab", "NO")]),
]


def own_functions():
    for imports, header, about, body, asserts in FUNCTIONS:
        name = re.search(r"def (\w+)", header).group(1)
        prompt = (imports + "\n\n\n" if imports else "") + f'{header}\n    """{about}"""\n'
        rest = shifted(body, "    ")
        yield {
            "own": True,
            "name": name,
            "prompt": prompt,
            "body": rest,
            "code": prompt + rest,
            "wrong": stub(name),
            "humaneval": {
                "task_id": "own/" + name,
                "prompt": prompt,
                "entry_point": name,
                "test": "def check(candidate):\n"
                + "".join(f"    assert {re.sub(r'^f', 'candidate', a)}\n" for a in asserts),
            },
            "mbpp": {
                "task_id": 11,
                "text": about,
                "test_list": [f"assert {re.sub(r'^f', name, a)}" for a in asserts],
            },
        }


def own_programs():
    for i, (source, tests) in enumerate(PROGRAMS):
        yield {
            "own": True,
            "name": f"program{i}",
            "code": source,
            "wrong": "import sys\nsys.stdin.read()\nprint('none of this')",
            "livecodebench": {
                "task_id": f"own/{i}",
                "inputs": [t[0] for t in tests],
                "outputs": [t[1] for t in tests],
            },
        }


# ---- public sets ----


def lines_of(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def called(test):
    """The function that an assertion of MBPP tests: the first call whose name is not Python's own."""
    names = [n.func.id for n in ast.walk(ast.parse(test)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return next((n for n in names if n not in dir(builtins)), names[0])


def stub(name):
    return f"def {name}(*args):\n    return 'none'"


def humaneval(path):
    for row in lines_of(path):
        yield {
            "own": False,
            "name": row["entry_point"],
            "prompt": row["prompt"],
            "body": row["canonical_solution"],
            "code": row["prompt"] + row["canonical_solution"],
            "humaneval": {k: row[k] for k in ("task_id", "prompt", "entry_point", "test")},
        }


def mbpp(path):
    for row in lines_of(path):
        if 11 <= row["task_id"] <= 510:
            keys = ("task_id", "text", "test_list", "test_setup_code")
            name = called(row["test_list"][0])
            yield {"own": False, "name": name, "code": row["code"], "mbpp": {k: row[k] for k in keys}}


# ---- layouts ----


def fence(code, info="python", mark="```"):
    return f"{mark}{info}\n{code}\n{mark}"


def shifted(text, by):
    return "\n".join(by + line if line else line for line in text.split("\n"))


def quoted(text, mark=">"):
    return "\n".join(f"{mark} {line}" if line else mark for line in text.split("\n"))


def draft(p):
    return stub(p["name"]) if "livecodebench" not in p else "n = input()\nprint(n + n + n)"


def demo(p):
    return f"print({p['name']}(...))" if "livecodebench" not in p else "print(2 * 3)"


def unit_tests(p):
    call = f"{p['name']}(1), 1" if "livecodebench" not in p else "2 * 3, 6"
    return (
        "import unittest\n\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n"
        f"        self.assertEqual({call})\n\n\nif __name__ == \"__main__\":\n    unittest.main()"
    )


def mention(p):
    if "livecodebench" in p:
        return "# n = int(input()) reads the number, print(n) writes it\nassert 2 * 3 == 6"
    return f"# def {p['name']}(*args): return None would be wrong\n{demo(p)}"


def in_text(p):
    inner = stub(p["name"]) if "livecodebench" not in p else "print(input())"
    return f'"""\n{inner}\n"""\nprint("""\n{inner}\n""")'


def with_main(p):
    return p["code"] + "\n\n\nif __name__ == \"__main__\":\n    print(" + p["name"] + "(input()))"


# Layouts of all programs: each gets the problem and returns a response.
LAYOUTS = {
    "block": lambda p: f"Here it is:\n\n{fence(p['code'])}\n\nIt takes linear time.",
    "only the block": lambda p: fence(p["code"]),
    "no language": lambda p: fence(p["code"], ""),
    "py": lambda p: fence(p["code"], "py"),
    "Python3": lambda p: fence(p["code"], "Python3"),
    "PYTHON": lambda p: fence(p["code"], "PYTHON"),
    "python3.11": lambda p: fence(p["code"], "python3.11"),
    "ipython": lambda p: fence(p["code"], "ipython"),
    "a space before the language": lambda p: fence(p["code"], " python"),
    "a title": lambda p: fence(p["code"], 'python title="solution.py"'),
    "attributes": lambda p: fence(p["code"], "{.python .numberLines}"),
    "language text": lambda p: fence(p["code"], "text") + "\nOutput:\n" + fence("6", ""),
    "tildes": lambda p: fence(p["code"], "python", "~~~"),
    "four backticks": lambda p: fence(p["code"], "python", "````"),
    "five backticks": lambda p: fence(p["code"], "python", "`````"),
    "CRLF": lambda p: ("Here:\n\n" + fence(p["code"].replace("\r", "")) + "\n").replace("\n", "\r\n"),
    "unclosed": lambda p: "Sure!\n```python\n" + p["code"],
    "numbered list": lambda p: "1. The code:\n\n" + shifted(fence(p["code"]), "   ") + "\n\n2. It is linear.",
    "bullet": lambda p: "- ```python\n" + shifted(p["code"] + "\n```", "  "),
    "nested bullet": lambda p: "- so\n  - code:\n\n" + shifted(fence(p["code"]), "    ") + "\n- done",
    "quotation": lambda p: "You wrote:\n\n" + quoted("So:\n\n" + fence(p["code"])) + "\n\nThat is right.",
    "nested quotation": lambda p: quoted(fence(p["code"]), "> >") + "\n\nFine.",
    "in tags": lambda p: f"<answer>\n{fence(p['code'])}\n</answer>",
    "in details": lambda p: f"<details><summary>Code</summary>\n\n{fence(p['code'])}\n\n</details>",
    "HTML": lambda p: f"<p>So:</p>\n<pre><code>{html.escape(p['code'])}</code></pre>\nThat is all.",
    "indented code": lambda p: "The code:\n\n" + shifted(p['code'], '    ') + "\n\nThat is all.",
    "no fence": lambda p: p["code"],
    "no fence, prose around": lambda p: f"Here it is:\n\n{p['code']}\n\nThis is simple.",
    "last fence only": lambda p: f"{p['code']}\n```\nThis is simple.",
    "no fence, output fenced": lambda p: f"{p['code']}\n\nOutput:\n\n{fence('6', '')}",
    "then an example": lambda p: f"{fence(p['code'])}\nUsage:\n{fence(demo(p))}",
    "then output": lambda p: f"{fence(p['code'])}\nOutput:\n{fence('6', '')}",
    "then input and output": lambda p: f"{fence(p['code'])}\nInput:\n{fence('3', 'text')}\nOutput:\n{fence('6', 'text')}",
    "then a shell": lambda p: f"{fence(p['code'])}\nRun it:\n{fence('echo 3 | python3 solution.py', 'bash')}",
    "then unit tests": lambda p: f"{fence(p['code'])}\nTests:\n{fence(unit_tests(p))}",
    "then assertions": lambda p: f"{fence(p['code'])}\nTests:\n{fence('assert 2 * 3 == 6')}",
    "then a doctest": lambda p: f"{fence(p['code'])}\nSo:\n" + fence(f">>> {demo(p)}\n6", "pycon"),
    "then a doctest without language": lambda p: f"{fence(p['code'])}\nSo:\n" + fence(f">>> {demo(p)}\n6", ""),
    "then a comment about it": lambda p: f"{fence(p['code'])}\nNote:\n{fence(mention(p))}",
    "then a text about it": lambda p: f"{fence(p['code'])}\nNote:\n{fence(in_text(p))}",
    "then JavaScript": lambda p: f"{fence(p['code'])}\nOr:\n{fence('const f = x => console.log(x)', 'javascript')}",
    "then a table of cases": lambda p: f"{fence(p['code'])}\n\n| in | out |\n|---|---|\n| 3 | 6 |\n",
    "an installation before": lambda p: f"{fence('pip install nothing', 'sh')}\nThen:\n{fence(p['code'])}",
    "a draft before": lambda p: f"{fence(draft(p))}\nWait, that is wrong:\n{fence(p['code'])}",
    "a draft before, no fence": lambda p: f"{draft(p)}\n\nNo, rather:\n\n{p['code']}",
    "a draft in reasoning": lambda p: f"<think>\n{fence(draft(p))}\n</think>\n{fence(p['code'])}",
    "pseudocode before": lambda p: f"{fence('for each x: count it', 'text')}\nSo:\n{fence(p['code'])}",
}

# Layouts of functions only.
FUNCTION_LAYOUTS = {
    "with a main part": lambda p: fence(with_main(p)),
    "then an import of it": lambda p: f"{fence(p['code'])}\n{fence('from solution import ' + p['name'])}",
    "then its signature": lambda p: f"{fence(p['code'])}\nSignature:\n"
    + fence(f'def {p["name"]}(*args):\n    """As above."""'),
    "then an outline": lambda p: f"{fence(p['code'])}\nOutline:\n"
    + fence(f"def {p['name']}(*args):\n    ...  # as above"),
    "then an inner function": lambda p: f"{fence(p['code'])}\nA test:\n"
    + fence("def test_it():\n" + shifted(stub(p["name"]), "    ")),
}

# Layouts of programs that read input only.
PROGRAM_LAYOUTS = {
    "then a process": lambda p: f"{fence(p['code'])}\nRun it:\n"
    + fence("import subprocess\nr = subprocess.run(['python3', 'a.py'], input='3', text=True)\nprint(r.stdout)"),
    "then its own input": lambda p: f"{fence(p['code'])}\nA test:\n"
    + fence("import io, sys\nsys.stdin = io.StringIO('3')\nn = int(input())\nprint(n)"),
    "then a patched input": lambda p: f"{fence(p['code'])}\nA test:\n"
    + fence("from unittest.mock import patch\nwith patch('builtins.input', return_value='3'):\n    print(main())"),
    "then a hint about speed": lambda p: f"{fence(p['code'])}\nFaster:\n"
    + fence("import sys\ninput = sys.stdin.readline"),
}

# Layouts for HumanEval, whose prompt is the beginning of the function.
PROMPT_LAYOUTS = {
    "body only": lambda p: fence(p["body"]),
    "body only, no fence": lambda p: p["body"],
    "the prompt, then the body": lambda p: f"{fence(p['prompt'])}\nThe body:\n{fence(p['body'])}",
}


def layouts_of(task):
    own = {**FUNCTION_LAYOUTS} if task != "livecodebench" else PROGRAM_LAYOUTS
    return {**LAYOUTS, **own, **(PROMPT_LAYOUTS if task == "humaneval" else {})}


# ---- judging ----


def grade(program, task, rows):
    """The verdicts about rows, in order."""
    if not rows:
        return []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
        f.flush()
        done = subprocess.run([program, "grade", "--task", task, f.name], capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    return [json.loads(line) for line in done.stdout.splitlines()]


def try_layouts(program, task, problems, wanted):
    """Prints a line for each layout. Returns the number of failures."""
    failures = 0
    for name, layout in layouts_of(task).items():
        if wanted and name not in wanted:
            continue
        wrong = [{**p, "code": p["wrong"], "body": "    return 'none'"} for p in problems if p["own"]]
        rows = [{**p[task], "response": layout(p)} for p in [*problems, *wrong]]
        verdicts = grade(program, task, rows)
        n = len(problems)
        missed = [(p, v) for p, v in zip(problems, verdicts) if v["verdict"] != "pass"]
        accepted = [(p, v) for p, v in zip(wrong, verdicts[n:]) if v["verdict"] == "pass"]
        print(f"| {task} | {name} | {n - len(missed)} of {n} | {len(accepted)} of {len(wrong)} |", flush=True)
        for p, v in missed:
            print(f"    {p[task]['task_id']}: {v['verdict']}: {v.get('reason')}")
        for p, _ in accepted:
            print(f"    {p[task]['task_id']}: the wrong program passes")
        failures += len(missed) + len(accepted)
    return failures


# ---- mutants ----

SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn,
}


def changes(node):
    """Functions that each change the node in one way."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
        yield lambda: setattr(node, "op", SWAPS[type(node.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda: node.ops.__setitem__(0, SWAPS[type(node.ops[0])]())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda: setattr(node, "value", node.value + 1)
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Return) and node.value:
        yield lambda: setattr(node, "value", ast.Call(ast.Name("str", ast.Load()), [node.value], []))
        yield lambda: setattr(node, "value", ast.Constant(None))
    if isinstance(node, ast.FunctionDef):
        yield lambda: setattr(node, "name", node.name + "_")
        yield lambda: node.body.insert(0, ast.parse("raise ValueError('changed')").body[0])


def mutants_of(code, n, seed):
    """Up to n changed versions of the code."""
    count = sum(len(list(changes(node))) for node in ast.walk(ast.parse(code)))
    for index in sorted(random.Random(seed).sample(range(count), min(n, count))):
        tree = ast.parse(code)
        all_changes = [change for node in ast.walk(tree) for change in changes(node)]
        all_changes[index]()
        try:
            yield ast.unparse(ast.fix_missing_locations(tree))
        except Exception:
            pass


def whole_file(task, p, code):
    """What plain Python runs: the program and its assertions."""
    row = p[task]
    if task == "humaneval":
        return f"{row['prompt']}\n\n{code}\n\n{row['test']}\n\ncheck({row['entry_point']})\n"
    return code + "\n\n" + "\n".join([row.get("test_setup_code", ""), *row["test_list"]]) + "\n"


def plain_verdict(source):
    """'pass', 'timeout' or 'fail', by Python alone."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
    quoted_source = f"import types, sys\nm = types.ModuleType('program')\nsys.modules['__main__'] = m\nexec({source!r}, m.__dict__)"
    try:
        done = subprocess.run(
            ["/usr/bin/python3", "-c", limit + quoted_source],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env={"PYTHONHASHSEED": "0"},
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return "fail" if done.returncode else "pass"


def try_mutants(program, task, problems, n):
    """Prints how the verdicts compare. Returns the number of differences."""
    cases = [(p, code) for p in problems for code in mutants_of(p["code"], n, p["name"])]
    rows = [{**p[task], "response": fence(code)} for p, code in cases]
    verdicts = grade(program, task, rows)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plain = list(pool.map(plain_verdict, [whole_file(task, p, code) for p, code in cases]))
    both = {"pass": 0, "fail": 0}
    different = []
    for (p, code), verdict, want in zip(cases, verdicts, plain):
        passes = verdict["verdict"] == "pass"
        if passes == (want == "pass"):
            both["pass" if passes else "fail"] += 1
        else:
            different.append((p[task]["task_id"], verdict["verdict"], want, code))
    print(f"{task}: {len(cases)} mutants, {both['fail']} fail in both, {both['pass']} pass in both, {len(different)} differ")
    for task_id, verdict, want, code in different:
        print(f"    {task_id}: {verdict}, plain Python: {want}\n{shifted(code, '        ')}")
    return len(different)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("program")
    a.add_argument("--humaneval")
    a.add_argument("--mbpp")
    a.add_argument("--every", type=int, default=1)
    a.add_argument("--mutants", type=int, default=0)
    a.add_argument("--layout", action="append", default=[])
    o = a.parse_args()
    functions = list(own_functions())
    sets = [("humaneval", functions), ("mbpp", functions), ("livecodebench", list(own_programs()))]
    sets += [("humaneval", list(humaneval(o.humaneval))[:: o.every])] if o.humaneval else []
    sets += [("mbpp", list(mbpp(o.mbpp))[:: o.every])] if o.mbpp else []
    print("| task | layout | passed | wrong programs passed |\n|---|---|---|---|")
    failures = sum(try_layouts(o.program, task, problems, o.layout) for task, problems in sets)
    if o.mutants:
        failures += sum(try_mutants(o.program, t, problems, o.mutants) for t, problems in sets if t != "livecodebench")
    print(f"{failures} failures" if failures else "all as expected")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
