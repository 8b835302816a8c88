# --judge lcb: imitates LiveCodeBench's own checker. All tests run in one process. A program that
# reads standard input becomes the body of a function, and its imports stay outside. Standard input
# is an object with some of a file's methods; standard output is a text in memory. Where this
# differs from a real interpreter, the difference is intended.
#
# Channel: "S", then one frame per test: a letter, the length, a line feed, that many bytes. The
# letter is O for the output, V for the value, T for out of time, E for an exception. "X" instead of
# the first frame means that the program could not be loaded.
import ast
import builtins
import io
import shutil
import signal
import subprocess
import types


class TimeoutException(Exception):
    pass


def on_alarm(signum, frame):
    print("out of time")
    raise TimeoutException


def set_alarm(seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)  # signal.alarm() would cut 0.5 s to 0, which is no limit


def forbid():
    for name in (
        "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate "
        "replace unlink fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir"
    ).split():
        setattr(os, name, None)
    for name in ("rmtree", "move", "chown"):
        setattr(shutil, name, None)
    for name in ("ipdb", "joblib", "resource", "psutil", "tkinter"):
        sys.modules[name] = None
    subprocess.Popen = None
    builtins.quit = None
    builtins.help = None


# ---- programs that read standard input ----


class Bytes:
    """read() always returns the whole text, readline() always the first line."""

    def __init__(self, text):
        self.inputs = text.encode("utf-8")

    def read(self, *args):
        return self.inputs

    def readline(self, *args):
        return self.inputs.split(b"\n")[0] + b"\n"


class Input:
    """Cannot be iterated over. Has buffer, read and readlines; the rest is a StringIO's."""

    def __init__(self, text):
        self.buffer = Bytes(text)
        self.read = lambda *args: text
        self.readlines = lambda *args: text.split("\n")
        self._stringio = io.StringIO(text)

    def __getattr__(self, name):
        return getattr(self._stringio, name)


def imitate(file, text):
    """Imitates standard input that a program imported from sys: lines without newlines."""
    lines = iter(text.split("\n"))
    file.read = lambda *args: text
    file.readline = lambda *args: next(lines)
    file.readlines = lambda *args: text.split("\n")


def without_main_test(source):
    try:
        tree = ast.parse(source)
        last = tree.body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == "__name__ == '__main__'":
            return ast.unparse(tree.body[:-1]) + "\n" + ast.unparse(last.body)
    except BaseException:
        pass
    return source


def as_function(source):
    try:
        imports, others = [], []
        for statement in ast.parse(source).body:
            (imports if isinstance(statement, (ast.Import, ast.ImportFrom)) else others).append(statement)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        function = ast.FunctionDef(name="wrapped_function", args=none, body=others, decorator_list=[], lineno=-1)
        return PROMISED + "\n" + ast.unparse(imports) + "\n" + ast.unparse(function)
    except Exception:
        return source


def mocked_open(text):
    def opened(*args, **kwargs):
        from unittest.mock import mock_open

        if not made:
            made.append(mock_open(read_data=text))
        return made[0](*args, **kwargs)

    made = []
    return opened


def call_with_input(function, text):
    kept = sys.stdin, sys.stdout, builtins.open
    sys.stdout = output = io.StringIO()
    output.close = lambda x: 1
    try:
        try:
            imitate(kept[0], text)
            sys.stdin, builtins.open = Input(text), mocked_open(text)
            function()
        except SystemExit:
            pass
        finally:
            sys.stdin, builtins.open = kept[0], kept[2]
            vars(kept[0]).clear()
        set_alarm(0)
    finally:
        set_alarm(0)
        sys.stdout = kept[1]
    return b"O", output.getvalue().encode("utf-8", "surrogatepass")


# ---- methods ----


def call_with_values(function, arguments):
    value = function(*arguments)
    set_alarm(0)
    # golds have no tuples, so a returned tuple counts as a list
    return b"V", encoded(list(value) if isinstance(value, tuple) else value)


# ---- the tests ----


def load(source, name, seconds):
    set_alarm(seconds)
    try:
        module = types.ModuleType("tmp_sol", "")
        exec(source, module.__dict__)
        found = module.Solution() if "class Solution" in source else module
        return getattr(found, name)
    finally:
        set_alarm(0)


def prepare(source, name, inputs, seconds):
    set_alarm(seconds)
    if not name:
        function = load(as_function(without_main_test(source)), "wrapped_function", seconds)
        return call_with_input, function, inputs
    function = load(PROMISED + "\n\n" + source, name, seconds)
    return call_with_values, function, [[json.loads(line) for line in text.split("\n")] for text in inputs]


def attempt(call, function, given, seconds):
    set_alarm(seconds)
    try:
        return call(function, given)
    except Exception as e:
        set_alarm(0)
        late = "timeoutexception" in repr(e).lower()
        return (b"T" if late else b"E"), repr(e)[:300].encode("utf-8", "replace")
    finally:
        set_alarm(0)


def main():
    job = request()
    seconds = job["seconds"]
    source = program().decode("utf-8", "surrogateescape")
    signal.signal(signal.SIGALRM, on_alarm)
    say(b"S")
    forbid()
    try:
        call, function, inputs = prepare(source, job["fn_name"], job["inputs"], seconds)
    except Exception as e:
        why = repr(e)[:300].encode("utf-8", "replace")
        return say(b"X%d\n" % len(why) + why)
    for given in inputs:
        letter, text = attempt(call, function, given, seconds)
        say(letter + b"%d\n" % len(text) + text)
        if letter in b"TE":
            return


main()
