"""Compares `snapmla serve` with the engine alone: the same answers to the same prompt, in turns.

    python3 against_engine.py SNAPMLA [--batch 8,16,32] [--tokens 192] [--turns 4] [--threads 1] [--precision bf16]

The engine alone is `snapmla generate --samples BATCH`. The server gets BATCH streamed requests at once, with the same
seeds, so it decodes the same sequences. Their texts are compared. Each turn also makes answers of SHORT tokens, and
what those cost is subtracted: the start of the program, the prompt and the first steps. What is left is a full batch
that decodes. Turns are: engine, server, server, engine, and so on.

Two times are printed for each token: processor time, of each thread of the server and of the whole engine alone, and
wall-clock time. On a machine where other programs run, only the processor time is meaningful.
"""
import argparse
import http.client
import json
import os
import re
import resource
import subprocess
import sys
import threading
import time

SHORT = 32
MODEL = "models/snapmla-10m"


def options():
    p = argparse.ArgumentParser()
    p.add_argument("snapmla")
    for name, value in (("batch", "8,16,32"), ("tokens", "192"), ("turns", "4"), ("threads", "1"), ("precision", "bf16")):
        p.add_argument("--" + name, default=value)
    return p.parse_args()


def prompt(o):
    """A problem whose solution is longer than the answers, so that no answer ends early."""
    line = subprocess.run([o.snapmla, "synth", "--style", "aime", "--level", "5", "--count", "1"], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(line)["prompt"]


# ---- the engine alone ----

def engine(o, question, batch, tokens):
    """Texts, processor time, and the wall-clock time of the answers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([o.snapmla, "generate", "-q", "--json", "--stats", "--samples", str(batch), "--seed", "1",
                          "--max-tokens", str(tokens), "--context", "2048", "--threads", o.threads,
                          "--precision", o.precision, "--prompt", question, MODEL],
                         check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answers = json.loads(run.stdout)["answers"]
    check([a["tokens"] for a in answers], batch, tokens)
    wall = float(re.search(r"tokens in ([0-9.]+) s", run.stderr).group(1))
    return [a["text"] for a in answers], {"all": cpu}, wall


# ---- the server ----

def start(o):
    server = subprocess.Popen([o.snapmla, "serve", "-q", "--json", "--port", "0", "--context", "2048", "--threads",
                               o.threads, "--sequences", "64", "--precision", o.precision, MODEL],
                              stdout=subprocess.PIPE, text=True)
    return server, int(re.search(r":(\d+)/v1", server.stdout.readline()).group(1))


def thread_times(pid):
    """Processor time of the HTTP thread, which is the main thread, and of the others."""
    out = {"http": 0.0, "engine": 0.0}
    for tid in os.listdir(f"/proc/{pid}/task"):
        ns = int(open(f"/proc/{pid}/task/{tid}/schedstat").read().split()[0])
        out["http" if int(tid) == pid else "engine"] += ns / 1e9
    return out


def stream(port, question, seed, tokens, out, i):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", "/v1/chat/completions",
              json.dumps({"messages": [{"role": "user", "content": question}], "seed": seed, "max_tokens": tokens,
                          "stream": True, "stream_options": {"include_usage": True}}))
    text, used = "", 0
    for line in c.getresponse():
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
            used = (event.get("usage") or {}).get("completion_tokens", used)
    out[i] = (text, used)


def served(server, port, question, batch, tokens):
    out = [None] * batch
    threads = [threading.Thread(target=stream, args=(port, question, 1 + i, tokens, out, i)) for i in range(batch)]
    before, begin = thread_times(server.pid), time.time()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    wall, after = time.time() - begin, thread_times(server.pid)
    check([used for _, used in out], batch, tokens)
    return [text for text, _ in out], {k: after[k] - before[k] for k in after}, wall


# ---- the comparison ----

def check(counts, batch, tokens):
    if counts != [tokens] * batch:
        sys.exit(f"answers have {counts} tokens, not {tokens}: choose fewer tokens")


def per_token(run, tokens, batch):
    """Runs long and short answers. Returns the texts of the long ones, and microseconds for each token between."""
    texts, cpu, wall = run(tokens)
    _, short_cpu, short_wall = run(SHORT)
    n = batch * (tokens - SHORT)
    return texts, {**{k: (cpu[k] - short_cpu[k]) / n * 1e6 for k in cpu}, "clock": (wall - short_wall) / n * 1e6}


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def main():
    o = options()
    question, tokens, turns = prompt(o), int(o.tokens), int(o.turns)
    print(f"{o.precision}, {o.threads} thread(s) of the engine, answers of {tokens} tokens, {turns} turns of each; "
          f"microseconds for each token, median (and range)")
    server, port = start(o)
    for batch in map(int, o.batch.split(",")):
        rows = {"engine": [], "server": []}
        texts = {}
        for i in range(2 * turns):
            which = ("engine", "server", "server", "engine")[i % 4]
            run = (lambda n: engine(o, question, batch, n)) if which == "engine" else \
                  (lambda n: served(server, port, question, batch, n))
            found, row = per_token(run, tokens, batch)
            if texts.setdefault("all", found) != found:
                sys.exit(f"{which}: the answers are other ones than before")
            rows[which].append(row)

        def show(which, key):
            values = [r[key] for r in rows[which]]
            return f"{median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
        cpu = median([r["all"] for r in rows["engine"]]) / median([r["engine"] for r in rows["server"]])
        clock = median([r["clock"] for r in rows["engine"]]) / median([r["clock"] for r in rows["server"]])
        print(f"batch {batch:2}: engine alone: {show('engine', 'all')}, on the clock {show('engine', 'clock')}; server: "
              f"thread of the engine {show('server', 'engine')}, of HTTP {show('server', 'http')}, on the clock "
              f"{show('server', 'clock')}; the server reaches {100 * cpu:.1f} % by processor time, {100 * clock:.1f} % "
              f"by the clock", flush=True)
    server.terminate()
    server.wait()


main()
