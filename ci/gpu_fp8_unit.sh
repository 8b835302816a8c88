#!/bin/sh
# Compares the two rules for the unit of P of the Hopper FP8 kernel (docs/kernel-fp8.md) on a machine
# with a GPU: kept over pages, or one unit for each page. It takes about four minutes.
#   gpu_fp8_unit.sh [BUILD [OUT]]     BUILD/snapmla and BUILD/test/cuda/check_fp8 must exist
# Results go to OUT (BUILD/gpu-unit):
#   check-RULE.txt   check_fp8 of each rule, against FP64 attention with the same rule
#   sanitizer.txt    compute-sanitizer on small steps, if it is installed
#   times            times and errors of both rules in turns, on the fourteen shapes of the table
#   normal           the same on normally distributed numbers, where the rules differ most in error
#   ablation         every variant of the FP8 arm (configs/ablation.json)
# The last three are a result file (.json) and a report (.md) each. Exits 1 when a check failed.
set -u
cd "$(dirname "$0")/.."
build=${1:-build}
out=${2:-$build/gpu-unit}
snapmla=${SNAPMLA:-$build/snapmla}
check=$build/test/cuda/check_fp8
sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null || true)
bad=0
mkdir -p "$out"

for rule in kept page order; do
    timeout 60 "$check" "unit=$rule" check >"$out/check-$rule.txt" 2>&1 || bad=1
    echo "== unit=$rule: $(grep -c ' ok$' "$out/check-$rule.txt") cases passed, $(grep -c ' WRONG$' "$out/check-$rule.txt") failed"
    grep -v ' ok$' "$out/check-$rule.txt"
done
for tool in memcheck racecheck synccheck; do
    [ -n "$sanitizer" ] || break
    echo "== $tool"
    timeout 60 "$sanitizer" --kernel-name kns=decode --tool "$tool" --error-exitcode 9 "$check" unit=page once \
        64,1,2,300 64,1,2,300,64 128,2,3,500,64 16,1,1,1024 32,2,2,300,32 48,3,27,11 8,1,3,700 || bad=1
done >"$out/sanitizer.txt" 2>&1
grep SUMMARY "$out/sanitizer.txt"

# bench NAME OPTION...
bench() {
    name=$1
    shift
    [ -f "$out/roofline.json" ] || "$snapmla" roofline --backend cuda --out "$out/roofline.json" >/dev/null
    "$snapmla" bench --ceilings "$out/roofline.json" --out "$out/$name.json" "$@" || bad=1
    "$snapmla" report "$out/$name.json" >"$out/$name.md" || bad=1
}
bench times --config configs/h200-table.json --scope kernel \
    --arm kept=cuda,precision=fp8 --arm page=cuda,precision=fp8,unit=page
bench normal --scope kernel --distribution normal --min-samples 20 --timeout 1 \
    --shapes 16/1/16/1024,64/1/4/1024,64/1/4/4096,128/1/4/4096,64/1/1/65536 \
    --arm kept=cuda,precision=fp8 --arm page=cuda,precision=fp8,unit=page
bench ablation --config configs/ablation.json --backend cuda
exit $bad
