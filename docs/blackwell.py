#!/usr/bin/env python3
"""Predicts times of the MLA decode kernels, and writes the tables of docs/blackwell.md.

The model is a sum of latencies and one rate. The rate is that of the slowest of three resources:
memory, shared memory, tensor cores. H200 times are compared with the kept file. B200 times are
predictions: the kernel of docs/blackwell.md has never run. Needs no packages.

    blackwell.py            prints the tables
    blackwell.py --check    exits 1 if docs/blackwell.md has other tables than these, or if the
                            model misses a time of the fourteen shapes by more than 10 %
    blackwell.py --write    puts the tables into docs/blackwell.md
"""
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "results/nvidia-h200/2026-11-22-f884796e1c54-table.json"
# The same shapes after the last change of the FP8 kernel. No constant was taken from these times.
LATER = ROOT / "results/nvidia-h200/2026-11-23-2fe0fc2b7528-table.json"
ELSEWHERE = [ROOT / ("results/nvidia-h200/2026-11-22-f884796e1c54-%s.json" % name)
             for name in ("public-kernel", "random-kernel")]
PAGE_OF_TABLES = ROOT / "docs/blackwell.md"
ALLOWED = 0.10

TILE = 128         # tokens that the tables of clocks are for: two pages
BANDWIDTH = 128    # bytes of shared memory per clock and SM
US = 1e6

# ---- constants of the latencies; docs/blackwell.md says where each comes from ----
LAUNCH = 2.944                 # us, an empty launch between two events
LATENCY_CLOCK = 1850           # clocks per us while the SMs wait
FIRST_PAGE = (3490, 6260)      # clocks until the first page: few CTAs, many CTAs
FEW_CTAS = 32                  # up to here, CTAs hardly disturb each other
CHAIN_64 = 6890                # clocks from the first page to O of the first tile, FP8, 64 rows
CHAIN_16 = 2900                # the same with tiles of 16 rows, where the tile is one page
CHAIN_BF16 = 2780              # the same for the first page of the BF16 kernel
MERGE_TRIP = 0.9               # us, from a stored value to its arrival in another SM
MERGE_64K = (4850, 7760)       # clocks to store and read 64 KB for each CTA: few, many CTAs
SHARED_USE = 0.84              # share of shared memory's bandwidth that a tile reaches; fitted


class Device:
    def __init__(self, sms, bytes_per_us, clocks_per_us):
        self.sms, self.bytes_per_us, self.clocks_per_us = sms, bytes_per_us, clocks_per_us


H200_CLOCK = 1660              # per us, within a launch under load
H200_SHEET_CLOCK = 1830        # per us: 1979 TFLOPS / (132 SMs x 8192 FLOP per clock)
H200_SHEET_BYTES = 4.8e6       # per us
B200_SMS = 148
B200_SHEET_CLOCK = 1850        # per us: 4500 TFLOPS / (148 SMs x 16384 FLOP per clock)
B200_SHEET_BYTES = 8.0e6       # per us
H200_BYTES = 4.62e6            # per us: bulk copies of 40 KB

H200 = Device(132, H200_BYTES, H200_CLOCK)
# A B200 is assumed to reach the same shares of its data sheet as the H200 does.
B200 = Device(B200_SMS, B200_SHEET_BYTES * H200_BYTES / H200_SHEET_BYTES,
              B200_SHEET_CLOCK * H200_CLOCK / H200_SHEET_CLOCK)


class Kernel:
    """token_bytes: bytes of a cached token. rows: rows of a row tile. ctas: CTAs that share one
    row tile's pages. tokens: the smallest piece of a sequence. shared, tensor, exp, widen: clocks of
    one SM for TILE tokens. chain: clocks from the first page to O. trips: trips through L2 that a
    merge does not hide."""

    def __init__(self, name, token_bytes, rows, ctas, tokens, shared, tensor, chain, exp=0,
                 widen=0, trips=1):
        self.name, self.token_bytes, self.rows, self.ctas = name, token_bytes, rows, ctas
        self.tokens, self.shared, self.tensor = tokens, shared, tensor
        self.chain, self.exp, self.widen, self.trips = chain, exp, widen, trips

    def shared_sum(self):
        return sum(self.shared.values())

    def tile_us(self, device):
        """The time of TILE tokens in one SM, without memory, and what limits it."""
        limits = {"shared memory": self.shared_sum() / SHARED_USE,
                  "tensor cores": sum(self.tensor.values()), "exponentials": self.exp,
                  "widening": self.widen}
        name = max(limits, key=limits.get)
        return limits[name] / device.clocks_per_us, name


