"""Rows of tokens for training. A row depends on the seed and the block number only.

A block is ROWS rows of LENGTH tokens. `snapmla synth` writes the problems with the numbers of this
block. They are packed into its rows, and none is cut:

    tokens    u16 [ROWS, LENGTH]
    weights   u8  [ROWS, LENGTH]   kind of the next token: 2 = solution, 1 = prompt, 0 = none
    documents u16 [ROWS, LENGTH]   number of the token's problem in the row
"""
import itertools
import json
import multiprocessing
import os
import subprocess

import numpy as np

LENGTH, ROWS = 8192, 64
CHUNK, APART = 256, 1 << 20  # CHUNK: problems per call; APART: problem numbers per block
FULL = 0.985
NICENESS = 5  # of the processes that make blocks, so that training has priority
STYLES = "aime,math,gpqa,code"

_tokenizer = None


def start_worker(path, niceness=0):
    global _tokenizer
    os.nice(niceness)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tokenizers
    _tokenizer = tokenizers.Tokenizer.from_file(path)


def mark(name):
    return _tokenizer.token_to_id(f"<｜{name}｜>")


def read_rows(command):
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def encode(rows):
    """Yields each problem as (ids, length of the prompt): begin, user, prompt, assistant, solution,
    end."""
    begin, user, assistant, end = (mark(n) for n in ("begin▁of▁sentence", "User", "Assistant", "end▁of▁sentence"))
    prompts = _tokenizer.encode_batch([r["prompt"] for r in rows], add_special_tokens=False)
    solutions = _tokenizer.encode_batch([r["solution"] for r in rows], add_special_tokens=False)
    for p, s in zip(prompts, solutions):
        yield np.array([begin, user, *p.ids, assistant, *s.ids, end], np.uint16), len(p.ids) + 3


class Packer:
    def __init__(self, rows, length):
        self.tokens = np.zeros((rows, length), np.uint16)
        self.weights = np.zeros((rows, length), np.uint8)
        self.documents = np.zeros((rows, length), np.uint16)
        self.used = np.zeros(rows, np.int64)
        self.count = np.zeros(rows, np.int64)

    def put(self, ids, prompt):
        """Adds a problem to the fullest row with room. Returns (row, offset), or None if no row has
        room."""
        room = self.tokens.shape[1] - self.used
        fits = np.where(room >= len(ids), room, np.iinfo(np.int64).max)
        row = int(fits.argmin())
        if fits[row] == np.iinfo(np.int64).max:
            return None
        at, end = self.used[row], self.used[row] + len(ids)
        self.count[row] += 1
        self.tokens[row, at:end] = ids
        self.weights[row, at:end - 1] = 2
        self.weights[row, at:at + prompt - 1] = 1
        self.documents[row, at:end] = self.count[row]
        self.used[row] = end
        return row, int(at)

    def full(self):
        return self.used.sum() / self.tokens.size >= FULL

    def result(self):
        for row, used in enumerate(self.used):  # the rest of a row is one more document
            self.documents[row, used:] = self.count[row] + 1
        return self.tokens, self.weights, self.documents


def make_block(program, seed, block, levels, rows=ROWS, length=LENGTH, styles=STYLES):
    packer, start = Packer(rows, length), block * APART
    left_out = 0
    while not packer.full() and left_out < CHUNK:
        problems = read_rows([program, "synth", "--split", "train", "--solutions", "--threads", "1", "--style", styles,
                              "--level", levels, "--seed", str(seed), "--start", str(start), "--count", str(CHUNK)])
        start += CHUNK
        for ids, prompt in encode(problems):
            left_out += packer.put(ids, prompt) is None
    return packer.result()


def make_pool(tokenizer, workers=0):
    """Starts the processes that make blocks. Call it before the device is used, because it forks."""
    workers = workers or max(1, len(os.sched_getaffinity(0)) - 2)
    return multiprocessing.get_context("fork").Pool(workers, start_worker, (tokenizer, NICENESS))


def blocks(pool, program, seed, levels_of, first, ahead, **how):
    """Yields blocks in order from `first` on, prepared in advance. levels_of(block) gives their
    levels."""
    waiting = []
    for block in itertools.count(first):
        waiting.append(pool.apply_async(make_block, (program, seed, block, levels_of(block)), how))
        if len(waiting) > ahead:
            yield waiting.pop(0).get()


def heldout(program, tokenizer, per_level, length=LENGTH, styles=STYLES, levels=5):
    """Held-out problems in rows: blocks as above, and for each problem (style, level, row, first,
    end of the prompt, end)."""
    start_worker(tokenizer)
    names = styles.split(",")
    problems = read_rows([program, "synth", "--split", "heldout", "--solutions", "--seed", "1", "--style", styles, "--level",
                          ",".join(str(i + 1) for i in range(levels)), "--count", str(per_level * levels * len(names))])
    encoded = list(encode(problems))
    packer, places = Packer(sum(len(i) for i, _ in encoded) * 5 // (4 * length) + 2, length), []
    for row, (ids, prompt) in sorted(zip(problems, encoded), key=lambda x: -len(x[1][0])):
        placed = packer.put(ids, prompt)
        if placed:
            at = placed[1]
            places.append((row["id"].split("-")[0], row["level"], placed[0], at, at + prompt, at + len(ids)))
    return packer.result(), places
