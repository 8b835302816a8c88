#!/bin/sh
# Checks and measures models on two GPUs: layouts DP2, TP2, EP2 and TP2/EP2, and one GPU for comparison. It takes
# about sixteen minutes without the build. Each run has a time limit. A failed step does not stop the others.
#   gpu_layouts.sh OUT [STEP...]     without STEP all of them, in this order
#
#   kernel    the one-shot kernel between streams of one GPU (build/test/cuda/check_exchange)
#   correct   small models on two GPUs: their logits are compared with those of one GPU and of the CPU
#             (build/test/generator --suite layouts)
#   sums      all-reduces, all-gathers and reduce-scatters of FP32 numbers from 8 KB to 64 MB, also in the form that the
#             steps of a model use
#   lite      DeepSeek-V2-Lite: one GPU and all layouts
#   v3        DeepSeek-V3 with its true widths and 7 of its 61 layers (3 dense): one GPU and all layouts
#   longcat   LongCat-Flash with its true widths, e4m3 weights and 5 of its 28 layers: one GPU and all layouts
#   nccl      TP2 and EP2 of V2-Lite and V3 again, with NCCL for all exchanges
#   energy    joules for each token of the models in ENERGY: one GPU and all layouts
#   sockets   TP2 and EP2 of V2-Lite with NCCL over sockets, as between two machines: slower, but it must work
#   faults    one rank of TP2 is killed, and in a second run one is stopped: the run must fail in time
#   memory    another program fills the memory of the second GPU: TP2 must end in time and name rank 1
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1); SNAPMLA_NCCL (else libnccl.so.2 of
# the system, else that of a PyTorch wheel); CONTEXTS (8192,32768,131072); BATCHES (2,8,64,max); LAYOUTS (DP2
# TP2 EP2 TP2/EP2); SINGLE (yes; no = without the runs on one GPU); ENERGY (lite v3; also longcat); V3, the model of v3
# (deepseek-v3-7-layers). NVLink multicast stays off. Missing programs are
# built. OUT gets NAME.json and NAME.txt of each measurement, NAME-clocks.csv with the clock and power of the GPUs
# meanwhile, correct.txt, faults.txt, memory.txt and holder.txt (step memory), machine.txt, and summary.txt.
# Exits 1 if a step failed.
set -eu
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
begin "$@"
: >"$out/faults.txt"
shift
steps=${*:-kernel correct sums lite v3 longcat nccl energy sockets faults memory}
export NCCL_NVLS_ENABLE=0
contexts=${CONTEXTS:-8192,32768,131072}
batches=${BATCHES:-2,8,64,max}
layouts=${LAYOUTS:-DP2 TP2 EP2 TP2/EP2}
single=${SINGLE:-yes}
energy=${ENERGY:-lite v3}
v3=${V3:-deepseek-v3-7-layers}
longcat=longcat-flash-5-layers-e4m3
check=build/test/cuda/check_exchange
tests=build/test/generator
make_missing "$snapmla" "$check" "$tests"

# model NAME CONFIG MEMORY CONTEXTS BATCHES OPTION...: one run of `bench model`
model() {
    name=$1
    config=$2
    memory=$3
    at=$4
    of=$5
    shift 5
    record_clocks "$name"
    show "$name" 120 "$snapmla" bench model --model-config "$config" --memory "$memory" \
        --context "$at" --batch "$of" --min-time 0.1 --parts --out "$out/$name.json" "$@"
    stop_clocks "$name"
}

step_kernel() {
    show kernel 30 "$check"
}

step_correct() {
    LAYOUT_DEVICES=$devices SHOW_FIGURES=1 show correct 300 "$tests" --suite layouts
}

step_sums() {
    measure_sums
}

# one NAME CONFIG MEMORY OPTION...: one GPU, which also decodes a single sequence
one() {
    prefix=$1
    shape=$2
    cache=$3
    shift 3
    visible=${CUDA_VISIBLE_DEVICES:-}
    CUDA_VISIBLE_DEVICES=$(gpu_at 1)
    export CUDA_VISIBLE_DEVICES
    model "$prefix-one" "$shape" "$cache" "$contexts" "1,$batches" "$@"
    [ -n "$visible" ] && export CUDA_VISIBLE_DEVICES="$visible" || unset CUDA_VISIBLE_DEVICES
}

# all NAME CONFIG MEMORY OPTION...: one GPU, and then all layouts
all() {
    [ "$single" = no ] || one "$@"
    prefix=$1
    shape=$2
    cache=$3
    shift 3
    for layout in $layouts; do
        model "$prefix-$(echo "$layout" | tr -d /)" "$shape" "$cache" "$contexts" "$batches" \
            --layout "$layout" --devices "$devices" "$@"
    done
}

step_lite() {
    all lite deepseek-v2-lite 90
}

# The four layers of experts of deepseek-v3-7-layers take 91 GB in BF16.
step_v3() {
    all v3 $v3 28
}

step_longcat() {
    all longcat $longcat 28
}

step_nccl() {
    for layout in TP2 EP2; do
        model "lite-$layout-nccl" deepseek-v2-lite 90 32768 2,64 --layout "$layout" \
            --devices "$devices" --one-shot-kib 0
        model "v3-$layout-nccl" $v3 28 32768 2,64 --layout "$layout" --devices "$devices" \
            --one-shot-kib 0
    done
}

step_energy() {
    kept_contexts=$contexts
    kept_batches=$batches
    contexts=32768
    batches=64,max
    for kind in $energy; do
        case $kind in
        lite) all lite-energy deepseek-v2-lite 90 --energy 2 ;;
        v3) all v3-energy $v3 28 --energy 2 ;;
        longcat) all longcat-energy $longcat 28 --energy 2 ;;
        *) fail "energy: no model '$kind'" ;;
        esac
    done
    contexts=$kept_contexts
    batches=$kept_batches
}

