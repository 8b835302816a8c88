# --judge real: the program is the main program of its own process, with real standard input and
# output and with the names that LiveCodeBench makes available. If a function is tested, standard
# input has one argument per line, as JSON, and the return value goes through the channel.
import types


def load(source):
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    exec(PROMISED, module.__dict__)
    exec(compile(source, "program.py", "exec", dont_inherit=True), module.__dict__)
    return module


def find(module, name):
    solution = getattr(module, "Solution", None)
    return getattr(solution(), name) if hasattr(solution, name) else getattr(module, name)


def main():
    name = request()["fn_name"]
    source = program()
    say(b"S")
    if not name:
        os.close(3)
        try:
            load(source)
        except SystemExit:
            pass  # any exit code is fine
        return
    lines = sys.stdin.read().split("\n")
    arguments = [json.loads(line) for line in lines if line.strip()]
    value = find(load(source), name)(*arguments)
    # golds have no tuples, so a returned tuple counts as a list
    say(b"V" + encoded(list(value) if isinstance(value, tuple) else value))


main()
