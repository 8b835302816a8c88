#!/bin/sh
# Runs one test program. Its output is printed when it ends, because other programs may run at the
# same time.
#   unit.sh FLAGS PROGRAM     in FLAGS, $t is the program
set -u
t=$2
eval "set -- $1"
code=0
"$t" "$@" >"$t.log" 2>&1 || code=$?
cat "$t.log"
exit "$code"
