#!/bin/sh
# Runs one program of tests; its output comes in one piece, when it is done, for others may run beside it.
#   unit.sh FLAGS PROGRAM     in FLAGS $t is the program
set -u
t=$2
eval "set -- $1"
code=0
"$t" "$@" >"$t.log" 2>&1 || code=$?
cat "$t.log"
exit "$code"
