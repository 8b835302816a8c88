"""host.py - the Python side of python_arm.c: loads adapters, shows them the program's memory, and
calls their functions. It is text inside python-arm.so. docs/plugin.md describes what an adapter
defines."""
import ast
import contextlib
import ctypes as c
import importlib.util
import json
import os
import sys
import traceback

OK, DEVICE, UNSUPPORTED = 0, 5, 8  # snap_status


class Capacity(c.Structure):
    _fields_ = [("precision", c.c_int), ("heads", c.c_int), ("d_c", c.c_int), ("d_r", c.c_int),
                ("batch", c.c_int), ("s_q", c.c_int), ("max_tokens", c.c_int64),
                ("splits", c.c_int)]


class CPlane(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type", c.c_char_p), ("columns", c.c_int),
                ("pool", c.c_int), ("offset", c.c_int64), ("stride", c.c_int64)]


class CPool(c.Structure):
    _fields_ = [("paged", c.c_bool), ("bytes", c.c_int64)]


class CFormat(c.Structure):
    _fields_ = [("name", c.c_char_p), ("json", c.c_char_p), ("page_tokens", c.c_int),
                ("planes", c.c_int), ("pools", c.c_int), ("plane", CPlane * 8), ("pool", CPool * 8)]


class CPacked(c.Structure):
    _fields_ = [("format", c.POINTER(CFormat)), ("pages", c.c_int64), ("pool", c.c_void_p * 8)]


class CStep(c.Structure):
    _fields_ = [("precision", c.c_int), ("heads", c.c_int), ("d_c", c.c_int), ("d_r", c.c_int),
                ("max_tokens", c.c_int64), ("batch", c.c_int), ("s_q", c.c_int),
                ("seqlens", c.c_void_p), ("block_table", c.c_void_p), ("table_width", c.c_int)]


class CQueries(c.Structure):
    _fields_ = [("q", c.c_void_p), ("q_rope", c.c_void_p), ("q_scale", c.c_void_p),
                ("softmax_scale", c.c_float)]


class Args(c.Structure):
    _fields_ = [("path", c.c_char_p), ("isa", c.c_char_p), ("paths", c.c_char_p),
                ("name", c.c_char_p), ("kernel", c.c_char_p), ("device", c.c_char_p),
                ("format", c.c_char_p), ("limit_s", c.c_double), ("without_lse", c.c_int64),
                ("self", c.c_int64), ("state", c.c_int64), ("cap", c.POINTER(Capacity)),
                ("fmt", c.POINTER(CFormat)), ("step", c.POINTER(CStep)),
                ("q", c.POINTER(CQueries)), ("cache", c.POINTER(CPacked)), ("out", c.c_void_p),
                ("lse", c.c_void_p), ("stream", c.c_void_p), ("text", c.c_void_p),
                ("text_bytes", c.c_int64), ("sizes", c.c_int64 * 6)]


BITS = {"bf16": 16, "fp16": 16, "fp32": 32, "int32": 32, "e4m3fn": 8, "e4m3fnuz": 8, "e5m2": 8,
        "ue8m0": 8, "int8": 8, "e2m1": 4, "int4": 4, "uint8": 8}
TORCH = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int32": "int32",
         "int8": "int8", "e4m3fn": "float8_e4m3fn", "e4m3fnuz": "float8_e4m3fnuz",
         "e5m2": "float8_e5m2"}  # other types are uint8; two 4-bit values share a byte
NUMPY = {"fp16": "float16", "fp32": "float32", "int32": "int32", "int8": "int8", "bf16": "uint16"}


