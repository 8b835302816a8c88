# A program that ends with assertions (HumanEval, MBPP): right when it comes to its end. Request: a word
# that says so through the channel; else the name of the exception goes there.
import types


def main():
    word = request()["word"].encode()
    source = program()
    say(b"S")
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    try:
        exec(compile(source, "program.py", "exec", dont_inherit=True), module.__dict__)
    except BaseException as e:
        return say(b"E" + type(e).__name__.encode("utf-8", "replace"))
    say(b"P" + word)


main()
