#!/bin/sh
# Compares the program's kernels with those of other projects (docs/court.md), on a machine with a
# GPU. The other kernels are called by the Python files of adapters/. Their packages must be
# installed for python3 (or SNAPMLA_PYTHON). The rows of an arm whose package is missing say so.
#   court.sh [--backend NAME] [--dry] [PART...]      results go to OUT (build/court)
#     table    ten of the fourteen shapes of configs/h200-table.json, with up to 0.6 million tokens
#              in all, or one of a million; all arms but torch
#     large    the other four: 128 sequences of 32,768 tokens. Only the arms that have been the
#              fastest, because their caches are packed on the host, which takes longest
#     random   64 random shapes (configs/court-random.json), with few samples. The Triton kernels of
#              vLLM and SGLang are compiled for each number of heads, so several processes compile
#              them before: Triton keeps compiled kernels on disk
#     mixed    32 and 128 sequences of different lengths (configs/court-lengths.txt), and 32 with
#              log-normal lengths
#     torch    three small shapes with torch, which gathers and widens the cache in every step
# Without PART, all of them. --dry: one small shape and few samples, for a machine without a GPU.
# A part is stopped after PART_SECONDS (240). Its result then has the shapes that are complete, and
# the same command measures the others. Exits 1 if a part failed or was stopped.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${OUT:-build/court}
snapmla=${SNAPMLA:-build/snapmla}
backend=cuda
dry=0
bad=0
while :; do
    case ${1:-} in
        --backend) backend=$2 && shift 2 ;;
        --dry) dry=1 && shift ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || set -- table large random mixed torch
mkdir -p "$out"

ours="--arm ours=$backend --arm ours8=$backend,precision=fp8"
flashinfer='--arm fi3=python:adapters/flashinfer_mla.py,isa=fa3 --arm fi3-8=python:adapters/flashinfer_mla.py,isa=fa3-fp8'
flashinfer2='--arm fi2=python:adapters/flashinfer_mla.py,isa=fa2'
flashmla='--arm flashmla=python:adapters/flashmla.py --arm flashmla8=python:adapters/flashmla_fp8.py'
vllm='--arm vllm=python:adapters/vllm_triton.py --arm vllm8=python:adapters/vllm_triton.py,isa=fp8'
sglang='--arm sglang=python:adapters/sglang_triton.py'
triton='--arm triton=python:adapters/triton_mla.py'
triton8='--arm triton8=python:adapters/triton_mla.py,format=snapmla'
torch='--arm torch=python:adapters/torch_sdpa.py'
fast="$ours $flashinfer $flashmla"

# bench NAME OPTION...: one result file and its report
bench() {
    name=$1
    shift
    begun=$(date +%s)
    case "$dry $*" in
        1*--lengths*) set -- "$@" --heads 16 --batch 2 --lengths uniform:64-300 ;;
        1*) set -- "$@" --shapes 16/1/2/200 ;;
    esac
    [ $dry = 0 ] || set -- "$@" --min-samples 2 --min-time 0 --rest 0
    rm -f "$out/$name.json"
    timeout -s INT -k 20 "${PART_SECONDS:-240}" "$snapmla" bench --quiet --scope kernel \
        --ceilings "$out/roofline.json" --out "$out/$name.json" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    code=$?
    [ $code = 0 ] || bad=1
    echo "== $name: exit $code, $(($(date +%s) - begun)) s"
    cat "$out/$name.txt"
    [ $code = 0 ] || tail -n 5 "$out/$name.err"
}

# compile_random: runs the Triton kernels once on the random shapes with one query token, which are
# those that the kernels of vLLM and SGLang take
compile_random() {
    begun=$(date +%s)
    for part_of in 0 1 2 3 4 5; do
        shapes=$(grep -o '"[0-9]*/1/[0-9]*/[0-9]*"' configs/court-random.json | tr -d '"' |
            awk -v part="$part_of" 'NR % 6 == part' | paste -s -d , -)
        # shellcheck disable=SC2086
        timeout -s INT -k 20 120 "$snapmla" bench --quiet --scope kernel --ceilings "$out/roofline.json" $vllm $sglang $triton \
            --shapes "$shapes" --min-samples 1 --min-time 0 --timeout 0.01 --rest 0 >"$out/compile-$part_of.txt" 2>&1 &
    done
    wait
    echo "== compiled for random: $(($(date +%s) - begun)) s"
}

[ -f "$out/roofline.json" ] || "$snapmla" roofline --quiet --backend "$backend" --out "$out/roofline.json" >"$out/roofline.txt" || exit 1
for part in "$@"; do
    # The lists of arms are meant to be split into words.
    # shellcheck disable=SC2086
    case $part in
        table)
            bench table $fast $flashinfer2 $vllm $sglang $triton $triton8 --config h200-table --min-samples 25 \
                --shapes 16/1/1/1024,16/1/1/131072,16/1/128/8192,64/1/4/8192,64/1/32/8192,64/1/64/8192,128/1/1/65536,128/1/16/8192,128/1/64/8192,128/2/64/8192
            ;;
        large)
            bench large $fast --config h200-table --min-samples 25 \
                --shapes 16/1/128/32768,64/1/128/32768,128/1/128/32768,128/2/128/32768
            ;;
        random)
            [ $dry = 1 ] || compile_random
            bench random $fast $vllm $sglang $triton --config court-random
            ;;
        mixed)
            bench mixed $fast $flashinfer2 $vllm $sglang $triton --heads 16,128 --batch 32,128 --min-samples 25 \
                --min-time 0.01 --lengths configs/court-lengths.txt
            bench lognormal $fast $flashinfer2 $vllm $sglang $triton --heads 16,128 --batch 32 --min-samples 25 \
                --min-time 0.01 --lengths lognormal:4096,1
            ;;
        torch) bench torch $ours $torch --shapes 16/1/8/8192,64/1/4/8192,128/1/16/2048 --min-samples 10 --min-time 0.01 ;;
        *) echo "court: there is no part '$part'" >&2 && exit 2 ;;
    esac
done
set --
for name in table large random mixed lognormal torch; do
    [ ! -f "$out/$name.json" ] || set -- "$@" "$out/$name.json"
done
[ $# -gt 0 ] || { echo "court: no shape was complete" >&2 && exit 1; }
"$snapmla" report "$@" --out "$out/report" >"$out/report.txt" || bad=1
for file in "$@"; do
    "$snapmla" verify-run "$file" >>"$out/verify.txt" 2>&1 || bad=1
done
exit $bad
