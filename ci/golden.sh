#!/bin/sh
# Runs every harness/test/golden/NAME/cmd and compares standard output, standard error and exit
# code.
#   golden.sh check|record PROGRAM
# cmd is a shell line in which `snapmla` is the program under test. It runs in the root of the
# repository. Its output must not contain anything that varies, such as speeds, dates or commits.
set -u
mode=$1
program=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$program" "$dir/snapmla"
export PATH="$dir:$PATH" NO_COLOR=1 TMP_GOLDEN="$dir"
unset SNAPMLA_CONFIG
passed=0
failed=0
for case in harness/test/golden/*/; do
    name=$(basename "$case")
    sh -c "$(cat "$case/cmd")" >"$dir/stdout" 2>"$dir/stderr" </dev/null
    echo $? >"$dir/exit"
    if [ "$mode" = record ]; then
        cp "$dir/stdout" "$dir/stderr" "$dir/exit" "$case"
        continue
    fi
    ok=1
    for part in stdout stderr exit; do
        diff -u "$case/$part" "$dir/$part" >"$dir/diff" || { ok=0; echo "golden: $name: $part"; cat "$dir/diff"; }
    done
    if [ $ok = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
[ "$mode" = record ] && exit 0
echo "goldens: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
