#!/bin/sh
# Runs all checks and benchmarks for a machine with a CUDA device: the programs that check the
# kernels, compute-sanitizer on small shapes if it is installed, the ceilings, the shapes of the
# kernel table, the ablation, and some shapes with the portable kernels. It takes about a minute.
#   gpu.sh [--built] [--checks] [BUILD [OUT]]     results go to OUT (BUILD/gpu)
# --checks runs the checks only, without ceilings and times.
# --built compiles nothing: BUILD/test/cuda and the program ($SNAPMLA, BUILD/snapmla) must exist.
# The checks run in parallel, because they wait for the host more than for the device. A check is
# stopped after CHECK_SECONDS (120). Exits 1 when a check failed.
set -eu
cd "$(dirname "$0")/.."
built=0
checks_only=0
[ "${1:-}" = --built ] && built=1 && shift
[ "${1:-}" = --checks ] && checks_only=1 && shift
build=${1:-build}
out=${2:-$build/gpu}
snapmla=${SNAPMLA:-$build/snapmla}
checks=$build/test/cuda
sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null || true)
bad=0
[ "$built" = 1 ] || make BUILD="$build" -j"$(nproc)" all cuda-checks "$build/test/generator"
rm -rf "$out/logs"
mkdir -p "$out/logs"

# start NAME COMMAND...: runs a command in the background, with its output in a log of that name
start() {
    log=$out/logs/$1
    shift
    {
        begun=$(date +%s)
        code=0
        timeout -k 5 "${CHECK_SECONDS:-120}" "$@" >"$log.txt" 2>&1 || code=$?
        echo "$code $(($(date +%s) - begun))" >"$log.end"
    } &
}

sanitize() { # TOOL KERNEL CHECK ARGUMENT...
    tool=$1
    kernel=$2
    check=$3
    shift 3
    [ -z "$sanitizer" ] || start "$tool-$check" "$sanitizer" --kernel-name "kns=$kernel" --tool "$tool" \
        --error-exitcode 9 "$checks/$check" "$@"
}

# What a check has done, from its log: the tests and assertions of a test program; else the number of
# lines, how many of them end in "ok", and the last one.
summary() {
    awk '$1 == "tests" && NF == 6 { tests = $3 }
        $1 == "asserts" && NF == 6 { asserts = $3; failed = $5 }
        { lines++; ok += $NF == "ok"; last = $0 }
        END {
            if (asserts != "")
                printf "%d tests, %d asserts, %d failed\n", tests, asserts, failed
            else
                printf "%d lines, %d of them ok, the last: %s\n", lines, ok, last
        }' "$1"
}

# Waits for all checks. Prints a summary of each, or the whole log if the check failed.
finish() {
    wait
    for end in "$out"/logs/*.end; do
        name=$(basename "$end" .end)
        read -r code seconds <"$end"
        echo "== $name: exit $code, $seconds s"
        if [ "$code" = 0 ]; then
            summary "$out/logs/$name.txt"
        else
            cat "$out/logs/$name.txt"
            echo "gpu: $name failed" >&2
            bad=1
        fi
    done
}

start lab "$checks/check_lab"
start exchange "$checks/check_exchange"
start backend "$checks/check_backend"
start step "$checks/check_step" check
start codes "$checks/check_codes"
start route "$checks/check_route"
generator=$build/test/generator
if [ -x "$generator" ]; then
    start model "$generator" --suite cuda_model --suite cuda_engine
    start limits "$generator" --suite cuda_limits --suite cuda_weights --suite cuda_reading
    start rounding "$generator" --suite cuda_rounding --suite grouped
    start not_finite "$generator" --suite not_finite
fi
for kernel in fp8 bf16 portable; do
    start "$kernel" "$checks/check_$kernel" check
done
for rule in page order; do
    start "fp8-$rule" "$checks/check_fp8" "unit=$rule" check
done
for tool in memcheck racecheck synccheck; do
    sanitize "$tool" decode check_bf16 once 64,1,2,300 128,2,3,500 16,1,1,1024 64,1,70,200
    sanitize "$tool" decode check_fp8 once 64,1,2,300 64,1,2,300,64 128,2,3,500,64 128,2,1,200 16,1,1,1024 32,1,1,1024,32 \
        32,2,2,300,32 40,1,1,814 48,3,27,11 8,1,3,700 64,1,70,200
    sanitize "$tool" prepare check_step check 6
    sanitize "$tool" route check_route few
done
finish
[ "$checks_only" = 0 ] || exit $bad

bench() { # NAME CONFIG OPTION...
    name=$1
    config=configs/$2.json
    shift 2
    "$snapmla" bench --backend cuda --config "$config" --ceilings "$out/roofline.json" \
        --out "$out/$name.json" "$@" || bad=1
    "$snapmla" report "$out/$name.json" >"$out/$name.md" || bad=1
}
echo '== ceilings'
"$snapmla" roofline --backend cuda --out "$out/roofline.json"
echo '== the shapes of the kernel table'
bench table h200-table
echo '== the ablation'
bench ablation ablation
echo '== some of these shapes with the portable kernels'
bench portable h200-table --isa portable --shapes 16/1/1/1024,16/1/16/8192,64/1/32/8192,128/1/16/8192
exit $bad
