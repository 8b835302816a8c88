#!/bin/sh
# Builds a baseline and the working tree, and fails if the working tree is slower.
#   gate.sh REF [OUT]      REF: the baseline, e.g. origin/main; OUT: results (gate-out)
# Environment:
#   SNAPMLA_NAME           options of `snapmla gate run`: SNAPMLA_THRESHOLD=3, SNAPMLA_CONFIG=FILE
#   MAKEFLAGS              options of make
#   GATE_BASELINE          a program that is built already, with keys of an arm if needed
#   GATE_CURRENT           the same for the working tree
#   GATE_ALLOW_OPEN=1      exit code 4 becomes 0
# Exit codes are those of the gate: 0 good, 1 slower, 4 undecided, 6 invalid, 7 wrong.
set -eu
ref=${1:?usage: gate.sh REF [OUT]}
out=${2:-gate-out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
jobs=$(nproc 2>/dev/null || echo 2)

if [ -z "${GATE_BASELINE:-}" ]; then
    tree=$(mktemp -d)
    trap 'git worktree remove --force "$tree" >/dev/null 2>&1 || rm -rf "$tree"' EXIT
    git worktree add --quiet --force --detach "$tree" "$ref"
    make -C "$tree" -j"$jobs" BUILD=build all
    cp "$tree/build/snapmla" "$out/snapmla-baseline"
    GATE_BASELINE=$out/snapmla-baseline
fi
if [ -z "${GATE_CURRENT:-}" ]; then
    make -j"$jobs" all
    GATE_CURRENT=build/snapmla
fi

program=${GATE_CURRENT%%,*}
code=0
"$program" gate run "$GATE_BASELINE,name=baseline" "$GATE_CURRENT,name=current" \
    --out "$out/gate.json" --junit "$out/junit.xml" --markdown "$out/gate.md" \
    --code-quality "$out/code-quality.json" || code=$?
if [ $code = 4 ] && [ "${GATE_ALLOW_OPEN:-0}" = 1 ]; then
    echo 'gate: undecided; passes because of GATE_ALLOW_OPEN' >&2
    code=0
fi
exit $code
