#!/bin/sh
# The canonical work for comparing devices: ceilings, single steps and loops of the shapes in
# configs/vendor.json, numerical fidelity, and one evaluation with the embedded model. Run it in the
# repository. `snapmla compare OUT OTHER` then compares the folders of two devices (docs/measuring.md).
#   vendor.sh PROGRAM OUT [BACKEND]    BACKEND: cpu (default), cuda, opencl or plugin:PATH
# It takes less than 20 minutes on any device, on idle processors, and less than 10 minutes with cuda.
# On a slow device the two parts of `bench` skip the shapes for which no time is left, and the
# evaluation has fewer problems. A part that fails does not stop the others. The exit code is 1 if one
# failed. BURST_S, LOOPS_S and QUALITY_S in the environment are other times for the three long parts, in
# seconds. PROBLEMS is the largest number of problems of each task in the evaluation, by default 200.
# Results of an earlier run in OUT are replaced. OUT/times.txt has the seconds of each part.
set -eu
usage='usage: vendor.sh PROGRAM OUT [BACKEND]'
snapmla=${1:?$usage}
out=${2:?$usage}
backend=${3:-cpu}
model=models/snapmla-10m
burst_s=360 loops_s=180 quality_s=240
[ "$backend" != cuda ] || burst_s=220 loops_s=110 quality_s=100
burst_s=${BURST_S:-$burst_s} loops_s=${LOOPS_S:-$loops_s} quality_s=${QUALITY_S:-$quality_s}
problems=${PROBLEMS:-200}
mkdir -p "$out"

begun_all=$(date +%s)
echo "# ci/vendor.sh, backend $backend; limits in seconds: $burst_s, $loops_s and $quality_s" >"$out/times.txt"
failed=
part() { # NAME COMMAND...
    name=$1
    shift
    echo "== $name"
    begin=$(date +%s)
    "$@" || failed="$failed, $name"
    echo "$name: $(($(date +%s) - begin)) s" >>"$out/times.txt"
    echo "   $(tail -n 1 "$out/times.txt")"
}

# Each arm has half of the processors. With OpenCL and plugins, these compute everything but attention.
half=threads=$((($(nproc) + 1) / 2))
case $backend in
    cpu) where=$half ;;
    cuda) where=device=cuda ;;
    *) where=$half,device=$backend ;;
esac
baseline=bf16=local:$model,precision=bf16,$where
arm=fp8=local:$model,precision=fp8,$where
formats= # of `fidelity`: the default

# A plugin may lack FP8. Then `bench` skips one of the two rows of a small shape. Fidelity is measured in
# BF16 only, and the evaluation compares the plugin in BF16 with the CPU in BF16.
bf16_only() {
    skipped=$("$snapmla" bench --backend "$backend" --arms bf16,fp8 --shapes 1/1/1/64 --scope kernel --timeout 1 \
        --ceilings "$out/roofline.json" --json --quiet | grep -c '"status": "skipped"')
    [ "$skipped" = 1 ]
}

# Evaluates the first $2 problems of each task. Problems that were answered before keep their answers, so only
# the new ones take time. An evaluation that is not finished after one and a half times the limit of the
# part is interrupted, which is exit code 124. $took_ms gets the time that it took.
evaluate() { # FOLDER PROBLEMS OPTION...
    folder=$1 limit=$2 margin=5 code=0
    shift 2
    [ "$limit" -lt 100 ] || margin=3
    start_ms=$(now_ms)
    seconds=$((begin + quality_s * 3 / 2 - start_ms / 1000))
    [ $seconds -gt 0 ] || seconds=1 # 0 would be no limit
    timeout -k 30 -s INT $seconds \
        "$snapmla" eval --suite synth_aime,synth_math,synth_gpqa --data "$out/problems" --limit "$limit" \
        --samples 1 --margin $margin --out "$folder" --arm "$baseline" --arm "$arm" --quiet "$@" \
        >"$out/eval.part" || code=$?
    took_ms=$(($(now_ms) - start_ms))
    return $code
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# Adds problems until the time is over. $kept is a copy of the last complete evaluation. An evaluation that was
# interrupted after one that is complete is no failure. Answers of one token show how long the program takes to
# start.
add_problems() {
    evaluate "$out/eval.first" 1 --max-tokens 1 || return
    program_ms=$took_ms done=0 fit=1
    for goal in 1 4 8 16 32 64 128 200; do
        [ $goal -le "$problems" ] || goal=$problems
        while [ "$done" -lt "$goal" ] && [ $fit -gt 0 ]; do
            next=$((done + fit))
            [ $next -le "$goal" ] || next=$goal
            evaluate "$out/eval" "$next" || {
                [ $? = 124 ] && [ "$done" -gt 0 ]
                return
            }
            # How many more fit at the speed of this step
            answers_ms=$((took_ms - program_ms))
            [ $answers_ms -gt $((took_ms / 8)) ] || answers_ms=$((took_ms / 8 + 1))
            left_ms=$(((begin + quality_s) * 1000 - $(now_ms) - program_ms))
            fit=$((left_ms * (next - done) / answers_ms))
            echo "   $next problems of each task; the last $((next - done)) took $((took_ms / 1000)) s"
            done=$next
            rm -rf "$kept"
            cp -r "$out/eval" "$kept"
            mv "$out/eval.part" "$out/eval.txt"
        done
        [ "$done" = "$goal" ] || return 0
        [ "$goal" -lt 16 ] || cp "$out/eval/run.json" "$out/eval-$goal.json"
    done
}

# Every device answers the same problems in the same order. At some fixed numbers of problems N, the result is
# also kept as OUT/eval-N.json. So two devices can be compared by the same problems, even if one of them answered
# more.
quality() {
    AIME=3 MATH=3,4 GPQA=3,4 CODE=3 sh datasets/synth.sh "$snapmla" "$out/problems" 200 || return 1
    kept=$out/eval.kept
    rm -rf "$out/eval" "$kept" "$out/eval.first" "$out/eval.txt" "$out"/eval-[0-9]*.json
    failure=0
    add_problems || failure=$?
    if [ -d "$kept" ]; then
        rm -rf "$out/eval"
        mv "$kept" "$out/eval"
    fi
    rm -rf "$out/eval.first" "$out/eval.part"
    return $failure
}

part ceilings "$snapmla" roofline --backend "$backend" --out "$out/roofline.json"
if [ "$backend" != "${backend#plugin:}" ] && bf16_only; then
    echo "   $backend has no FP8: fidelity and quality are measured in BF16"
    formats='--formats bf16'
    baseline=cpu=local:$model,precision=bf16,$half
    arm=bf16=local:$model,precision=bf16,$where
fi
part 'single steps, cold cache' "$snapmla" bench --config vendor --backend "$backend" \
    --ceilings "$out/roofline.json" --time-limit "$burst_s" --out "$out/burst.json"
part 'loops without pauses: power and energy' "$snapmla" bench --config vendor --backend "$backend" \
    --ceilings "$out/roofline.json" --scope kernel --sustained 2 --time-limit "$loops_s" --out "$out/sustained.json"
# shellcheck disable=SC2086 # $formats is empty or two words
part 'numerical fidelity' "$snapmla" fidelity --backend "$backend" --contexts 1024,4096 $formats \
    --out "$out/fidelity.json"
part quality quality
[ ! -e "$out/eval.txt" ] || cat "$out/eval.txt"
echo "all: $(($(date +%s) - begun_all)) s" | tee -a "$out/times.txt"

[ -z "$failed" ] || { echo "vendor.sh: failed: ${failed#, }" >&2; exit 1; }
