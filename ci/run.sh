#!/bin/sh
# Runs all checks and prints the time. It does the same on a developer's machine.
set -eu
began=$(date +%s)
sh ci/install-deps.sh lint
make DEVELOPER=1 check
make -j"$(nproc)" fuzz FUZZ_SECONDS=2 # of every parser; twenty minutes of processor time each before a release
echo "checks took $(($(date +%s) - began)) s"
