#!/bin/sh
# Checks and measures a checkpoint that is divided over two GPUs: layouts TP2, TP2/EP2 and EP2. Texts are also generated
# with DP2/TP2, whose four ranks use each GPU twice. It takes at most five minutes without the build. Each command has a
# time limit. A failed step does not stop the others.
#   gpu_tp.sh OUT [STEP...]     without STEP all of them, in this order
#
#   texts     `generate` with the shipped model on one GPU and in each of TEXTS, at temperature 0, in BF16 and FP8: the
#             texts that differ are counted (by rounding). At least one text must be equal.
#   serve     tokens per second of `serve` with USERS users, on one GPU and in each of LAYOUTS. No request may fail.
#   faults    `generate` in each of FAULTS, whose second rank is killed, and then stopped: it must end within 30 s with
#             a message that names the rank, and no process may be left
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1), where 0,0 runs both ranks on one GPU; LAYOUTS (TP2
# TP2/EP2 EP2), TEXTS (LAYOUTS and DP2/TP2), FAULTS (TP2 EP2); SAMPLES (1), the answers to each prompt of `texts`;
# SIGNALS (KILL STOP); SHAPE (deepseek-v2-lite), whose weights are random; USERS (32), INPUT (2048), OUTPUT (128),
# REQUESTS (2 for each user), PORT (8310). SNAPMLA_NCCL names the library NCCL, which sums of more than 2 MiB use if it
# is found. DRY=1 tests this script on a CPU: small numbers, and processes on the CPU. OUT gets the output of each
# command and summary.txt. Exits 1 if a step failed.
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
layouts=${LAYOUTS:-TP2 TP2/EP2 EP2} samples=${SAMPLES:-1}
shape=${SHAPE:-deepseek-v2-lite} users=${USERS:-32} input=${INPUT:-2048} output=${OUTPUT:-128} port=${PORT:-8310}
: >"$out/faults.txt"

# name_of LAYOUT: for names of files
name_of() {
    echo "$1" | tr 'A-Z' 'a-z' | tr -d /
}

# devices_of LAYOUT: one GPU for each rank
devices_of() {
    case "$both $1" in
    cpu*) echo cpu ;;
    *DP2/TP2*) echo "$both,$devices" ;;
    *) echo "$both" ;;
    esac
}

# texts NAME DEVICE LAYOUT PRECISION: eight prompts, $samples answers to each
texts() {
    for i in 1 2 3 4 5 6 7 8; do echo "What is $i * 23?"; done >"$out/prompts.txt"
    generate "$1" 60 --device "$2" --layout "$3" --precision "$4" --temperature 0 --max-tokens "${TOKENS:-100}" \
        --samples "$samples" <"$out/prompts.txt"
}

step_texts() {
    for precision in bf16 fp8; do
        texts "texts-one-$precision" "$first" DP1 $precision
        for layout in ${TEXTS:-$layouts DP2/TP2}; do
            name=texts-$(name_of "$layout")-$precision
            texts "$name" "$(devices_of "$layout")" "$layout" $precision
            differ=$(differing "$out/texts-one-$precision.texts" "$out/$name.texts")
            n=$(grep -c . "$out/$name.texts" || true)
            say "$precision: texts that differ between one GPU and $layout: $differ of $n"
            [ "$n" = $((8 * samples)) ] && [ "$differ" -lt "$n" ] || fail "$precision, $layout: no text is equal"
        done
    done
}

step_serve() {
    serve serve-one "$users" --device "$first" --sequences "$users"
    one=$rate
    for layout in $layouts; do
        # two replicas decode half of the users each
        case $layout in EP*) each=$(((users + 1) / 2)) ;; *) each=$users ;; esac
        name=serve-$(name_of "$layout")
        serve "$name" "$users" --device "$both" --layout "$layout" --sequences "$each"
        say "$layout against one GPU: $(ratio "$one" "$rate")"
        grep -q '"failed": *0[,}]' "$out/$name/run.json" || fail "$layout: requests failed"
    done
}

# fault LAYOUT SIGNAL MESSAGE: sends the signal to the second rank of a long `generate`, which works by then
fault() {
    echo 'Count to a million.' >"$out/prompt.txt"
    timeout -k 5 60 "$snapmla" generate --device "$both" --layout "$1" --max-tokens 1000000 --samples 4096 \
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
    [ -n "$rank" ] && kill "-$2" "$rank" || fail "$1, $2: the second rank does not run"
    wait "$run" || code=$?
    report_fault "$1: rank 1 gets SIG$2" "$code" $(($(date +%s) - begun)) "$3"
    [ -z "$rank" ] || ! kill -0 "$rank" 2>/dev/null || fail "$1, $2: the process of the second rank is left"
}

step_faults() {
    for layout in ${FAULTS:-TP2 EP2}; do
        for signal in ${SIGNALS:-KILL STOP}; do
            case $signal in
            KILL) fault "$layout" KILL "rank 1: its process has ended without a message" ;;
            *) fault "$layout" "$signal" "rank 1: no sign of life" ;;
            esac
        done
    done
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
