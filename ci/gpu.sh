#!/bin/sh
# What to run on a machine with a CUDA device, where continuous integration has none: the programs that
# check the kernels, the ceilings, and the shapes that kernels are compared on. Some minutes.
#   gpu.sh [BUILD [OUT]]     results go to OUT (BUILD/gpu)
# A check that hangs is ended after CHECK_SECONDS (120). Exits 1 when a check failed.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
out=${2:-$build/gpu}
snapmla=$build/snapmla
bad=0
make BUILD="$build" -j"$(nproc)" all cuda-checks
mkdir -p "$out"

for check in "$build"/test/cuda/check_*; do
    echo "== $(basename "$check")"
    timeout "${CHECK_SECONDS:-120}" "$check" || {
        echo "gpu: $(basename "$check") failed" >&2
        bad=1
    }
done
echo '== ceilings'
"$snapmla" roofline --backend cuda --out "$out/roofline.json"
echo '== the shapes that kernels are compared on'
"$snapmla" bench --backend cuda --config configs/h200-table.json --ceilings "$out/roofline.json" \
    --out "$out/table.json" || bad=1
"$snapmla" report "$out/table.json" >"$out/table.md"
echo "$out/table.md"
exit $bad
