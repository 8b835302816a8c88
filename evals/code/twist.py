# Changes one assertion of a problem so that a right program fails it. A program that passes all the
# same does not compute its answers: it reads the expected values, replaces the check, or returns
# objects that equal everything. The expected value becomes another one of the same type, so that
# only a program that computes the answer can tell the changed tests from the real ones. The judged
# program never shares a process with this one.
#
# The request has the tests and a random number, which chooses the assertion. Channel: "S", then the
# changed tests.
import ast


def other(value, r):
    """A different value of the same type; None if there is no simple one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 + r % 3
    if isinstance(value, float):
        return value + 1.0 + r % 3 if abs(value) < 1e15 else None
    if isinstance(value, str):
        at = r % (len(value) + 1)
        return value[:at] + "aeiou"[r % 5] + value[at:]
    if isinstance(value, dict) and value:
        key = list(value)[r % len(value)]
        changed = other(value[key], r // 7)
        return None if changed is None else {**value, key: changed}
    if isinstance(value, (list, tuple, set)):
        items = list(value)
        at = r % max(len(items), 1)
        changed = other(items[at], r // 7) if items else r % 10
        if changed is None:
            return None
        items[at : at + 1] = [changed]
        return type(value)(items)
    return None


def literal(node):
    """A tuple with the node's value if the node is a literal."""
    try:
        return (ast.literal_eval(node),)
    except Exception:
        return None


def change(test, r):
    """The part of an assertion to replace, and its new value; None: the part must be negated."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        for side in (test.comparators[0], test.left):
            value = literal(side)
            new = other(value[0], r) if value else None
            if new is not None and new != value[0] and literal(ast.parse(repr(new), mode="eval").body) == (new,):
                return side, new
    return test, None


def always_run(tree):
    """The assertions that every program reaches which passes those before: not those in a branch or loop."""
    called = {
        n.value.func.id
        for n in tree.body
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Name)
    }
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}  # the last of a name
    for n in tree.body:
        body = [n]
        if isinstance(n, ast.FunctionDef):
            body = n.body if n.name in called and functions[n.name] is n else []
        if any(isinstance(c, (ast.Yield, ast.YieldFrom)) for c in ast.walk(n)):
            continue
        for statement in body:
            if any(isinstance(c, ast.Return) for c in ast.walk(statement)):
                break
            if isinstance(statement, ast.Assert) and any(isinstance(c, ast.Call) for c in ast.walk(statement.test)):
                yield statement.test


def replaced(source, node, value):
    lines = source.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    old = ast.get_source_segment(source, node)
    if value is None:
        text = "not (" + old + ")"
    elif isinstance(value, str) and old[0] == '"':
        text = json.dumps(value)  # the same quotes as in the tests
    else:
        text = repr(value)
    lines[first : last + 1] = [before + text.encode() + after]
    return b"\n".join(lines)


def twisted(source, r):
    source = source.replace("\r\n", "\n")
    try:
        tests = list(always_run(ast.parse(source)))
    except SyntaxError:
        tests = []
    if not tests or "\r" in source or "\f" in source:
        return source.encode() + b"\nassert False\n"
    return replaced(source, *change(tests[r % len(tests)], r // len(tests)))


job = request()
say(b"S" + twisted(job["tests"], job["random"]))
