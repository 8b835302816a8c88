"""flashmla.py - FlashMLA's dense decode kernel over the format bf16.

    --arm flashmla=python:adapters/flashmla.py            isa: auto, flash_mla, vllm, sgl

One of these packages must be installed: flash_mla of deepseek-ai/FlashMLA, vllm, or sgl_kernel. The
last two contain the same kernel. `auto` takes the first that can be imported.

The kernel allocates its log-sum-exp itself. Copying it would add a launch of about two microseconds
to every step, so the log-sum-exp is not returned. isa=flash_mla+lse (or auto+lse ...) returns it.
"""
import importlib
import inspect

import torch

format = "bf16"
device = "cuda"
limit_s = 600
PLACES = {"flash_mla": "flash_mla", "vllm": "vllm.third_party.flashmla.flash_mla_interface",
          "sgl": "sgl_kernel.flash_mla"}
library, takes_out, with_lse = None, False, False


def load(names):
    failures = []
    for name in names:
        try:
            return name, importlib.import_module(PLACES[name])
        except ImportError as error:
            failures.append("%s: %s" % (name, error))
    raise ImportError("; ".join(failures))


def setup(isa):
    global library, takes_out, with_lse
    which, _, rest = isa.partition("+")
    if rest not in ("", "lse") or which not in ("auto", *PLACES):
        raise NotImplementedError("isa must be auto, flash_mla, vllm or sgl, with or without +lse")
    name, library = load(PLACES if which == "auto" else [which])
    takes_out = "out" in inspect.signature(library.flash_mla_with_kvcache).parameters
    with_lse = rest == "lse"
    package = importlib.import_module(PLACES[name].split(".")[0])
    return {"kernel": "FlashMLA in %s %s" % (name, getattr(package, "__version__", "")),
            "lse": with_lse}


class Plan:
    made = lengths = None


def plan(cap, form):
    if form.name != "bf16" or form.page_tokens != 64 or (cap.d_c, cap.d_r) != (512, 64):
        raise NotImplementedError("it reads bf16 in pages of 64 tokens, with 512 + 64 columns")
    return Plan()


def call(step, q, cache, metadata, splits, **more):
    pool = cache.pool(0).view(torch.bfloat16).view(cache.pages, step.page_tokens, 1, -1)
    return library.flash_mla_with_kvcache(
        q, pool, step.block_table, step.seqlens, step.d_c, metadata, splits,
        softmax_scale=step.softmax_scale, causal=True, **more)


def metadata_of(step, q, cache):
    made = library.get_mla_metadata(step.seqlens, step.s_q * step.heads, 1)
    if not isinstance(made[0], torch.Tensor):
        call(step, q, cache, *made)  # newer versions fill the metadata in the first call
    return made


def schedule(p, step, q, cache):
    if p.made and torch.equal(p.lengths, step.seqlens):
        return
    new = metadata_of(step, q, cache)
    p.lengths = step.seqlens.clone()
    if not p.made:
        p.made = new
    elif isinstance(new[0], torch.Tensor):
        for tensor, other in zip(p.made, new):  # a recorded step reads these tensors
            tensor.copy_(other)
    else:
        p.made[0].tile_scheduler_metadata.copy_(new[0].tile_scheduler_metadata)
        p.made[0].num_splits.copy_(new[0].num_splits)


def attend(p, step, q, cache, out, lse):
    if takes_out:
        rows = out.view(step.batch, 1, step.s_q * step.heads, step.d_c)  # as the library stores them
        _, logs = call(step, q, cache, *p.made, out=rows)
    else:
        result, logs = call(step, q, cache, *p.made)
        out.copy_(result)
    if with_lse:
        lse.copy_(logs.transpose(1, 2))
