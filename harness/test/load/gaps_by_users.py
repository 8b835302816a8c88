#!/usr/bin/env python3
"""The time of a decode step for each number of requests in flight, from a run of `bench serving` with closed loops.

    gaps_by_users.py RUN

When the last request of a block has been sent, the number of requests in flight falls to 0 one by one. So the end of
each block shows steps with all smaller numbers. The time of a step is a gap between two pieces of a stream, as in
requests.jsonl. Left out are gaps below 3 ms (pieces that arrived together), gaps in the first 2 s of a block, and gaps
within 50 ms after the last request.

Columns: the number of requests in flight; the median gap in ms in the first block of the arm in which this number
occurred after the last request, in which the server may have recorded a CUDA graph for it; the median of the later
blocks; the number of gaps in these. Numbers that occurred in one block only are not printed. Then follows one line for
each load: the median gap while requests were sent.
"""
import bisect
import collections
import json
import statistics
import sys


def main(run):
    with open(f"{run}/run.json", encoding="utf-8") as f:
        rows = json.load(f)["serving"]
    loads = {r["point"]: r["load"] for r in rows if r["kind"] == "load"}
    arms = list(dict.fromkeys(r["arm"] for r in rows if r["kind"] == "load"))
    blocks = collections.defaultdict(list)
    with open(f"{run}/requests.jsonl", encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if "end" in r:
                blocks[r["arm"], r["point"], r["block"]].append(r)
    first, later, steady = {}, collections.defaultdict(list), collections.defaultdict(list)
    for arm, point, block in sorted(blocks):
        requests = blocks[arm, point, block]
        sent = sorted(r["sent"] for r in requests)
        ended = sorted(r["end"] for r in requests)
        here = collections.defaultdict(list)
        for r in requests:
            at = r["first"]
            for gap in r["gap_us"]:
                at += gap / 1e6
                middle = at - gap / 2e6
                if gap < 3000 or at < 2:
                    continue
                if at < sent[-1]:
                    steady[arm, point].append(gap / 1e3)
                elif at > sent[-1] + 0.05:
                    users = bisect.bisect(sent, middle) - bisect.bisect(ended, middle)
                    here[users].append(gap / 1e3)
        for users, gaps in here.items():
            if (arm, users) in first:
                later[arm, users] += gaps
            else:
                first[arm, users] = gaps
    for arm, name in enumerate(arms):
        print(f"{name}: requests in flight, first block ms, later blocks ms, gaps of these")
        for users in sorted(u for a, u in first if a == arm):
            gaps = later[arm, users]
            if gaps:
                medians = statistics.median(first[arm, users]), statistics.median(gaps)
                print(f"{users:5} {medians[0]:7.2f} {medians[1]:7.2f} {len(gaps):6}")
        for point, load in sorted(loads.items()):
            print(f"while requests were sent, {load:g} users: {statistics.median(steady[arm, point]):.2f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
