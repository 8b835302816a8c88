#!/bin/sh
# The canonical work for comparing devices: ceilings, single steps and loops of the shapes in
# configs/vendor.json, numerical fidelity, and one evaluation with the embedded model. Run it in the
# repository. `snapmla compare OUT OTHER` then compares the folders of two devices (docs/measuring.md).
#   vendor.sh PROGRAM OUT [BACKEND]    BACKEND: cpu (default), cuda, opencl or plugin:PATH
# It takes less than 20 minutes on any device, on idle processors, and less than 10 minutes with cuda.
# On a slow device the two parts of `bench` skip the shapes for which no time is left, and the
# evaluation has fewer problems. A part that fails does not stop the others. The exit code is 1 if one
# failed. BURST_S, LOOPS_S and QUALITY_S in the environment are other times for the three long parts, in
# seconds. Results of an earlier run in OUT are replaced. OUT/times.txt has the seconds of each part.
set -eu
usage='usage: vendor.sh PROGRAM OUT [BACKEND]'
snapmla=${1:?$usage}
out=${2:?$usage}
backend=${3:-cpu}
model=models/snapmla-10m
burst_s=360 loops_s=180 quality_s=240
[ "$backend" != cuda ] || burst_s=220 loops_s=110 quality_s=100
burst_s=${BURST_S:-$burst_s} loops_s=${LOOPS_S:-$loops_s} quality_s=${QUALITY_S:-$quality_s}
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

# Stops an evaluation that takes much longer than planned. Then its samples are kept, but no result.
evaluate() { # FOLDER PROBLEMS MARGIN
    timeout -s INT $((begin + quality_s * 3 / 2 - $(date +%s))) \
        "$snapmla" eval --suite synth_aime,synth_math,synth_gpqa --data "$out/problems" --limit "$2" --samples 1 \
        --margin "$3" --out "$1" --arm "$baseline" --arm "$arm"
}

# Evaluates $1 problems of each task as a trial, and sets $many to the number for which time is left
# at this speed.
trial() {
    begun=$(date +%s)
    rm -rf "$out/eval"
    evaluate "$out/eval" "$1" 5 || return 1
    now=$(date +%s)
    many=$(($1 * (quality_s - now + begin) / (now - begun + 1)))
}

# The second, longer trial is for devices whose first one was mostly the start of the program. If no
# time is left for more problems, the last trial is the result.
quality() {
    AIME=3 MATH=3,4 GPQA=3,4 CODE=3 sh datasets/synth.sh "$snapmla" "$out/problems" 200 || return 1
    tried=1
    trial $tried || return 1
    if [ "$many" -ge 16 ]; then
        tried=16
        trial $tried || return 1
    fi
    [ "$many" -gt $tried ] || return 0
    [ "$many" -le 200 ] || many=200
    margin=5
    [ "$many" -lt 100 ] || margin=3
    rm -rf "$out/eval"
    evaluate "$out/eval" "$many" $margin
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
echo "all: $(($(date +%s) - begun_all)) s" | tee -a "$out/times.txt"

[ -z "$failed" ] || { echo "vendor.sh: failed: ${failed#, }" >&2; exit 1; }
