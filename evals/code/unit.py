# A program that ends with assertions (HumanEval, MBPP): it passes if it runs to its end. The
# request has a word, which is then sent through the channel. Otherwise the name of the exception is
# sent and, if a module was not found, the message.
import types


def main():
    word = request()["word"].encode()
    source = program()
    say(b"S")
    # Not "__main__": the part of a program that runs it as a script is no part of its functions.
    module = types.ModuleType("program")
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = sys.modules["program"] = module
    try:
        exec(compile(source, "program.py", "exec", dont_inherit=True), module.__dict__)
    except BaseException as e:
        name = type(e).__name__ + (f": {e}" if type(e) is ModuleNotFoundError else "")
        return say(b"E" + name.encode("utf-8", "replace"))
    say(b"P" + word)


main()
