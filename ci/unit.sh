#!/bin/sh
# Runs one suite of a test program. Its output is printed when it ends, because other suites may run
# at the same time. If all assertions held, one line replaces CUnit's table. A suite in which no test
# ran prints nothing. A suite that failed is also noted in the file $FAILED.
#   unit.sh FLAGS PROGRAM SUITE     in FLAGS, $t is the program and $suite the name of the suite
set -u
t=$2 suite=$3
eval "set -- $1"
log=$t.$suite.log
code=0
"$t" --suite "$suite" "$@" >"$log" 2>&1 || code=$?
if [ "$code" != 0 ]; then
    cat "$log"
    echo "${t##*/} $suite: exit code $code" | tee -a "$FAILED"
    exit 1
fi
awk -v name="${t##*/} $suite" '
    /^ +tests +[0-9]/ { tests = $3; next }
    /^ +asserts +[0-9]/ { asserts = $2; next }
    /^Elapsed time/ { seconds = $4; next }
    /^$|^== |^ +CUnit - |^ +http:\/\/cunit|^Run Summary| +suites +[0-9]/ { next }
    { said = said "\n" $0 }
    END {
        if (tests)
            printf "%s: %d tests, %d asserts, %.1f s CPU%s\n", name, tests, asserts, seconds, said
    }' "$log"