# Sends signal $1 to rank 1 while it times steps. The message of the run must contain $2. A row ends after 2000
# steps whatever --min-time is, which takes 8 s for the first of these. So many rows keep the run going.
inject() {
    signal_rank "$1" 1 "$snapmla" bench model --model-config deepseek-v2-lite --batch 8 \
        --context 8192,16384,24576,32768,40960,49152,57344,65536 --min-time 60 --layout TP2 \
        --devices "$devices" || return 0
    report_fault "signal $1 for rank 1" "$code" "$took" "$2"
}

step_faults() {
    inject KILL "rank 1 was ended by signal 9"
    inject STOP "rank 1: no sign of life for 10 s"
}

step_sockets() {
    for layout in TP2 EP2; do
        NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=Socket NCCL_DEBUG=INFO model "lite-$layout-sockets" \
            deepseek-v2-lite 90 32768 2,64 --layout "$layout" --devices "$devices" --one-shot-kib 0
        grep -q 'via NET/Socket' "$out/lite-$layout-sockets.txt" "$out/lite-$layout-sockets.err" ||
            fail "lite-$layout-sockets: NCCL did not use sockets"
    done
}

# The first run holds its weights and 90 GB of cache on the second GPU, so the second run finds no room there. The first
# run has many rows so that it lasts, as in inject(). It has one arm, because `bench model` releases the memory of one
# arm before it takes that of the next.
step_memory() {
    CUDA_VISIBLE_DEVICES=$(gpu_at 2) timeout 90 "$snapmla" bench model --model-config deepseek-v2-lite --memory 90 \
        --arms bf16 --batch 8 --context 8192,16384,24576,32768,40960,49152,57344,65536 --min-time 60 \
        >"$out/holder.txt" 2>&1 &
    holder=$!
    sleep 20
    kill -0 $holder 2>/dev/null || fail "memory: the program that fills the memory has ended"
    begun=$(date +%s)
    code=0
    timeout -k 5 60 "$snapmla" bench model --model-config deepseek-v2-lite --memory 90 --batch 8 --context 8192 \
        --layout TP2 --devices "$devices" >"$out/memory.txt" 2>"$out/fault.err" || code=$?
    report_fault "no memory on the GPU of rank 1" "$code" $(($(date +%s) - begun)) "rank 1"
    grep -q memory "$out/fault.err" || fail "memory: the message does not name memory"
    kill $holder 2>/dev/null || true
    wait $holder || true
}

find_nccl
note_machine
run_steps
exit $bad
