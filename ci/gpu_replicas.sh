#!/bin/sh
# Checks and measures several replicas of a model in one process on two GPUs. It takes at most six minutes
# without the build. Each command has a time limit. A failed step does not stop the others.
#   gpu_replicas.sh OUT [STEP...]     without STEP all of them, in this order
#
#   texts     `generate` with the shipped model. On each GPU alone, the texts must be equal. With two replicas, some
#             texts may differ from those of one GPU by rounding: this step counts them
#   eval      one arm on each GPU and one with two replicas; no sample may fail
#   serve     tokens per second of `serve` with USERS users on one GPU, and twice as many with two replicas. Both
#             replicas must get sequences.
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1); SHAPE (deepseek-v2-lite), whose weights are
# random; USERS (64), INPUT (8192), OUTPUT (256), REQUESTS (2 for each user), PORT (8300). DRY=1 tests this script
# on a CPU: small numbers, and two replicas on the CPU. OUT gets the output of each command and summary.txt.
# Exits 1 if a step failed.
set -eu
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
begin "$@"
shift
steps=${*:-texts eval serve}
first=cuda:${devices%%,*} second=cuda:${devices##*,} both=cuda:$devices
if [ -n "${DRY:-}" ]; then
    first=cpu second=cpu both=cpu TOKENS=20 PROBLEMS=2
    SHAPE=${SHAPE:-models/snapmla-10m/config.json} USERS=${USERS:-2} INPUT=${INPUT:-64} OUTPUT=${OUTPUT:-16}
fi
shape=${SHAPE:-deepseek-v2-lite} users=${USERS:-64} input=${INPUT:-8192} output=${OUTPUT:-256} port=${PORT:-8300}

texts() {
    generate "$1" 60 --device "$2" --layout "$3" --samples 16 --seed 1 --max-tokens "${TOKENS:-200}" \
        --prompt 'What is 17 * 23?'
}

step_texts() {
    texts texts-first "$first" DP1
    texts texts-second "$second" DP1
    texts texts-both "$both" DP2
    cmp -s "$out/texts-first.texts" "$out/texts-second.texts" || fail "the texts of the two GPUs differ"
    say "texts that differ between one GPU and two replicas:" \
        "$(differing "$out/texts-first.texts" "$out/texts-both.texts") of $(grep -c . "$out/texts-both.texts")"
}

step_eval() {
    rm -rf "$out/eval"
    run eval-run 90 "$snapmla" eval --suite synth_aime --data datasets --limit "${PROBLEMS:-20}" --max-tokens "${TOKENS:-300}" --out "$out/eval" \
        --arm "first=local:models/snapmla-10m,device=$first" --arm "second=local:models/snapmla-10m,device=$second" \
        --arm "both=local:models/snapmla-10m,device=$both,layout=DP2"
    ! grep -q '"failed": *[1-9]' "$out/eval/run.json" || fail "eval: samples failed"
}

step_serve() {
    serve serve-one "$users" --device "$first" --sequences "$users"
    one=$rate
    serve serve-both $((2 * users)) --device "$both" --layout DP2 --sequences $((2 * users))
    say "two replicas against one: $(ratio "$one" "$rate")"
    for i in 0 1; do
        got=$(sed -n "s/^snapmla:replica_sequences_total{replica=\"$i\".* //p" "$out/serve-both-metrics.txt")
        say "sequences of replica $i: ${got:-0}"
        [ "${got:-0}" != 0 ] || fail "replica $i got no sequences"
    done
}

REQUESTS=${REQUESTS:-2}
make_missing "$snapmla"
[ -n "${DRY:-}" ] || note_machine
run_steps
exit $bad
