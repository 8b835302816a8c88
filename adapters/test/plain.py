"""Attention in plain Python over the format bf16, for tests: no packages are needed. The arm's key
isa selects a fault."""
import math
import struct
import time

arrays = "raw"
format = "bf16"
fault = "auto"


def setup(isa):
    global fault
    fault = isa
    if fault == "setup":
        raise NotImplementedError("this machine has no abacus")
    return {"kernel": "plain", "limit_s": 0.3 if fault == "hangs" else 60,
            "device": "abacus" if fault == "device" else "host",
            "format": {"name": "broken"} if fault == "format" else format,
            "lse": fault != "no-lse"}


def plan(cap, form):
    if fault == "plan":
        raise NotImplementedError("only 3 heads, got %d" % cap.heads)
    return {"width": cap.d_c + cap.d_r}


def schedule(state, step, q, cache):
    if fault == "schedule":
        raise ValueError("%d sequences" % step.batch)


def bf16(codes):
    return [struct.unpack("<f", struct.pack("<I", c << 16))[0] for c in codes]


def encode(x):
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return (u + 0x7fff + (u >> 16 & 1)) >> 16


def attend(state, step, q, cache, out, lse):
    if fault == "raises":
        return {}["nothing"]
    if fault == "text":
        raise ValueError("half a pair: \ud83d")
    if fault == "returns":
        return q
    while fault == "hangs":
        pass
    if fault == "sleeps":
        time.sleep(0.001)
    queries, results = q.memoryview().cast("H"), out.memoryview().cast("H")
    logs = lse.memoryview().cast("f")
    lengths, table = step.seqlens.memoryview().cast("i"), step.block_table.memoryview().cast("i")
    pool, width = cache.pool(0).memoryview().cast("H"), state["width"]
    for row in range(step.batch * step.s_q * step.heads):
        b, s = row // (step.s_q * step.heads), row // step.heads % step.s_q
        query = bf16(queries[row * width:(row + 1) * width])
        tokens, scores = [], []
        for j in range(lengths[b] - (step.s_q - 1 - s)):
            page = table[b * step.block_table.shape[1] + j // step.page_tokens]
            at = (page * step.page_tokens + j % step.page_tokens) * width
            tokens.append(bf16(pool[at:at + width]))
            scores.append(step.softmax_scale * sum(x * y for x, y in zip(query, tokens[-1])))
        most = max(scores)
        p = [math.exp(x - most) for x in scores]
        total = sum(p)
        if fault == "shape":
            results[row * step.d_c:(row + 1) * step.d_c] = q.memoryview().cast("H")[:step.d_c + 1]
        if fault == "dtype":
            results = out.memoryview().cast("f")
        for d in range(step.d_c):
            x = sum(w * k[d] for w, k in zip(p, tokens)) / total
            results[row * step.d_c + d] = encode(-x if fault == "wrong" else x)
        if fault != "no-lse":
            logs[row] = most + math.log(total)
    if fault == "inputs":
        queries[0] ^= 1
    if fault == "far":
        import ctypes
        pool_end = cache.pool(0).address + cache.pool(0).nbytes
        ctypes.c_uint8.from_address(pool_end + 300).value ^= 1
    if fault == "outside":
        import ctypes
        ctypes.c_uint8.from_address(out.address + out.nbytes).value ^= 1