def clocks(byte_count):
    return byte_count / BANDWIDTH


# ---- Hopper: the kernels that exist ----
HOPPER_FP8_64 = Kernel(
    "sm90_fp8, 64 rows", 644, 64, 1, 128,
    {"pages copied in": 644, "Q and K read": 1152, "V read": 512, "P written and read": 576,
     "scales": 70}, {"S": 1024, "RoPE": 256, "P V": 1024}, CHAIN_64)
HOPPER_FP8_16 = Kernel(
    "sm90_fp8, 16 rows", 644, 16, 1, 64,
    {"pages copied in": 644, "Q and K read": 800, "V read": 512, "P written and read": 144,
     "scales": 70}, {"S": 512, "RoPE": 128, "P V": 256}, CHAIN_16)
# Its merge counts the slots that are stored, and then reads; two more trips are not hidden.
HOPPER_BF16 = Kernel(
    "sm90_bf16", 1152, 64, 1, 64,
    {"pages copied in": 1152, "Q and K read": 2176, "V read": 1024, "P written and read": 256},
    {"S": 2304, "P V": 2048}, CHAIN_BF16, trips=3)


# ---- Blackwell: the designs of docs/blackwell.md ----
def fp8_single(rows):
    """S^T = K Q^T and O^T = V^T P^T in one CTA."""
    return Kernel(
        "FP8, one CTA, %d rows" % rows, 644, rows, 1, 128,
        {"pages copied in": clocks(644 * TILE), "K read": clocks(TILE * 640),
         "Q read": clocks(rows * 640), "V read": clocks(TILE * 512),
         "P written": clocks(rows * TILE), "P read": clocks(4 * rows * TILE)},
        {"S": 8 * rows, "RoPE": 2 * rows, "P V": 8 * rows},
        CHAIN_16 if rows <= 32 else CHAIN_64, rows * TILE / 16)


def fp8_pair():
    """128 rows in a pair of CTAs; a CTA has 64 of them."""
    return Kernel(
        "FP8, pair, 128 rows", 644, 128, 2, 128,
        {"pages copied in": clocks(64 * 640 + TILE * 256 + TILE * 4),
         "K read": clocks(64 * 640), "Q read": clocks(64 * 640), "V read": clocks(TILE * 256),
         "P written": clocks(64 * TILE), "P read": clocks(2 * 64 * TILE)},
        {"S": 512, "RoPE": 128, "P V": 512}, CHAIN_64, 64 * TILE / 16)


FP4_TOKEN = 256 + 32 + 128      # e2m1, an e4m3 scale for 16 columns, RoPE in bf16
WIDEN_RATE = 64                # conversions of two numbers per clock and SM; assumed
SCALE_READS = 4 * 8 * 8        # 4 groups of 32 tokens, 8 of 64 columns, 8 reads of a warp each
# The loads of the scales that nvfp4_pair.cu stores to tensor memory: 4 warps, 8 blocks of 64 numbers,
# 8 bytes of every 16, which take 4 clocks for a warp.
PAIR_SCALE_LOADS = 4 * 8 * 4


def widen(numbers):
    """Clocks of the conversions e2m1 to f16 and f16 to e4m3."""
    return 2 * numbers / 2 / WIDEN_RATE


def nvfp4_few(rows):
    """K in FP4 as it is stored, Q as the sum of two FP4 terms. V is widened to e4m3 and written to
    tensor memory."""
    return Kernel(
        "NVFP4, one CTA, %d rows" % rows, FP4_TOKEN, rows, 1, 128,
        {"pages copied in": clocks(FP4_TOKEN * TILE), "K read": clocks(TILE * (256 + 128)),
         "Q read": clocks(rows * (2 * 256 + 128)), "block scales read": clocks(TILE * 32),
         "V widened": clocks(TILE * 256) + SCALE_READS, "P written": clocks(rows * TILE),
         "P read": clocks(4 * rows * TILE)},
        {"S": 8 * rows, "RoPE": 2 * rows, "P V": 8 * rows}, CHAIN_16, rows * TILE / 16,
        widen(TILE * 512))


def nvfp4_single(rows):
    """As nvfp4_few(), but V goes through shared memory: O needs the tensor memory."""
    return Kernel(
        "NVFP4, one CTA, %d rows" % rows, FP4_TOKEN, rows, 1, 128,
        {"pages copied in": clocks(FP4_TOKEN * TILE), "K read": clocks(TILE * (256 + 128)),
         "Q read": clocks(rows * (2 * 256 + 128)), "block scales read": clocks(TILE * 32),
         "V widened": clocks(TILE * (288 + 512)), "V read": clocks(TILE * 512),
         "P written": clocks(rows * TILE), "P read": clocks(4 * rows * TILE)},
        {"S": 8 * rows, "RoPE": 2 * rows, "P V": 8 * rows},
        CHAIN_64, rows * TILE / 16, widen(TILE * 512))