class Array:
    """Memory of the program: address, shape, strides in bytes, element type, device."""

    def __init__(self, address, shape, strides, type, device, pool_bytes):
        self.address, self.shape, self.strides = address, tuple(shape), tuple(strides)
        self.type, self.device, self.nbytes = type, device, pool_bytes

    def memoryview(self):
        """All bytes from the address on; host memory only."""
        return memoryview((c.c_uint8 * self.nbytes).from_address(self.address)).cast("B")

    def numpy(self):
        import numpy
        flat = numpy.frombuffer(self.memoryview(), dtype=numpy.uint8)
        kind = numpy.dtype(NUMPY.get(self.type, "uint8"))
        return numpy.lib.stride_tricks.as_strided(
            flat[:self.nbytes // kind.itemsize * kind.itemsize].view(kind), self.shape, self.strides)

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False),
                "version": 3, "strides": None}

    def torch(self):
        import torch
        if self.device == "cuda":
            flat = torch.as_tensor(self, device="cuda")
            if flat.data_ptr() != self.address:
                raise RuntimeError("torch copied the memory instead of viewing it")
        else:
            flat = torch.frombuffer(self.memoryview(), dtype=torch.uint8)
        kind = getattr(torch, TORCH.get(self.type, "uint8"))
        size = kind.itemsize
        if any(s % size for s in self.strides):
            raise ValueError("strides of %s bytes do not fit %s" % (self.strides, self.type))
        flat = flat[:self.nbytes // size * size].view(kind)
        return flat.as_strided(self.shape, [s // size for s in self.strides])


class Capacities:
    """heads, d_c, d_r, batch, s_q, max_tokens: the largest step of a plan."""

    def __init__(self, cap):
        for key in ("heads", "d_c", "d_r", "batch", "s_q", "max_tokens"):
            setattr(self, key, getattr(cap, key))


class Format:
    """name, page_tokens, descriptor (dict), planes: {name: (type, columns)}."""

    def __init__(self, f):
        self.name, self.page_tokens = f.name.decode(), f.page_tokens
        self.descriptor = json.loads(f.json.decode())
        self.planes = {f.plane[i].name.decode(): (f.plane[i].type.decode(), f.plane[i].columns)
                       for i in range(f.planes)}


class Cache:
    """The packed cache of a step. plane("content") is an array [pages][page_tokens][columns]. A
    plane whose values all tokens of a page share is [pages][columns], and one whose values all
    tokens of the tensor share is [columns]. pool(0) has the bytes: [pages][bytes of a page]."""

    def __init__(self, packed, device, view):
        self._packed, self._device, self._view, self._made = packed, device, view, {}
        self.pages, self.page_tokens = packed.pages, packed.format[0].page_tokens

    def pool(self, index):
        f = self._packed.format[0]
        if not 0 <= index < f.pools:
            raise IndexError("the format has %d pools" % f.pools)
        p, address = f.pool[index], self._packed.pool[index]
        n = self.pages if p.paged else 1
        return self._keep(("pool", index), Array(address, (n, p.bytes), (p.bytes, 1), "uint8",
                                                 self._device, n * p.bytes))

    def plane(self, name):
        f = self._packed.format[0]
        for i in range(f.planes):
            p = f.plane[i]
            if p.name.decode() != name:
                continue
            pool, kind = f.pool[p.pool], p.type.decode()
            bits = BITS[kind]
            columns, step = (p.columns + 1) // 2 if bits == 4 else p.columns, max(bits // 8, 1)
            dims = [(columns, step)]
            if p.stride:
                dims.insert(0, (f.page_tokens, p.stride))
            if pool.paged:
                dims.insert(0, (self.pages, pool.bytes))
            total = (self.pages if pool.paged else 1) * pool.bytes - p.offset
            return self._keep(name, Array(self._packed.pool[p.pool] + p.offset,
                                          [d[0] for d in dims], [d[1] for d in dims], kind,
                                          self._device, total))
        raise KeyError("the format has no plane '%s'" % name)

    def _keep(self, key, array):
        if key not in self._made:
            self._made[key] = self._view(array)
        return self._made[key]


class Step:
    """batch, s_q, heads, d_c, d_r, max_tokens, page_tokens, softmax_scale, stream (a number);
    seqlens: int32 [batch]; block_table: int32 [batch][pages]."""


def contiguous(address, shape, kind, device):
    size, strides = BITS[kind] // 8, []
    for n in reversed(shape):
        strides.insert(0, size)
        size *= n
    return Array(address, shape, strides, kind, device, size)


class Arm:
    def __init__(self, module, setup, path):
        get = lambda key, default: setup.get(key, getattr(module, key, default))
        self.module = module
        self.name = str(get("name", os.path.splitext(os.path.basename(path))[0]))
        self.kernel = str(get("kernel", self.name))
        self.device = str(get("device", "host"))
        self.limit_s = float(get("limit_s", 0))
        self.without_lse = not get("lse", True)
        form = get("format", None)
        self.format = json.dumps(form) if isinstance(form, dict) else form
        self.arrays = str(get("arrays", "torch"))
        if not callable(getattr(module, "attend", None)):
            raise TypeError("the file defines no function attend()")
        if self.format is not None and not isinstance(self.format, str):
            raise TypeError("'format' must be a name or a dict")
        if self.arrays not in ("torch", "numpy", "raw"):
            raise ValueError("'arrays' must be torch, numpy or raw, not '%s'" % self.arrays)
        self.streams, self.plans = {}, {}
        self.texts = [t.encode() if t else None
                      for t in (self.name, self.kernel, self.device, self.format)]

    def view(self, array):
        return array if self.arrays == "raw" else getattr(array, self.arrays)()

    def on(self, stream):
        """The context in which torch uses the program's stream."""
        if self.device != "cuda" or self.arrays != "torch":
            return contextlib.nullcontext()
        import torch
        if stream not in self.streams:
            self.streams[stream] = torch.cuda.ExternalStream(stream or 0)
        return torch.cuda.stream(self.streams[stream])


class Plan:
    def __init__(self, state, page_tokens):
        self.state, self.page_tokens, self.calls = state, page_tokens, {}


def step_of(arm, plan, a):
    s = a.step[0]
    step = Step()
    for key in ("batch", "s_q", "heads", "d_c", "d_r", "max_tokens"):
        setattr(step, key, getattr(s, key))
    step.page_tokens, step.stream = plan.page_tokens, a.stream or 0
    step.seqlens = arm.view(contiguous(s.seqlens, (s.batch,), "int32", arm.device))
    step.block_table = arm.view(contiguous(s.block_table, (s.batch, s.table_width), "int32",
                                           arm.device))
    step.softmax_scale = a.q[0].softmax_scale
    return step


def objects_of(arm, plan, a):
    """What an adapter's function gets after its state; schedule() gets the first three. It is made
    once for each set of addresses."""
    s = a.step[0]
    packed = a.cache[0]
    key = (s.seqlens, s.block_table, s.batch, s.s_q, s.table_width, a.out, a.lse, a.q[0].q,
           packed.pages, a.stream) + tuple(packed.pool)
    made = plan.calls.get(key)
    if made is None:
        copied = CPacked.from_buffer_copy(packed)
        cache = Cache(copied, arm.device, arm.view)
        step = step_of(arm, plan, a)
        rows = (s.batch, s.s_q, s.heads)
        made = (step, arm.view(contiguous(a.q[0].q, rows + (s.d_c + s.d_r,), "bf16", arm.device)),
                cache)
        if a.out:
            made += (arm.view(contiguous(a.out, rows + (s.d_c,), "bf16", arm.device)),
                     arm.view(contiguous(a.lse, rows, "fp32", arm.device)) if a.lse else None)
        plan.calls[key] = made
    return made


arms, numbers = {}, iter(range(1, 1 << 62))


def load(path, number):
    if not os.path.isfile(path):
        raise FileNotFoundError("no such file: %s" % path)
    spec = importlib.util.spec_from_file_location("snapmla_adapter_%d" % number, path)
    if spec is None:
        raise ImportError("%s is not a Python file: its name must end with .py" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Triton looks for the source of a kernel there
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.path[0]
    return module


def start(a):
    own = [Args, Capacity, CFormat, CStep, CQueries, CPacked]
    if [c.sizeof(t) for t in own] != list(a.sizes):
        raise RuntimeError("host.py was built with other headers")
    where = json.loads(a.paths.decode())
    sys.path[:] = where["path"]
    sys.prefix, sys.exec_prefix = where["prefix"], where["exec_prefix"]
    sys.executable = where["executable"]
    sys.argv = ["snapmla"]
    sys.stdout = sys.stderr  # the program writes its results to standard output


def stated_limit(path):
    """The number that the file assigns to limit_s outside of functions; 0 if there is none, or if
    no limit may have this value. It is read from the text, because importing the file is a call
    that has this limit."""
    if not os.path.isfile(path):
        return 0  # opening a pipe would wait for a writer, and this is no call with a limit
    try:
        with open(path, "rb") as file:
            body = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return 0  # importing the file raises the same error, with its line
    values = [statement.value for statement in body if isinstance(statement, ast.Assign)
              and [getattr(target, "id", None) for target in statement.targets] == ["limit_s"]]
    value = getattr(values[-1], "value", 0) if values else 0
    return value if type(value) in (int, float) and 0 < value <= 3600 else 0


def read_limit(a):
    a.limit_s = stated_limit(os.fsdecode(a.path))


def make(a):
    number = next(numbers)
    path = os.fsdecode(a.path)
    module = load(path, number)
    setup = module.setup(a.isa.decode()) if hasattr(module, "setup") else None
    arm = arms[number] = Arm(module, setup or {}, path)
    a.self = number
    a.name, a.kernel, a.device, a.format = arm.texts
    a.limit_s, a.without_lse = arm.limit_s, arm.without_lse


def plan(a):
    arm, number = arms[a.self], next(numbers)
    form = Format(a.fmt[0])
    made = arm.module.plan(Capacities(a.cap[0]), form) if hasattr(arm.module, "plan") else None
    arm.plans[number] = Plan(made, form.page_tokens)
    a.state = number


def free(a):
    arms[a.self].plans.pop(a.state, None)


def schedule(a):
    arm = arms[a.self]
    if not hasattr(arm.module, "schedule"):
        return
    p = arm.plans[a.state]
    with arm.on(a.stream):
        arm.module.schedule(p.state, *objects_of(arm, p, a))


def attend(a):
    arm = arms[a.self]
    p = arm.plans[a.state]
    with arm.on(a.stream):
        result = arm.module.attend(p.state, *objects_of(arm, p, a))
    if result is not None:
        raise TypeError("attend() must write to 'out' and 'lse' and return None, not %s"
                        % type(result).__name__)


def drop(a):
    arms.pop(a.self, None)


operations = [start, read_limit, make, plan, free, schedule, attend, drop]


def perform(op, a):
    """Makes a call. python_arm.c has set its time limit in @a, and raises TimeoutError after it."""
    limit_s = a.limit_s
    try:
        operations[op](a)
    except TimeoutError as error:
        if error.args:
            raise  # the adapter raised it
        what = operations[op].__name__ + "()"
        if operations[op] is make:
            what = "importing %s" % os.path.basename(os.fsdecode(a.path))
        message = "%s took longer than %g seconds; 'limit_s = SECONDS' in the adapter sets the limit"
        raise TimeoutError(message % (what, limit_s)).with_traceback(error.__traceback__)


def explain(error):
    """One line: what failed, and the line of the user's file."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, ModuleNotFoundError):
        text += "; install it for the interpreter that SNAPMLA_PYTHON names, or python3"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != "host.py"]
    place = ""
    if frames:
        place = " (%s, line %d)" % (os.path.basename(frames[-1].filename), frames[-1].lineno or 0)
    return "%s: %s%s" % (type(error).__name__, text[:400], place)


def dispatch(op, address):
    a = Args.from_address(address)
    try:
        perform(op, a)
        return OK
    except BaseException as error:
        if os.environ.get("SNAPMLA_PYTHON_TRACE"):
            traceback.print_exc()
        text = explain(error).encode(errors="replace")[:a.text_bytes - 1]
        c.memmove(a.text, text + b"\0", len(text) + 1)
        unsupported = isinstance(error, (ImportError, NotImplementedError))
        return UNSUPPORTED if unsupported else DEVICE
