#!/bin/sh
# Does the main job on a small scale on this machine: ceilings, speed of both arms, numerical
# fidelity, one evaluation in both precisions, and one report.
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
where=threads=$share problems=32 samples=1 margin=5
"$snapmla" info > "$out/machine.txt"
if grep -q '^ *cuda *yes' "$out/machine.txt"; then
    where=device=cuda,in_flight=256 problems=500 samples=2 margin=2
fi

# Programs that a model writes run in namespaces, which containers often forbid. Then the tasks that
# need programs are left out.
suite=synth
if ! grep -q '^ *yes, python3 in bubblewrap' "$out/machine.txt"; then
    suite=synth_aime,synth_math,synth_gpqa
    sed -n '/^code judge/,/^configurations/{/^ /p;}' "$out/machine.txt"
    echo '  so the programming task is left out'
fi

echo '== 1/5 ceilings of this device'
"$snapmla" roofline --out "$out/roofline.json"
echo '== 2/5 speed: FP8 against BF16'
"$snapmla" bench --config configs/demo.json --ceilings "$out/roofline.json" --out "$out/bench.json"
echo '== 3/5 numerical fidelity'
"$snapmla" fidelity --contexts 1024,4096 --out "$out/fidelity.json"
echo '== 4/5 new problems'
AIME=3 MATH=3,4 GPQA=3,4 CODE=3 sh datasets/synth.sh "$snapmla" "$out/problems" $problems
echo '== 5/5 quality: a model of our own answers them in both precisions'
"$snapmla" eval --suite $suite --data "$out/problems" --samples $samples --margin $margin --out "$out/eval" \
    --arm bf16=local:$model,precision=bf16,$where --arm fp8=local:$model,precision=fp8,$where
echo '== report'
"$snapmla" report --out "$out" --join \
    "$out/roofline.json" "$out/bench.json" "$out/fidelity.json" "$out/eval"
