#!/bin/sh
# Runs all suites of test programs, JOBS at a time. Each suite has a process of its own, so that no
# processor is idle while the last tests of the longest program run. Exits 1 if a suite failed.
#   units.sh JOBS FLAGS PROGRAM...     FLAGS: see unit.sh
# These suites take longest, or wait for other processes. They start first, in this order. Otherwise
# one of them would run alone at the end.
set -u
first='conformance split split_hang judge alloc serving_correlated serve_hostile client cpu model browser packed
    bench_run serving_measured serving_knee embedded comm serve_layouts serve_load ranks sandbox'
jobs=$1 flags=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for program in "$@"; do
    suites=$("$program" --list) && [ -n "$suites" ] || {
        echo "units: $program does not list its suites" >&2
        exit 1
    }
    for suite in $suites; do
        echo "$program $suite"
    done
done >"$dir/all"
awk -v first="$first" '
    BEGIN { n = split(first, name); for (i = 1; i <= n; i++) place[name[i]] = i }
    { print ($2 in place ? place[$2] : n + 1), $0 }
' "$dir/all" | sort -s -n -k 1,1 | cut -d ' ' -f 2- >"$dir/suites"
export FAILED="$dir/failed"
: >"$FAILED"
if xargs -P "$jobs" -L 1 sh ci/unit.sh "$flags" <"$dir/suites"; then
    echo "units: $(wc -l <"$dir/suites") suites, none failed"
else
    echo 'units: failed:' >&2
    cat "$FAILED" >&2
    exit 1
fi
