#!/usr/bin/env python3
"""Trains the embedded model from a stream of generated problems, in runs that can be continued.

    train.py --program build/snapmla --out DIR --init models/snapmla-10m --budget 1140 --minutes 9
        The first run, from the weights of a checkpoint (or from random ones, without --init).
    train.py --program build/snapmla --out DIR --budget 1140 --minutes 9
        Continues where the last run stopped.

The progress of a run is the part of its --budget that is spent, or of its --steps. The stage of
stages.json and the learning rate depend on it. On SIGTERM, a run writes its state before it exits.
It may be continued with another --budget.

DIR/state.pt is the newest state of the run, and DIR/state.before.pt the one that was written before
it. A state is written at every evaluation and at the end. DIR/log.jsonl is the log. It has a line every few
steps. A line of an evaluation has three numbers for the held-out answers of each style and level (long
texts: kind and length): nats per token of the answer, the share of answers that greedy decoding would
write exactly, and the share expected from samples at temperature 1. Both shares are lower bounds of the accuracy, because another solution may
have the same answer.

A run by --steps is determined by its options, except for the order of sums on the device.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import signal
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import attend
import initial
import model as model_module
import stream
from muon import Muon

# Weights of the next token in the loss, by its kind 0 .. 3 (stream.py). Texts are long and their words
# are drawn at random, so little can be learned from them.
WEIGHTS = 0.0, 0.1, 1.0, 0.01
BALANCE = 1e-3
WARM, COOL = 120, 0.35   # steps in which the rate rises; share of the progress in which it falls to 0
PER_BLOCK = 8            # training steps whose rows are made together
WRITING = 8              # seconds kept for the last evaluation and state
HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    a = argparse.ArgumentParser(description="Trains the embedded model.")
    a.add_argument("--program", default="build/snapmla")
    a.add_argument("--tokenizer", default=str(HERE / "tokenizer" / "tokenizer.json"))
    a.add_argument("--out", required=True)
    a.add_argument("--shape", default="model", choices=model_module.SHAPES)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--init", default="", help="folder of a checkpoint whose weights a new run starts from")
    a.add_argument("--stages", default=str(HERE / "stages.json"))
    a.add_argument("--steps", type=int, default=0, help="of all runs together")
    a.add_argument("--budget", type=float, default=0, help="seconds of all runs together, in place of --steps")
    a.add_argument("--minutes", type=float, default=1e9, help="this run stops after this time, early enough to write its state")
    a.add_argument("--rows", type=int, default=7, help="rows of a step")
    a.add_argument("--length", type=int, default=18432, help="tokens of a row; a multiple of 128")
    a.add_argument("--rate", type=float, default=3e-3)
    a.add_argument("--optimizer", default="muon", choices=("muon", "adamw"))
    a.add_argument("--attention", default="", help="flex, flex_padded, ragged, across or dense; default: the first of them that works")
    a.add_argument("--evaluations", type=int, default=8)
    a.add_argument("--heldout", type=int, default=20, help="problems of each style and level (kind and length) in an evaluation")
    a.add_argument("--workers", type=int, default=0, help="processes that make problems; 0: all cores but two")
    a.add_argument("--ahead", type=int, default=14, help="number of blocks to prepare in advance")
    a.add_argument("--plain", action="store_true", help="no torch.compile")
    return a.parse_args()


class Run:
    def __init__(self, a, pool):
        self.a, self.pool = a, pool
        self.began = time.monotonic()
        self.cuda = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.cuda else "cpu")
        self.dir = pathlib.Path(a.out)
        self.dir.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(a.seed)
        torch.set_float32_matmul_precision("high")
        self.model = model_module.Model(model_module.SHAPES[a.shape])
        if a.init:
            self.model.load_state_dict(initial.state(a.init, a.tokenizer, self.model.state_dict()))
        self.model.to(self.device)
        self.optimizers = self.make_optimizers()
        self.step, self.spent = 0, 0.0
        self.stages = json.loads(pathlib.Path(a.stages).read_text())
        self.ended = False
        signal.signal(signal.SIGTERM, self.end)
        self.positions = torch.arange(a.rows * a.length, device=self.device) % a.length
        self.compiled = None
        self.log_file = open(self.dir / "log.jsonl", "a")
        (self.dir / "pid").write_text(f"{os.getpid()}\n")

    # ---- state ----

    def make_optimizers(self):
        matrices, rest = [], []
        for name, p in self.model.named_parameters():
            inner = p.dim() > 1 and not any(n in name for n in ("embed", "lm_head", "mlp.gate."))
            (matrices if inner and self.a.optimizer == "muon" else rest).append(p)
        made = [torch.optim.AdamW([
            {"params": [p for p in rest if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in rest if p.dim() == 1], "weight_decay": 0.0}],
            lr=self.a.rate, betas=(0.9, 0.95), eps=1e-10, fused=self.cuda)]
        return made + [Muon(matrices, self.a.rate)] if matrices else made

    def end(self, *_):
        self.ended = True

    def save(self):
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                 "step": self.step, "spent": self.spent + time.monotonic() - self.began,
                 "arguments": vars(self.a)}
        torch.save(state, self.dir / "state.new")
        if (self.dir / "state.pt").exists():
            os.replace(self.dir / "state.pt", self.dir / "state.before.pt")
        os.replace(self.dir / "state.new", self.dir / "state.pt")

    def load(self):
        path = self.dir / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        for o, s in zip(self.optimizers, state["optimizers"]):  # empty if carry.py packed the state
            o.load_state_dict(s)
        self.step, self.spent = state["step"], state["spent"]
        self.log(event="resumed")

    def log(self, **what):
        line = json.dumps({"step": self.step, "seconds": round(self.spent + time.monotonic() - self.began, 2)} | what)
        self.log_file.write(line + "\n")
        self.log_file.flush()
        print(line, flush=True)

    # ---- one step ----

    def forward(self, how, tokens, documents):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cuda):
            return self.model(tokens, self.positions[:tokens.shape[1]], how(documents))

    def loss(self, how, tokens, targets, weights, documents):
        logits = self.forward(how, tokens, documents).float()
        each = F.cross_entropy(logits[0], targets[0], reduction="none")
        return (each * weights[0]).sum() / weights.sum(), each

    def to_device(self, block, rows):
        """Joins rows of a block to one sequence with unique document numbers."""
        tokens, weights, documents = (torch.from_numpy(x[rows].astype(np.int64)) for x in block)
        documents += torch.arange(len(documents))[:, None] * (1 << 16)
        targets = torch.roll(tokens, -1, 1)
        share = torch.tensor(WEIGHTS)[weights]
        return [x.reshape(1, -1).to(self.device, non_blocking=True)
                for x in (tokens, targets, share, documents.to(torch.int32))]

    def choices(self):
        ways = {"flex": attend.flex, "flex_padded": attend.flex_padded, "ragged": attend.ragged(self.a.length),
                "across": attend.across(self.a.rows), "dense": attend.dense(self.a.rows)}
        if self.a.attention:
            return [(self.a.attention, ways[self.a.attention])]
        return list(ways.items())[:4] if self.cuda else [("dense", attend.dense(self.a.rows))]

    def choose(self, batch):
        """Chooses the first attention function whose forward and backward pass work."""
        for name, how in self.choices():
            try:
                loss = self.compile(lambda *b, how=how: self.loss(how, *b))
                mean, each = loss(*batch)
                mean.backward()
                if name != "across":
                    self.check(batch, each)
                self.compiled = loss
                self.model.zero_grad(set_to_none=True)
                self.log(event="attention", name=name, parameters=sum(p.numel() for p in self.model.parameters()))
                return
            except Exception as e:  # compilers raise unrelated classes
                self.log(event="attention refused", name=name, why=str(e)[:400])
                self.model.zero_grad(set_to_none=True)
                torch._dynamo.reset()
        sys.exit("no attention function works on this device")

    @torch.no_grad()
    def check(self, batch, each):
        """Compares the losses of the first row with those of dense attention. Rounding alone makes a
        difference of about 0.05 nats per token, because it can change the choice of an expert. So the
        limit is a tenth of the difference that attention across documents makes."""
        row = [x[:, :self.a.length] for x in batch]
        _, plain = self.loss(attend.dense(1), *row)
        _, wrong = self.loss(attend.across(1), *row)
        apart, limit = ((x - plain).abs().mean().item() for x in (each[:self.a.length], wrong))
        limit *= 0.1
        self.log(event="attention checked", nats_apart=round(apart, 4), limit=round(limit, 4))
        if not apart < limit:
            raise ArithmeticError(f"differs from dense attention by {apart:.3} nats per token; at most {limit:.3} are allowed")

    def compile(self, f):
        return f if self.a.plain else torch.compile(f, dynamic=False)

    def progress(self):
        if self.a.steps:
            return self.step / self.a.steps
        return (self.spent + time.monotonic() - self.began) / max(1e-9, self.a.budget - WRITING)

    def rate(self):
        """The factor of --rate: it rises, stays constant and falls to 0."""
        warm = max(1, min(WARM, self.a.steps // 20)) if self.a.steps else WARM
        return max(0.0, min(1.0, (self.step + 1) / warm, (1 - self.progress()) / COOL))

    def take_step(self, batch):
        for o in self.optimizers:
            for g in o.param_groups:
                g["lr"] = self.a.rate * self.rate()
        loss, _ = self.compiled(*batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for p in self.model.parameters():  # if the gradient is not finite, weights only decay
            p.grad = torch.where(norm.isfinite(), p.grad, 0.0)
        for o in self.optimizers:
            o.step()
            o.zero_grad(set_to_none=True)
        self.model.balance(BALANCE)
        return loss.detach(), norm.detach()

    # ---- held-out problems ----

    @torch.no_grad()
    def evaluate(self, block, places):
        self.model.eval()
        nats, hits = np.zeros(block[0].shape, np.float32), np.zeros(block[0].shape, bool)
        for row in range(len(block[0])):  # not compiled, because compiling would take longer
            tokens, targets, _, documents = self.to_device(block, slice(row, row + 1))
            logits = self.forward(attend.dense(1), tokens, documents).float()[0]
            nats[row] = F.cross_entropy(logits, targets[0], reduction="none").cpu().numpy()
            hits[row] = (logits.argmax(-1) == targets[0]).cpu().numpy()
        self.model.train()
        groups = collections.defaultdict(list)
        for style, level, row, first, end in places:
            n = nats[row, first - 1:end - 1]
            groups[f"{style}-{level}"].append((n.mean(), hits[row, first - 1:end - 1].all(), math.exp(-n.sum())))
        table = {k: [round(float(x), 4) for x in np.mean(np.array(v, float), 0)] for k, v in sorted(groups.items())}
        self.log(event="heldout", nats_greedy_sampled=table)

    def unigram(self, block):
        """Logs the entropy of single tokens in the held-out answers, in nats per token."""
        tokens, weights, _ = block
        counts = np.bincount(np.roll(tokens, -1, 1)[weights == 2])
        share = counts[counts > 0] / counts.sum()
        self.log(event="unigram", nats=round(float(-(share * np.log(share)).sum()), 4))

    # ---- the whole run ----

    def sources_of(self, block):
        """The sources of the stage in which the block will be used, as far as this is known."""
        progress = block * PER_BLOCK / self.a.steps if self.a.steps else self.progress()
        at = next((i for i, s in enumerate(self.stages) if progress < s["until"]), len(self.stages) - 1)
        self.log(event="block", block=block, stage=at)
        return self.stages[at]["sources"]

    def batches(self):
        """The batches from the current step on. Block numbers follow from steps, so no state is
        needed."""
        rows, first = self.a.rows, self.step // PER_BLOCK
        made = stream.blocks(self.pool, self.a.program, self.a.seed, self.sources_of, first, self.a.ahead,
                             rows * PER_BLOCK, self.a.length)
        for i, block in enumerate(made, first):
            for part in range(PER_BLOCK):
                if i * PER_BLOCK + part >= self.step:
                    yield self.to_device(block, slice(part * rows, (part + 1) * rows))

    def time_is_up(self):
        return self.ended or time.monotonic() - self.began > 60 * self.a.minutes

    def evaluation_is_due(self, before):
        n = self.a.evaluations
        return int(self.progress() * n) > int(before * n)

    def log_steps(self, losses, seconds, norm):
        loss, tokens = torch.stack(losses).nanmean().item(), self.a.rows * self.a.length
        if not math.isfinite(loss):
            sys.exit("the loss is not finite: earlier states are kept; try a lower --rate")
        self.log(loss=round(loss, 4), norm=round(norm.item(), 3), rate=round(self.rate(), 4), tokens=self.step * tokens,
                 tokens_a_second=round(len(losses) * tokens / max(seconds, 1e-9)))

    def train(self):
        a = self.a
        self.load()
        if not (a.steps or a.budget):
            sys.exit("give --steps or --budget")
        if self.progress() >= 1:
            sys.exit("the run is complete")
        held = stream.heldout(a.program, a.tokenizer, self.stages[-1]["heldout"], a.heldout, a.length)
        self.unigram(held[0])
        losses, since = [], time.monotonic()
        for batch in self.batches():
            if self.compiled is None:
                self.choose(batch)
                since = time.monotonic()
            before = self.progress()
            loss, norm = self.take_step(batch)
            self.step += 1
            losses.append(loss)
            done = self.progress() >= 1
            if self.step % 10 == 0 or done:
                self.log_steps(losses, time.monotonic() - since, norm)
                losses, since = [], time.monotonic()
            if done or self.evaluation_is_due(before):
                self.evaluate(*held)
                self.save()
                losses, since = [], time.monotonic()
            if done or self.time_is_up():
                break
        self.save()
        self.log(event="done" if self.progress() >= 1 else "stopped")


def main(a):
    pool = stream.make_pool(a.tokenizer, a.workers)
    try:
        Run(a, pool).train()
    finally:
        pool.terminate()


if __name__ == "__main__":
    main(arguments())
