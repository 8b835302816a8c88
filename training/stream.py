"""Rows of tokens for training. With one program, one tokenizer and one size of blocks, a row depends
on the seed, the block number and the sources only.

A block is a number of rows of equal length. `snapmla synth` writes the problems and the chats about
long texts with the numbers of this block. They are packed into its rows, and none is cut:

    tokens    u16 [rows, length]
    weights   u8  [rows, length]   kind of the next token: 3 = prompt about a long text, 2 = answer,
                                   1 = other prompt, 0 = none
    documents u16 [rows, length]   number of the token's problem or chat in the row

A source is a dictionary: "share" is its part of the tokens, and the other members are options of
`snapmla synth`: {"share": 0.3, "style": "aime,math", "level": "1,2"} or {"share": 0.7, "long":
"needle,turns", "length": "256,512", "questions": 16}.
"""
import itertools
import json
import multiprocessing
import os
import subprocess

import numpy as np

CHUNK, APART = 64, 1 << 20  # CHUNK: most problems per call; APART: problem numbers per block
CHUNK_TOKENS = 16384  # of the long texts of a call, so that few are left over at the end of a block
FULL = 0.985
CHARS_PER_TOKEN = {"needle": 3.6, "lookup": 1.2, "variables": 3.5, "count": 4.2, "frequent": 1.6, "order": 4.2, "copy": 4.4,
                   "turns": 4.2}  # with our tokenizer
NICENESS = 5  # of the processes that make blocks, so that training has priority

_tokenizer = None


def start_worker(path, niceness=0):
    global _tokenizer
    os.nice(niceness)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tokenizers
    _tokenizer = tokenizers.Tokenizer.from_file(path)


def mark(name):
    return _tokenizer.token_to_id(f"<｜{name}｜>")


def read_rows(program, split, seed, start, count, source):
    command = [program, "synth", "--split", split, "--threads", "1", "--seed", str(seed), "--start", str(start), "--count",
               str(count)]
    command += ["--chars-per-token", str(CHARS_PER_TOKEN[source["long"]])] if "long" in source else ["--solutions"]
    for option, value in source.items():
        if option != "share":
            command += [f"--{option}", str(value)]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def single(sources):
    """Divides the sources of several kinds of long texts into sources of one kind."""
    for s in sources:
        kinds = s["long"].split(",") if "long" in s else []
        yield from [s | {"long": k, "share": s.get("share", 1) / len(kinds)} for k in kinds] or [s]


def messages(row):
    """Returns the messages of a row, and the kind of the tokens of its prompts."""
    if "messages" in row:
        return [(m["role"], m["content"]) for m in row["messages"]], 3
    return [("user", row["prompt"]), ("assistant", row["solution"])], 1


def encode(rows):
    """Yields each row as (ids, kinds of these tokens), as the chat template writes its messages."""
    begin, user, assistant, end = (mark(n) for n in ("begin▁of▁sentence", "User", "Assistant", "end▁of▁sentence"))
    texts = [messages(r) for r in rows]
    encoded = iter(_tokenizer.encode_batch([text for m, _ in texts for _, text in m], add_special_tokens=False))
    for parts, prompt in texts:
        ids, kinds = [begin], [prompt]
        for role, _ in parts:
            inner = next(encoded).ids
            marks = {"system": [], "user": [user], "assistant": [assistant]}[role]
            after = [end] if role == "assistant" else []
            ids += [*marks, *inner, *after]
            kinds += [prompt] * len(marks) + [2 if role == "assistant" else prompt] * (len(inner) + len(after))
        yield np.array(ids, np.uint16), np.array(kinds, np.uint8)


class Packer:
    def __init__(self, rows, length):
        self.tokens = np.zeros((rows, length), np.uint16)
        self.weights = np.zeros((rows, length), np.uint8)
        self.documents = np.zeros((rows, length), np.uint16)
        self.used = np.zeros(rows, np.int64)
        self.count = np.zeros(rows, np.int64)

    def put(self, ids, kinds):
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
        self.weights[row, at:end - 1] = kinds[1:]
        self.documents[row, at:end] = self.count[row]
        self.used[row] = end
        return row, int(at)

    def full(self):
        return self.used.sum() / self.tokens.size >= FULL

    def result(self):
        for row, used in enumerate(self.used):  # the rest of a row is one more document
            self.documents[row, used:] = self.count[row] + 1
        return self.tokens, self.weights, self.documents


def items(program, seed, start, source):
    """Yields the encoded problems of a source without end."""
    longest = max(int(n) for n in str(source.get("length", 1)).split(","))
    count = min(CHUNK, max(1, CHUNK_TOKENS // longest))
    while True:
        yield from encode(read_rows(program, "train", seed, start, count, source))
        start += count


def make_block(program, seed, block, sources, rows, length):
    """The next problem always comes from the source that lacks most of its share."""
    packer, left_out, sources = Packer(rows, length), 0, list(single(sources))
    streams = [items(program, seed, block * APART, s) for s in sources]
    used = np.zeros(len(sources))
    shares = np.array([s["share"] for s in sources])
    while not packer.full() and left_out < CHUNK:
        source = int((used / shares).argmin())
        ids, kinds = next(streams[source])
        if packer.put(ids, kinds) is None:
            left_out += 1
        used[source] += len(ids)
    return packer.result()


def make_pool(tokenizer, workers=0):
    """Starts the processes that make blocks. Call it before the device is used, because it forks."""
    workers = workers or max(1, len(os.sched_getaffinity(0)) - 2)
    return multiprocessing.get_context("fork").Pool(workers, start_worker, (tokenizer, NICENESS))


def blocks(pool, program, seed, sources_of, first, ahead, rows, length):
    """Yields blocks in order from `first` on, prepared in advance. sources_of(block) is called when
    its preparation starts."""
    waiting = []
    for block in itertools.count(first):
        waiting.append(pool.apply_async(make_block, (program, seed, block, sources_of(block), rows, length)))
        if len(waiting) > ahead:
            yield waiting.pop(0).get()


def answers(kinds):
    """Yields (first, end) of each run of answer tokens."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], kinds == 2, [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist())


def heldout(program, tokenizer, sources, count, length):
    """Held-out problems in rows: blocks as above, and for each answer (style, level, row, first,
    end). Each source has `count` problems for each of its styles and levels."""
    start_worker(tokenizer)
    encoded = []
    for s in single(sources):
        cells = [len(str(s[k]).split(",")) for k in ("style", "level", "long", "length") if k in s]
        rows = read_rows(program, "heldout", 1, 0, count * int(np.prod(cells)), s)
        encoded += zip(rows, encode(rows))
    packer, places = Packer(sum(len(ids) for _, (ids, _) in encoded) * 5 // (4 * length) + 2, length), []
    for row, (ids, kinds) in sorted(encoded, key=lambda x: -len(x[1][0])):
        placed = packer.put(ids, kinds)
        if placed:
            at = placed[1]
            places += [(row["id"].split("-")[0], row["level"], placed[0], at + a, at + b) for a, b in answers(kinds)]
    return packer.result(), places