def nvfp4_pair():
    """128 rows in a pair of CTAs. The two terms of Q are products of their own, so K is read twice.
    Each CTA has the scales of all columns of both pages."""
    return Kernel(
        "NVFP4, pair, 128 rows", FP4_TOKEN, 128, 2, 128,
        {"pages copied in": clocks(64 * (256 + 128) + TILE * (128 + 32)),
         "K read": clocks(64 * (2 * 256 + 128)), "Q read": clocks(64 * (2 * 256 + 128)),
         "block scales read": PAIR_SCALE_LOADS, "V widened": clocks(TILE * (144 + 256)),
         "V read": clocks(TILE * 256), "P written": clocks(64 * TILE),
         "P read": clocks(2 * 64 * TILE)},
        {"S": 512, "RoPE": 128, "P V": 512}, CHAIN_64, 64 * TILE / 16, widen(TILE * 256))


def hopper_kernel(arm, rows):
    if arm == "bf16":
        return HOPPER_BF16
    return HOPPER_FP8_16 if rows <= 16 else HOPPER_FP8_64


def blackwell_kernel(arm, rows):
    height = next((h for h in (16, 32, 64) if rows <= h), 128)
    if arm == "fp8":
        return fp8_pair() if height == 128 else fp8_single(height)
    if height == 128:
        return nvfp4_pair()
    return nvfp4_few(height) if height <= 32 else nvfp4_single(height)


