#!/bin/sh
# The canonical work for comparing devices, the same for each: ceilings, single steps and loops of the
# shapes in configs/vendor.json, numerical fidelity, and one evaluation with the embedded model. Run it
# in the repository; `snapmla compare` then reads the folders of several devices.
#   vendor.sh PROGRAM OUT [BACKEND]    BACKEND: cpu (default), cuda, opencl or plugin:PATH
set -eu
usage='usage: vendor.sh PROGRAM OUT [BACKEND]'
snapmla=${1:?$usage}
out=${2:?$usage}
backend=${3:-cpu}
model=models/snapmla-10m
mkdir -p "$out"

# A processor answers 32 problems in each of three tasks in a few minutes; other devices are faster.
share=$((($(nproc) + 1) / 2))
where=threads=$share problems=32 margin=5
if [ "$backend" != cpu ]; then
    where=device=$backend problems=200 margin=3
fi

echo '== 1/5 ceilings'
"$snapmla" roofline --backend "$backend" --out "$out/roofline.json"
echo '== 2/5 single steps, cold cache'
"$snapmla" bench --config vendor --backend "$backend" --ceilings "$out/roofline.json" --out "$out/burst.json"
echo '== 3/5 loops without pauses: power and energy'
"$snapmla" bench --config vendor --backend "$backend" --ceilings "$out/roofline.json" --scope kernel \
    --sustained 2 --out "$out/sustained.json"
echo '== 4/5 numerical fidelity'
"$snapmla" fidelity --backend "$backend" --contexts 1024,4096 --out "$out/fidelity.json"
echo '== 5/5 quality'
AIME=3 MATH=3,4 GPQA=3,4 CODE=3 sh datasets/synth.sh "$snapmla" "$out/problems" $problems
"$snapmla" eval --suite synth_aime,synth_math,synth_gpqa --data "$out/problems" --samples 1 --margin $margin \
    --out "$out/eval" --arm "bf16=local:$model,precision=bf16,$where" --arm "fp8=local:$model,precision=fp8,$where"
