#!/bin/sh
# Prints the measurements that some tests make: how often confidence intervals cover the true value
# in simulations, and how the HTTP client reacts to every fault of a server.
#   figures.sh BUILD_DIR
set -eu
for run in evals:stats generator:client generator:network; do
    echo "== ${run#*:}"
    SHOW_FIGURES=1 "$1/test/${run%:*}" --suite "${run#*:}" >"$1/figures.txt" || {
        cat "$1/figures.txt"
        exit 1
    }
    sed -n '/^| /p; /^ *asserts/p' "$1/figures.txt"
done
rm -f "$1/figures.txt"
