#!/bin/sh
# Measures the counterpart of Figure 1 of the SnapMLA paper on the GPUs of one machine: DP, DP with TP2, and TP, each
# with EP over all GPUs, in BF16 and in FP8, with the largest batch that one budget of memory holds. On four H200s, the
# steps v3 and longcat took 273 s together. Each run has a time limit. A failed step does not stop the others.
#   gpu_figure1.sh OUT [STEP...]     without STEP all of them, in this order
#
#   correct   small models on the first GPUs: their logits are compared with those of one GPU and of the CPU
#             (build/test/generator --suite layouts)
#   curves    all operations from 1 KB to 1 GB in BF16; and all-reduces, all-gathers and reduce-scatters in FP32 from
#             8 KB to 64 MB, also in the form that the steps of a model use
#   v3        DeepSeek-V3 in each layout, twice: BF16 first, then FP8 first
#   longcat   LongCat-Flash in the same way
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1,2,3); SNAPMLA_NCCL (else libnccl.so.2 of the system, else
# that of a PyTorch wheel); V3 and LONGCAT, the models (with four GPUs, as many layers as they hold; with eight, all
# layers); MEMORY, the cache of each GPU in GB (32); CONTEXTS (16384,32768,65536,131072); BATCHES (max); LAYOUTS.
# NVLink multicast stays off. Missing programs are built. OUT gets NAME-1.json and NAME-2.json of each layout, and
# summary.txt. Exits 1 if a step failed.
set -eu
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
DEVICES=${DEVICES:-0,1,2,3}
begin "$@"
shift
steps=${*:-correct curves v3 longcat}
export NCCL_NVLS_ENABLE=0
gpus=$(echo "$devices" | tr ',' '\n' | grep -c .)
layouts=${LAYOUTS:-DP$gpus/EP$gpus DP$((gpus / 2))/TP2/EP$gpus TP$gpus/EP$gpus}
if [ "$gpus" -ge 8 ]; then
    v3=${V3:-deepseek-v3-e4m3} longcat=${LONGCAT:-longcat-flash-e4m3}
else
    v3=${V3:-deepseek-v3-36-layers-e4m3} longcat=${LONGCAT:-longcat-flash-18-layers-e4m3}
fi
tests=build/test/generator
make_missing "$snapmla" "$tests"

step_correct() {
    LAYOUT_DEVICES=$devices SHOW_FIGURES=1 show correct 300 "$tests" --suite layouts
}

step_curves() {
    show curves 150 "$snapmla" bench exchange --devices "$devices" --min-time 0.05 --out "$out/curves.json"
    measure_sums
}

# layout NAME MODEL LAYOUT ARMS
layout() {
    show "$1" 120 "$snapmla" bench model --model-config "$2" --memory "${MEMORY:-32}" --arms "$4" \
        --context "${CONTEXTS:-16384,32768,65536,131072}" --batch "${BATCHES:-max}" --min-time 0.5 --parts \
        --layout "$3" --devices "$devices" --out "$out/$1.json"
}

# The second time, the arms run in the other order, so a drift of the clocks shows.
all() {
    for layout in $layouts; do
        file=$1-$(echo "$layout" | tr -d /)
        layout "$file-1" "$2" "$layout" bf16,fp8
        layout "$file-2" "$2" "$layout" fp8,bf16
    done
}

step_v3() {
    all v3 "$v3"
}

step_longcat() {
    all longcat "$longcat"
}

find_nccl
note_machine
run_steps
exit $bad
