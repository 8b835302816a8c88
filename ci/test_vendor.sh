#!/bin/sh
# Runs ci/vendor.sh with very short limits: all files must be there and valid, and `compare` must read them. Then runs
# it with a program that only counts and waits, to check how it chooses the number of problems.
#   test_vendor.sh BUILD
set -eu
program=$(realpath "$1/snapmla")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "vendor: $1" >&2
    exit 1
}

# A program whose evaluations take a fixed time. It appends the number of problems of each one to OUT/eval/calls.
# SLOW: seconds for each new problem; HANG: at this number of problems and above, an evaluation never ends.
cat >"$dir/stub" <<'STUB'
#!/bin/sh
command=$1
shift
while [ $# -gt 0 ]; do
    case $1 in
        --limit) limit=$2 ;;
        --out) out=$2 ;;
    esac
    shift
done
case $command in
    synth | fidelity | bench | roofline) echo '{}' >"$out" ;;
    eval)
        before=$(tail -n 1 "$out/calls" 2>/dev/null || echo 0)
        mkdir -p "$out" && echo "$limit" >>"$out/calls"
        [ "$limit" -lt "$HANG" ] || exec env --default-signal=INT sleep 100
        [ "$limit" -le "$before" ] || sleep "$(awk "BEGIN { print $SLOW * ($limit - $before) }")"
        echo "$limit" >"$out/run.json"
        ;;
esac
STUB
chmod +x "$dir/stub"
play() { # NAME QUALITY_S SLOW HANG
    QUALITY_S=$2 SLOW=$3 HANG=$4 sh ci/vendor.sh "$dir/stub" "$dir/$1" cpu >"$dir/$1.log" 2>&1 ||
        { cat "$dir/$1.log"; fail "$1: exit code $?"; }
    calls=$(tr '\n' ' ' <"$dir/$1/eval/calls")
}

# The time is enough for all problems. The same numbers of problems are kept as for any other device.
play fast 60 0.001 1000
[ "$calls" = '1 4 8 16 32 64 128 200 ' ] || fail "fast: evaluations of $calls problems"
for n in 16 32 64 128 200; do
    [ "$(cat "$dir/fast/eval-$n.json")" = $n ] || fail "fast: no result of $n problems"
done

# Evaluations of 8 problems and more do not end. The folder is then as it was before.
play hang 3 0.001 8
last=$(tail -n 1 "$dir/hang/eval/calls")
[ "$last" -lt 8 ] || fail "hang: the folder has evaluations of $calls problems"
[ "$(cat "$dir/hang/eval/run.json")" = "$last" ] || fail 'hang: not the result of the problems before'
[ ! -e "$dir/hang/eval-16.json" ] || fail 'hang: a result of problems that were not answered'

# The first evaluation does not end: there is no result, and the exit code says so.
if QUALITY_S=1 SLOW=0 HANG=1 sh ci/vendor.sh "$dir/stub" "$dir/none" cpu >"$dir/none.log" 2>&1; then
    fail 'none: exit code 0 without an evaluation'
fi
grep -q 'failed: quality$' "$dir/none.log" || fail 'none: the failed part is not named'

# The real program, with a small shape, short loops and two problems of each task, in a folder with links to the
# source tree.
cat >"$dir/short" <<'SHORT'
#!/bin/sh
last=
for word in "$@"; do
    shift
    [ "$last" != --sustained ] || word=0.05
    last=$word
    set -- "$@" "$word"
done
exec "$PROGRAM" "$@"
SHORT
chmod +x "$dir/short"
mkdir "$dir/here" "$dir/here/configs"
for entry in "$PWD"/*; do
    [ "$entry" = "$PWD/configs" ] || ln -s "$entry" "$dir/here/"
done
cp configs/prices.json "$dir/here/configs/"
echo '{"shapes": ["16/1/1/64"], "timeout": 0.1}' >"$dir/here/configs/vendor.json"
cd "$dir/here"
export SNAPMLA_MAX_TOKENS=40 SNAPMLA_ROUNDS=1 SNAPMLA_SECONDS=0.02 SNAPMLA_FORMATS=bf16 SNAPMLA_DISTRIBUTION=mla
PROGRAM=$program PROBLEMS=2 \
    sh ci/vendor.sh "$dir/short" "$dir/out" cpu >"$dir/out.log" 2>&1 || { cat "$dir/out.log"; fail "exit code $?"; }
cd "$dir/out"
for f in roofline.json burst.json sustained.json fidelity.json eval; do
    "$program" verify-run $f >"$dir/verify" 2>&1 || { cat "$dir/verify"; fail "$f is not valid"; }
done
[ "$(wc -l <eval/samples.jsonl)" = 12 ] || fail 'the evaluation has not 2 problems of 3 tasks in 2 arms'
[ "$(grep -c ' s$' times.txt)" = 6 ] || fail 'times.txt does not have the times of five parts and of all'
"$program" compare "$dir/out" "$dir/out" --prices "$dir/here/configs/prices.json" --out "$dir/page" >"$dir/compare" \
    2>&1 || { cat "$dir/compare"; fail 'compare refuses the folder'; }
for part in 'Every single step' 'Every loop' 'Quality parity' 'Numerical error'; do
    grep -q "^## $part" "$dir/page/report.md" || fail "the page has no part '$part'"
done
echo 'vendor: the canonical work leaves valid files, and its evaluation has the same problems on every device'
