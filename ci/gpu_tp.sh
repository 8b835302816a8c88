#!/bin/sh
# Checks and measures a checkpoint that is split over two GPUs (layout TP2). It takes at most three minutes without
# the build. Each command has a time limit. A failed step does not stop the others.
#   gpu_tp.sh OUT [STEP...]     without STEP all of them, in this order
#
#   texts     `generate` with the shipped model on one GPU and with TP2, at temperature 0, in BF16 and FP8: the texts
#             that differ are counted (by rounding). At least one text must be equal.
#   serve     tokens per second of `serve` with USERS users, on one GPU and with TP2
#   faults    `generate` with TP2, whose second rank is killed, and then stopped: it must end within 30 s with a
#             message that names the rank, and no process may be left
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1), where 0,0 runs both ranks on one GPU; SHAPE
# (deepseek-v2-lite), whose weights are random; USERS (32), INPUT (2048), OUTPUT (128), REQUESTS (2 for each user),
# PORT (8310). SNAPMLA_NCCL names the library NCCL, which sums of more than 2 MiB use if it is found. DRY=1 tests
# this script on a CPU: small numbers, and two processes on the CPU. OUT gets the output of each command and
# summary.txt. Exits 1 if a step failed.
set -eu
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
begin "$@"
shift
steps=${*:-texts serve faults}
first=cuda:${devices%%,*} both=cuda:$devices
if [ -n "${DRY:-}" ]; then
    first=cpu both=cpu TOKENS=20
    SHAPE=${SHAPE:-models/snapmla-10m/config.json} USERS=${USERS:-2} INPUT=${INPUT:-64} OUTPUT=${OUTPUT:-16}
fi
shape=${SHAPE:-deepseek-v2-lite} users=${USERS:-32} input=${INPUT:-2048} output=${OUTPUT:-128} port=${PORT:-8310}
: >"$out/faults.txt"

# texts NAME DEVICE LAYOUT PRECISION: eight prompts, one answer each
texts() {
    for i in 1 2 3 4 5 6 7 8; do echo "What is $i * 23?"; done >"$out/prompts.txt"
    generate "$1" 40 --device "$2" --layout "$3" --precision "$4" --temperature 0 --max-tokens "${TOKENS:-100}" \
        <"$out/prompts.txt"
}

step_texts() {
    for precision in bf16 fp8; do
        texts "texts-one-$precision" "$first" DP1 $precision
        texts "texts-tp2-$precision" "$both" TP2 $precision
        differ=$(differing "$out/texts-one-$precision.texts" "$out/texts-tp2-$precision.texts")
        n=$(grep -c . "$out/texts-tp2-$precision.texts" || true)
        say "$precision: texts that differ between one GPU and TP2: $differ of $n"
        [ "$n" = 8 ] && [ "$differ" -lt 8 ] || fail "$precision: no text is equal"
    done
}

step_serve() {
    serve serve-one "$users" --device "$first" --sequences "$users"
    one=$rate
    serve serve-tp2 "$users" --device "$both" --layout TP2 --sequences "$users"
    say "TP2 against one GPU: $(ratio "$one" "$rate")"
}

# fault SIGNAL MESSAGE: sends the signal to the second rank of a long `generate`, once it has shown text
fault() {
    echo 'Count to a million.' >"$out/prompt.txt"
    timeout -k 5 60 "$snapmla" generate --device "$both" --layout TP2 --max-tokens 1000000 --samples 4096 \
        --file "$out/prompt.txt" models/snapmla-10m >"$out/fault.txt" 2>"$out/fault.err" &
    run=$!
    rank=
    waited=0
    while [ -z "$rank" ] && [ $waited -lt 30 ]; do
        sleep 1
        waited=$((waited + 1))
        for p in $(pgrep -P "$run"); do # timeout's child is rank 0
            rank=$(pgrep -P "$p" | head -n 1)
        done
    done
    sleep "${SETTLE:-10}" # until the ranks have opened their GPUs and run steps
    begun=$(date +%s)
    code=0
    [ -n "$rank" ] && kill "-$1" "$rank" || fail "$1: the second rank does not run"
    wait "$run" || code=$?
    report_fault "rank 1 gets SIG$1" "$code" $(($(date +%s) - begun)) "$2"
    [ -z "$rank" ] || ! kill -0 "$rank" 2>/dev/null || fail "$1: the process of the second rank is left"
}

step_faults() {
    fault KILL "rank 1: its process has ended without a message"
    fault STOP "rank 1: no sign of life"
}

REQUESTS=${REQUESTS:-2}
make_missing "$snapmla"
[ -n "${DRY:-}" ] && SETTLE=1 || note_machine
# NCCL refuses two ranks on one GPU. Without it, a long sum is divided into several short ones.
if [ "${devices%%,*}" = "${devices##*,}" ]; then
    export SNAPMLA_NCCL=/nonexistent/libnccl.so
else
    find_nccl
fi
run_steps
exit $bad
