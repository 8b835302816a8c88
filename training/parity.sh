#!/bin/sh
# Tests whether FP8 changes the answers of our checkpoint. Held-out problems in four styles are
# answered in BF16, in FP8 (snapmla) and in BF16 with other seeds. The problems are divided between
# the GPUs. At the same time, the CPU evaluates a damaged format.
#   parity.sh PROGRAM MODEL OUT
#
# OUT/home has everything worth keeping: result files, tables, and the verdicts of all samples (xz).
# An interrupted run is continued by the same command.
# Environment, with defaults:
#   PROBLEMS=2500 SAMPLES=4   for each style, so 10000 samples. Few samples are enough, because this
#                             model gives nearly the same answer each time.
#   FEW=200 FEW_SAMPLES=1     problems and samples for the damaged format: configuration B of the
#                             model with RoPE outliers
#   AIME, MATH, GPQA, CODE    lists of levels: see datasets/synth.sh
#   CUDA_VISIBLE_DEVICES      the GPUs, for instance 0,1; default: all GPUs; empty: the CPU only
#   IN_FLIGHT=512             sequences in flight for each arm on a GPU
#   THREADS                   threads of each arm on a GPU; the default divides the cores
#   JUDGE=lcb                 one process for each program, not one for each test, to save time
#   PYTHON=python3            needs torch, safetensors and tokenizers
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1
model=$2
out=$3
python=${PYTHON:-python3}
gpus=$(echo "${CUDA_VISIBLE_DEVICES-$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | paste -sd,)}" | tr , ' ')
where=,device=cuda,in_flight=${IN_FLIGHT:-512}
[ -n "$gpus" ] || { gpus=none where=; }
n=$(echo $gpus | wc -w)
threads=$(($(nproc) / 4 / n))
threads=${THREADS:-$((threads > 0 ? threads : 1))}
mkdir -p "$out/home"

say() { echo "$(date +%T) $*"; }

sets() { # FOLDER PROBLEMS
    sh "$here/../datasets/synth.sh" "$program" "$1" "$2"
}

ask() { # RUN DATA SAMPLES OPTION...: runs eval with suite synth and these options
    run=$1 data=$2 k=$3
    shift 3
    ${nice:-} "$program" eval --suite "$here/../configs/suites/synth.json" --data "$data" --samples "$k" --out "$run" \
        --judge "${JUDGE:-lcb}" --quiet "$@"
}

sets "$out/data" "${PROBLEMS:-2500}"
sets "$out/few" "${FEW:-200}"
[ -d "$out/outliers" ] || "$python" "$here/outliers.py" "$model" "$out/outliers" >"$out/home/outliers.txt"

say 'perplexity, on the CPU'
"$python" "$here/texts.py" "$program" "$out/texts" >"$out/home/unigram.txt"
scored=
for style in aime math gpqa code; do
    for m in "$model" "$out/outliers"; do
        nice -n 10 "$program" fidelity --model "$m" --text "$out/texts/$style.txt" --prefill --threads 1 \
            --precisions bf16,fp8,A,B >"$out/home/fidelity-$style-$(basename "$m").txt" 2>&1 &
        scored="$scored $!"
    done
done

say 'the damaged format, on the CPU: one core for each arm, three arms in each process'
shards=$((($(nproc) + 15) / 16)) # each shard uses three cores; the arms on GPUs use the others
damage= rough=
nice="nice -n 10" # the processes of the GPUs have priority
for i in $(seq $shards); do
    ask "$out/rough$i" "$out/few" "${FEW_SAMPLES:-1}" --shard $i/$shards --arm "bf16=local:$model,precision=bf16,threads=1" \
        --arm "fp8=local:$out/outliers,precision=fp8,threads=1" \
        --control "damaged=local:$out/outliers,precision=B,threads=1" >>"$out/home/damage.txt" 2>&1 &
    damage="$damage $!"
    rough="$rough $out/rough$i"
done

nice=
i=0
parts= pids=
for gpu in $gpus; do
    i=$((i + 1))
    parts="$parts $out/part$i"
    say "part $i of $n on GPU $gpu"
    CUDA_VISIBLE_DEVICES=$gpu ask "$out/part$i" "$out/data" "${SAMPLES:-4}" --shard $i/$n \
        --arm "bf16=local:$model,precision=bf16,threads=$threads$where" \
        --arm "fp8=local:$model,precision=fp8,threads=$threads$where" --control seeds \
        >"$out/home/part$i.txt" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid"
done
say 'all parts are complete'
"$program" merge $parts --out "$out/run" >"$out/home/parity.txt" 2>&1
"$python" "$here/levels.py" "$out/run" "$out/home/samples.xz" >"$out/home/levels.md"
cp "$out/run/run.json" "$out/run/report.md" "$out/home/"

for pid in $damage $scored; do
    wait "$pid" || say 'a process on the CPU failed: see home/damage.txt, home/fidelity-*'
done
"$program" merge $rough --out "$out/damage" >>"$out/home/damage.txt" 2>&1
cp "$out/damage/run.json" "$out/home/damage.json"
cp "$out/damage/report.md" "$out/home/damage.md"
"$python" "$here/levels.py" "$out/damage" >"$out/home/damage-levels.md"
say done
