#!/bin/sh
# Does FP8 change what a checkpoint of ours answers? Held-out problems in the four styles, asked in BF16, in FP8
# (snapmla) and in BF16 with other seeds, a part of them on every GPU; beside it, on the processor, in a damaged format.
#   parity.sh PROGRAM MODEL OUT
#
# What is worth taking home is OUT/home: result files, tables, the verdicts of all samples (xz). Two H200 with 32 cores generate its 120 000
# answers, 108 million tokens, in about four minutes and take two more to judge the programs; a run that was stopped goes on.
# Environment, with defaults:
#   PROBLEMS=2500 SAMPLES=4   of each style: 10000 samples; few repeats, since this model hardly varies
#   FEW=200 FEW_SAMPLES=1     problems and samples for the damaged format (configuration B, of the model with RoPE outliers)
#   AIME, MATH, GPQA, CODE    lists of levels: datasets/synth.sh
#   CUDA_VISIBLE_DEVICES      the GPUs, as 0,1; default: all; none: all on the processor
#   IN_FLIGHT=512 THREADS     sequences at once of an arm on a GPU; its threads, by default such that all have cores
#   JUDGE=lcb                 one process a program, not one a test: there are so many
#   PYTHON=python3            with torch, safetensors, tokenizers
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

ask() { # RUN DATA SAMPLES OPTION...: --suite synth with its options
    run=$1 data=$2 k=$3
    shift 3
    ${nice:-} "$program" eval --suite "$here/../configs/suites/synth.json" --data "$data" --samples "$k" --out "$run" \
        --judge "${JUDGE:-lcb}" --quiet "$@"
}

sets "$out/data" "${PROBLEMS:-2500}"
sets "$out/few" "${FEW:-200}"
[ -d "$out/outliers" ] || "$python" "$here/outliers.py" "$model" "$out/outliers" >"$out/home/outliers.txt"

say 'perplexity, on the processor'
"$python" "$here/texts.py" "$program" "$out/texts" >"$out/home/unigram.txt"
scored=
for style in aime math gpqa code; do
    for m in "$model" "$out/outliers"; do
        nice -n 10 "$program" fidelity --model "$m" --text "$out/texts/$style.txt" --prefill --threads 1 \
            --precisions bf16,fp8,A,B >"$out/home/fidelity-$style-$(basename "$m").txt" 2>&1 &
        scored="$scored $!"
    done
done

say 'the damaged format, on the processor: a core an arm, three arms a process'
shards=$((($(nproc) + 15) / 16)) # three cores each; the GPUs have the others
damage= rough=
nice="nice -n 10" # what drives the GPUs comes first
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
say 'all parts are there'
"$program" merge $parts --out "$out/run" >"$out/home/parity.txt" 2>&1
"$python" "$here/levels.py" "$out/run" "$out/home/samples.xz" >"$out/home/levels.md"
cp "$out/run/run.json" "$out/run/report.md" "$out/home/"

for pid in $damage $scored; do
    wait "$pid" || say 'a process on the processor did not end well: home/damage.txt, home/fidelity-*'
done
"$program" merge $rough --out "$out/damage" >>"$out/home/damage.txt" 2>&1
cp "$out/damage/run.json" "$out/home/damage.json"
cp "$out/damage/report.md" "$out/home/damage.md"
"$python" "$here/levels.py" "$out/damage" >"$out/home/damage-levels.md"
say done
