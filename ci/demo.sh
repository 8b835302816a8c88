#!/bin/sh
# The main job on a small scale, on this machine: ceilings, both arms' speed, numerical fidelity, one
# evaluation in both precisions, one report.   demo.sh BUILD
set -eu
build=$1
out=$build/demo
snapmla=$build/snapmla
rm -rf "$out"
mkdir -p "$out"

echo '== 1/4 ceilings of this device'
"$snapmla" roofline --out "$out/roofline.json"
echo '== 2/4 speed: FP8 against BF16'
"$snapmla" bench --config configs/demo.json --ceilings "$out/roofline.json" --out "$out/bench.json"
echo '== 3/4 numerical fidelity'
"$snapmla" fidelity --contexts 1024,4096 --out "$out/fidelity.json"
echo '== 4/4 quality: recorded answers of the self-made set in two arms'
"$snapmla" eval --suite demo --out "$out/eval" \
    --arm bf16=replay:datasets/synth_aime/bf16.jsonl --arm fp8=replay:datasets/synth_aime/fp8.jsonl
echo '== report'
"$snapmla" report --out "$out" --join \
    "$out/roofline.json" "$out/bench.json" "$out/fidelity.json" "$out/eval"
