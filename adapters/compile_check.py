"""compile_check.py - compiles the Triton kernels of an adapter for an H200 (sm_90a), without a GPU.

    python3 adapters/compile_check.py mine.py [HEADS [QUERY_TOKENS]]

Triton's interpreter also runs code that a GPU cannot: for example, a name that is a block before an
`if` and a scalar in it. This script calls setup(), plan() and attend() of the adapter with a small
cache in the format bf16, in host memory, and compiles each kernel instead of launching it. It does
not support triton.autotune. It was tested with Triton 3.6 and PyTorch 2.11."""
import importlib
import os
from sys import argv, exit, path
from types import SimpleNamespace as Record

os.environ.pop("TRITON_INTERPRET", None)
import torch
import triton
from triton.backends.compiler import GPUTarget
D_C, D_R, PAGE, BATCH, CONTEXT = 512, 64, 64, 4, 4096
heads, s_q = map(int, argv[2:] + ["16", "1"][len(argv) - 2:]) if argv[1:] else exit(__doc__)


class HostMemory(torch.overrides.TorchFunctionMode):
    """Tensors that the adapter makes on the GPU are made in host memory."""
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = {k: "cpu" if k == "device" else v for k, v in (kwargs or {}).items()}
        return function(*args, **kwargs)


def compile_only(kernel, *args, grid, warmup, **options):
    shared = launch(kernel, *args, grid=grid, warmup=True, **options).metadata.shared
    print("%s: %d of %d bytes of shared memory" % (kernel.__name__, shared, 227 << 10))
    if shared > 227 << 10:
        exit("too much shared memory")

launch, triton.JITFunction.run = triton.JITFunction.run, compile_only
triton.runtime.driver.set_active(Record(
    get_current_target=lambda: GPUTarget("cuda", 90, 32), get_current_device=lambda: 0,
    get_current_stream=lambda device: 0))
torch.cuda.is_available, torch.cuda.current_device = lambda: True, lambda: 0
torch.cuda.get_device_capability = lambda *device: (9, 0)
torch.cuda.get_device_properties = lambda *device: Record(multi_processor_count=132)

shape = dict(heads=heads, d_c=D_C, d_r=D_R, batch=BATCH, s_q=s_q, max_tokens=CONTEXT)
kinds = {"content": ("bf16", D_C), "rope": ("bf16", D_R)}
pages = torch.zeros(BATCH * CONTEXT // PAGE, PAGE, D_C + D_R, dtype=torch.bfloat16)
planes = {"content": pages[..., :D_C], "rope": pages[..., D_C:]}
page_bytes = pages.view(torch.uint8).view(len(pages), -1)
cache = Record(pages=len(pages), page_tokens=PAGE, plane=planes.get, pool=[page_bytes].__getitem__)
step = Record(page_tokens=PAGE, softmax_scale=0.07, stream=0, **shape)
step.seqlens = torch.full([BATCH], CONTEXT, dtype=torch.int32)
step.block_table = torch.arange(len(pages), dtype=torch.int32).view(BATCH, -1)
q = torch.zeros(BATCH, s_q, heads, D_C + D_R, dtype=torch.bfloat16)
out, lse = torch.zeros(BATCH, s_q, heads, D_C, dtype=torch.bfloat16), torch.zeros(BATCH, s_q, heads)
path.insert(0, os.path.dirname(os.path.abspath(argv[1])))
with HostMemory():
    adapter = importlib.import_module(os.path.basename(argv[1]).removesuffix(".py"))
    getattr(adapter, "setup", lambda isa: None)("auto")
    state = adapter.plan(Record(**shape), Record(name="bf16", page_tokens=PAGE, planes=kinds))
    getattr(adapter, "schedule", lambda *given: None)(state, step, q, cache)
    adapter.attend(state, step, q, cache, out, lse)
