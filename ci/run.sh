#!/bin/sh
# Runs all checks and prints the time. It does the same on a developer's machine.
set -eu
began=$(date +%s)
sh ci/install-deps.sh test
# The packages of the other checks are installed while the program and its tests are compiled.
sh ci/install-deps.sh lint &
installing=$!
make DEVELOPER=1 -j"$(nproc)" all test-programs
wait "$installing"
make DEVELOPER=1 check
make -j"$(nproc)" fuzz FUZZ_SECONDS=2 # of every parser; twenty minutes of processor time each before a release
echo "checks took $(($(date +%s) - began)) s"
