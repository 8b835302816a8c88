#!/bin/sh
# Does the main job on a small scale on this machine: ceilings, speed of both arms, numerical
# fidelity, one evaluation in both precisions, one load on two servers, and one report.
#   demo.sh BUILD
set -eu
build=$1
out=$build/demo
snapmla=$build/snapmla
model=models/snapmla-10m
rm -rf "$out"
mkdir -p "$out"

# Both arms generate at the same time, each with half of the cores. 128 problems on two cores take
# about 100 seconds. All tasks together can then show that the arms are equivalent within 5 points; a
# single task cannot. A GPU is much faster, so it gets more problems and a smaller margin.
share=$((($(nproc) + 1) / 2))
where=threads=$share problems=32 samples=1 margin=5 device="--threads $share"
"$snapmla" info > "$out/machine.txt"
if grep -q '^ *cuda *yes' "$out/machine.txt"; then
    where=device=cuda,in_flight=256 problems=500 samples=2 margin=2 device='--device cuda'
fi

# Programs that a model writes run in namespaces, which containers often forbid. Then the tasks that
# need programs are left out.
suite=synth
if ! grep -q '^ *yes, python3 in bubblewrap' "$out/machine.txt"; then
    suite=synth_aime,synth_math,synth_gpqa
    sed -n '/^code judge/,/^configurations/{/^ /p;}' "$out/machine.txt"
    echo '  so the programming task is left out'
fi

echo '== 1/6 ceilings of this device'
"$snapmla" roofline --out "$out/roofline.json"
echo '== 2/6 speed: FP8 against BF16'
"$snapmla" bench --config configs/demo.json --ceilings "$out/roofline.json" --out "$out/bench.json"
echo '== 3/6 numerical fidelity'
"$snapmla" fidelity --contexts 1024,4096 --out "$out/fidelity.json"
echo '== 4/6 new problems'
AIME=3 MATH=3,4 GPQA=3,4 CODE=3 sh datasets/synth.sh "$snapmla" "$out/problems" $problems
echo '== 5/6 quality: a model of our own answers them in both precisions'
"$snapmla" eval --suite $suite --data "$out/problems" --samples $samples --margin $margin --out "$out/eval" \
    --arm bf16=local:$model,precision=bf16,$where --arm fp8=local:$model,precision=fp8,$where
echo '== 6/6 serving: two servers under load'
servers='' arms=''
trap 'kill $servers 2>/dev/null || true' EXIT
for arm in bf16 fp8; do
    # shellcheck disable=SC2086 # two words
    "$snapmla" serve -q --precision $arm --context 2048 --port 0 $device $model >"$out/serve-$arm.txt" &
    servers="$servers $!"
done
for arm in bf16 fp8; do
    for _ in $(seq 600); do
        grep -q '^serving' "$out/serve-$arm.txt" && break
        sleep 0.1
    done
    arms="$arms --arm $arm=$(sed 's/.* at //' "$out/serve-$arm.txt"),precision=$arm"
done
# shellcheck disable=SC2086 # a list of options
"$snapmla" bench serving --out "$out/serving" --concurrency 4 --input 20 --output 10 --duration 2 --drain 2 \
    --blocks 1 --warmup 1 $arms
echo '== report'
"$snapmla" report --out "$out" --join \
    "$out/roofline.json" "$out/bench.json" "$out/fidelity.json" "$out/eval" "$out/serving"
