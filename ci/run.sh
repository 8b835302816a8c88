#!/bin/sh
# Runs all checks and prints the time. It does the same on a developer's machine.
set -eu
began=$(date +%s)
# The program is compiled as usual, but with less debug information. Its tests need no more than -O1.
export CFLAGS='-O2 -g1' TEST_CFLAGS=-O1
sh ci/install-deps.sh test
# The packages of the other checks are installed while the program and its tests are compiled.
sh ci/install-deps.sh lint &
installing=$!
make DEVELOPER=1 -j"$(nproc)" all test-programs
wait "$installing"
make DEVELOPER=1 check
# Every parser for two seconds. Compiling with -O1 would take longer than that. Before a release, each
# parser has twenty minutes of processor time, with -O1.
make -j"$(nproc)" fuzz FUZZ_SECONDS=2 FUZZ_OPTIMISATION=-O0
echo "checks took $(($(date +%s) - began)) s"