def plans(parts, batch, pieces_of_sequence):
    """The three plans of kernels/cuda/README.md: pieces of the CTA with the most work, whether
    sequences are cut, and how many parts have work."""
    yield math.ceil(batch / parts) * pieces_of_sequence, False, min(batch, parts)
    cuts = min(max(parts // batch, 1), pieces_of_sequence)
    if batch <= parts and cuts > 1:
        piece = math.ceil(pieces_of_sequence / cuts)
        yield piece, True, batch * math.ceil(pieces_of_sequence / piece)
    work = batch * pieces_of_sequence
    yield max(work / parts, 1), True, min(parts, work)


def merge_us(trips, rows_of_cta, ctas):
    share = rows_of_cta * 512 * 2 / 65536
    return trips * MERGE_TRIP + share * MERGE_64K[ctas > FEW_CTAS] / LATENCY_CLOCK


def predict(device, kernel, heads, s_q, batch, context):
    """Returns the time of a step in us, and its limit."""
    rows = heads * s_q
    row_tiles = math.ceil(rows / kernel.rows)
    row_ctas = row_tiles * kernel.ctas
    parts = device.sms // row_ctas
    memory = batch * context * kernel.token_bytes / device.bytes_per_us
    tile, limit = kernel.tile_us(device)
    piece_us = tile * kernel.tokens / TILE
    best = None
    for pieces, cut, used in plans(parts, batch, math.ceil(context / kernel.tokens)):
        many = used * row_ctas > FEW_CTAS
        # The first piece's time is the chain; memory is busy all the time.
        work, what = (pieces - 1) * piece_us, limit
        if memory > work:
            work, what = memory, "memory"
        waits = LAUNCH + (FIRST_PAGE[many] + kernel.chain) / LATENCY_CLOCK
        if cut:
            waits += merge_us(kernel.trips, min(rows, kernel.rows // kernel.ctas), used * row_ctas)
        if best is None or waits + work < best[0]:
            best = waits + work, what if work > waits else "latency"
    return best


def measured(path):
    """{(arm, heads, s_q, batch, context): us} of a kept file, scope kernel."""
    out = {}
    for row in json.loads(path.read_text())["bench"]:
        if row["scope"] == "kernel" and row["status"] == "passed":
            s = row["shape"]
            key = row["arm"], s["heads"], s["s_q"], s["batch"], s["context"]
            out[key] = row["performance"]["median_ns"] / 1e3
    return out


def table(heads, rows):
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)] +
                     ["| " + " | ".join(r) + " |" for r in rows])


def number(us):
    return "%.1f" % us if us < 100 else "%.0f" % us


def name_of(shape):
    return "(%d,%d,%d,%d)" % shape


def hopper_table(times, misses):
    rows = []
    for shape in shapes(times):
        line = [name_of(shape)]
        for arm in ("fp8", "bf16"):
            us, limit = predict(H200, hopper_kernel(arm, shape[0] * shape[1]), *shape)
            real = times[(arm,) + shape]
            off = us / real - 1
            if abs(off) > ALLOWED:
                misses.append("%s %s: %+.1f %%" % (arm, name_of(shape), 100 * off))
            line += [number(real), number(us), "%+.1f %%" % (100 * off), limit]
        rows.append(line)
    return table(["shape", "FP8 measured, us", "model, us", "difference", "limit",
                  "BF16 measured, us", "model, us", "difference", "limit"], rows)


def shapes(times):
    return [key[1:] for key in times if key[0] == "fp8"]


def blackwell_table(times):
    rows = []
    for shape in shapes(times):
        real = times[("fp8",) + shape]
        fp8, limit8 = predict(B200, blackwell_kernel("fp8", shape[0] * shape[1]), *shape)
        fp4, limit4 = predict(B200, blackwell_kernel("nvfp4", shape[0] * shape[1]), *shape)
        rows.append([name_of(shape), number(real), number(fp8), limit8, "%.2f" % (real / fp8),
                     number(fp4), limit4, "%.2f" % (fp8 / fp4)])
    return table(["shape", "H200 FP8 measured, us", "B200 FP8 predicted, us", "limit",
                  "gain over H200", "B200 NVFP4 predicted, us", "limit",
                  "gain of NVFP4 over FP8"], rows)


def differences_table(paths, misses=None):
    """One line for each file and arm. A difference above 10 % is added to @misses, if that is given."""
    rows = []
    for path in paths:
        times = measured(path)
        for arm in ("fp8", "bf16"):
            off = {k: predict(H200, hopper_kernel(arm, k[1] * k[2]), *k[1:])[0] / us - 1
                   for k, us in times.items() if k[0] == arm}
            if misses is not None:
                misses += ["%s, %s %s: %+.1f %%" % (path.name, arm, name_of(k[1:]), 100 * o)
                           for k, o in off.items() if abs(o) > ALLOWED]
            off = sorted(abs(o) for o in off.values())
            rows.append(["`%s`" % path.name, arm.upper(), str(len(off)),
                         "%.1f %%" % (100 * off[len(off) // 2]),
                         "%.0f %%" % (100 * sum(o <= ALLOWED for o in off) / len(off)),
                         "%.1f %%" % (100 * off[-1]) if misses is not None
                         else "%.0f %%" % (100 * off[-1])])
    return table(["file", "arm", "shapes", "median difference", "within 10 %", "largest"], rows)


def resource_table():
    kernels = [fp8_single(16), fp8_single(64), fp8_pair(), nvfp4_few(16), nvfp4_single(64),
               nvfp4_pair()]
    parts = []
    for k in kernels:
        parts += [p for p in k.shared if p not in parts]
    rows = [[p] + ["%.0f" % k.shared[p] if p in k.shared else "" for k in kernels] for p in parts]
    rows.append(["**shared memory, sum**"] + ["**%.0f**" % k.shared_sum() for k in kernels])
    rows.append(["**tensor cores**"] + ["**%.0f**" % sum(k.tensor.values()) for k in kernels])
    rows.append(["**exponentials**"] + ["**%.0f**" % k.exp for k in kernels])
    rows.append(["**widening V**"] + ["**%.0f**" % k.widen if k.widen else "" for k in kernels])
    per_sm = [k.token_bytes * TILE / k.ctas * B200.sms / B200.bytes_per_us * B200.clocks_per_us
              for k in kernels]
    rows.append(["**memory**, all SMs busy"] + ["**%.0f**" % c for c in per_sm])
    return table(["clocks of one SM"] + [k.name for k in kernels], rows)


def main():
    times, misses = measured(KEPT), []
    tables = {"hopper": hopper_table(times, misses), "later": differences_table([LATER], misses),
              "elsewhere": differences_table(ELSEWHERE), "resources": resource_table(),
              "blackwell": blackwell_table(times)}
    todo = sys.argv[1] if len(sys.argv) > 1 else ""
    if todo not in ("--check", "--write"):
        print("\n\n".join(tables.values()))
        return 0
    page = PAGE_OF_TABLES.read_text()
    fresh = page
    for name, text in tables.items():
        first, last = "<!-- table %s -->\n" % name, "\n<!-- end -->"
        before, rest = fresh.split(first, 1)
        fresh = before + first + text + last + rest.split(last, 1)[1]
    if todo == "--write":
        PAGE_OF_TABLES.write_text(fresh)
    elif fresh != page:
        misses.append("docs/blackwell.md is out of date: run docs/blackwell.py --write")
    for miss in misses:
        print("blackwell: " + miss, file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
