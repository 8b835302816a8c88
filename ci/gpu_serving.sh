#!/bin/sh
# Measures `snapmla serve` under load on a machine with a GPU, in both precisions, with random weights.
#   gpu_serving.sh OUT
# It needs only the program, from a build tree or from a bundle of `make dist`. Two servers, one for
# each precision, share the device. Both caches have the same size. At any time only one of them gets
# requests, except in step 4. Every step is stopped after its share of 20 minutes, and the next one
# begins. Results go to OUT: one folder or file for each step, logs in OUT/logs, OUT/summary.txt.
#
#   1 steps     `bench model` without a server, as the reference of step 2
#   2 decode    a full batch of equal prompts, so that the server only decodes: its tokens per second
#               must be at least 90 % of those of step 1
#   3 closed-N, open-N   for each input of N tokens: closed loops, and an open loop. For the first
#               input, the open loop's rate is the highest one within the targets, which is searched.
#               For the others it is 70 % of the rate that the closed loop reached.
#   4 quiet, mixed   gaps between tokens of short requests, without and with long prompts beside
#
# Environment, with defaults for one H200:
#   SNAPMLA=build/snapmla      the program
#   DEVICE=cuda                "cpu" tests this script; step 1 needs a GPU and is then left out
#   SHAPE=deepseek-v2-lite     a name in configs/models, or a config.json
#   CACHE_MB=24576             size of each server's cache
#   BATCH=32 INPUTS=8192,32768,131072 OUTPUT=256 LONG=32768
#   SCALE=1                    factor of all times
# Exits with 1 if a step failed or the 90 % are missed.
set -u
out=${1:?usage: gpu_serving.sh OUT}
snapmla=${SNAPMLA:-build/snapmla} device=${DEVICE:-cuda} shape=${SHAPE:-deepseek-v2-lite}
cache=${CACHE_MB:-24576} batch=${BATCH:-32} inputs=${INPUTS:-8192,32768,131072}
output=${OUTPUT:-256} long=${LONG:-32768} scale=${SCALE:-1} port=${PORT:-8100}
first=${inputs%%,*} longest=${inputs##*,}
bad=0 end=$(($(date +%s) + 1180))
mkdir -p "$out/logs"
: >"$out/summary.txt"
say() { echo "$*" | tee -a "$out/summary.txt"; }
scaled() { awk -v a="$1" -v b="$scale" 'BEGIN { t = a * b; print t < 1 ? 1 : int(t) }'; }

# step NAME SECONDS COMMAND...: runs a command for at most so long, with its output in a log
step() {
    name=$1 limit=$(scaled "$2")
    shift 2
    begun=$(date +%s) code=0
    [ "$limit" -lt $((end - begun)) ] || limit=$((end - begun > 1 ? end - begun : 1))
    timeout -s INT -k 10 "$limit" "$@" >"$out/logs/$name.txt" 2>&1 || code=$?
    say "== $name: exit $code, $(($(date +%s) - begun)) s of at most $limit"
    [ $code = 0 ] || [ $code = 124 ] || { bad=1 && tail -n 3 "$out/logs/$name.txt"; }
    return $code
}

# load NAME SECONDS OPTION...: measures both arms, or those of $arms; leaves a table in the log
load() {
    name=$1 limit=$2
    shift 2
    # shellcheck disable=SC2086 # a list of options
    step "$name" "$limit" "$snapmla" bench serving -q $arms --warmup 1 --out "$out/$name" "$@"
    "$snapmla" report "$out/$name" --format csv --out "$out/$name-report" >"$out/logs/$name-report.txt" 2>&1
}

# latency RUN ARM METRIC MEMBER: a number from run.json, whose rows are lines; of the first load point
latency() {
    sed -n "/\"arm\": *\"$2\"/{/\"metric\": *\"$3\"/{/\"kind\": *\"latency\"/s/.*\"$4\": *\([^,}]*\).*/\1/p;};}" \
        "$out/$1/run.json" 2>/dev/null | head -n 1
}

# tpot RUN ARM: the median seconds per token after the first, of all requests
tpot() {
    number=0
    [ "$2" = bf16 ] || number=1
    grep "\"arm\": *${number}[,}]" "$out/$1/requests.jsonl" | awk '
        function get(key) { return match($0, "\"" key "\": *[0-9.e+-]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
        get("completion_tokens") > 1 { print (get("end") - get("first")) / (get("completion_tokens") - 1) }' |
        sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

# rate_of RUN: 70 % of the most requests per second of a load of bf16
rate_of() {
    sed -n '/"arm": *"bf16"/{/"kind": *"load"/s/.*"requests_s": *\([0-9.e-]*\).*/\1/p;}' "$out/$1/run.json" 2>/dev/null |
        sort -g | tail -n 1 | awk '$1 > 0 { printf "%.3f", 0.7 * $1 }'
}

# serve NAME PORT: starts the server of a precision; its process id goes to $pids
pids=
serve() {
    "$snapmla" serve --random-weights "$shape" --device "$device" --precision "$1" --port "$2" \
        --cache-mb "$cache" --sequences "$batch" --context $((longest + longest / 20 + 4 * output + 2048)) \
        --served-model-name m --timeout 0 >"$out/logs/serve-$1.txt" 2>&1 &
    pids="$pids $!"
}
await() { # NAME
    for _ in $(seq $(($(scaled 90) + 20))); do
        grep -q '^serving' "$out/logs/serve-$1.txt" && return 0
        sleep 1
    done
    say "the server for $1 did not start:"
    cat "$out/logs/serve-$1.txt"
    exit 1
}
finish() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill $pids 2>/dev/null
    wait
}
trap finish EXIT
trap 'exit 1' INT TERM

if [ "$device" = cuda ]; then
    step steps 80 "$snapmla" bench model --model-config "$shape" --batch "$batch" \
        --context $((first + output)) --out "$out/steps.json"
    cat "$out/logs/steps.txt"
fi

serve bf16 "$port"
serve fp8 $((port + 1))
await bf16
await fp8
bf16="--arm bf16=http://127.0.0.1:$port/v1,model=m,precision=bf16"
fp8="--arm fp8=http://127.0.0.1:$((port + 1))/v1,model=m,precision=fp8"
arms="$bf16 $fp8"

load decode 90 --concurrency "$batch" --requests $((4 * batch)) --blocks 1 --input "$first" \
    --output $((2 * output)) --prefix-share 1
for arm in bf16 fp8; do
    served=$(tpot decode $arm | awk -v b="$batch" '$1 > 0 { print b / $1 }')
    model=$(sed -n "/\"arm\": *\"$arm\"/s/.*\"tokens_s\": *\([^,}]*\).*/\1/p" "$out/steps.json" 2>/dev/null | head -n 1)
    share=$(awk -v s="${served:-0}" -v m="${model:-0}" 'BEGIN { print (m > 0 ? 100 * s / m : "") }')
    say "decode, $arm: $batch streams, ${served:-unknown} tokens/s ($batch / median tpot);" \
        "bench model: ${model:-not measured}; share: ${share:-unknown} %"
    [ "$device" != cuda ] || awk -v x="${share:-0}" 'BEGIN { exit x < 90 }' || bad=1
done

for input in $(echo "$inputs" | tr ',' ' '); do
    users=1,4 seconds=12 drain=10
    [ "$input" -le 65536 ] || users=1,2 seconds=15 drain=20
    load "closed-$input" 130 --concurrency "$users" --duration "$(scaled $seconds)" --drain "$(scaled $drain)" \
        --blocks 1 --input "$input" --output "$output"
    if [ "$input" = "$first" ]; then
        load "open-$input" 230 --search "${RATES:-rate:0.5-16}" --slo ttft_p90=10s,tpot_p90=100ms \
            --duration "$(scaled 8)" --drain "$(scaled 3)" --blocks 1 --input "$input" --output "$output"
    else
        rate=$(rate_of "closed-$input")
        load "open-$input" 90 --rate "${rate:-0.1}" --duration "$(scaled 20)" --drain "$(scaled $drain)" \
            --blocks 1 --input "$input" --output "$output"
    fi
done

# The same short requests twice; the second time, a second client sends long prompts.
for arm in bf16 fp8; do
    case $arm in bf16) arms=$bf16 ;; fp8) arms=$fp8 ;; esac
    load "quiet-$arm" 35 --concurrency 4 --duration "$(scaled 15)" --blocks 1 --input 256 --output $((2 * output))
    (load "long-$arm" 45 --rate "${LONG_RATE:-0.5}" --arrivals constant --duration "$(scaled 25)" --drain "$(scaled 10)" \
        --blocks 1 --input "$long" --output 4) &
    beside=$!
    load "mixed-$arm" 45 --concurrency 4 --duration "$(scaled 20)" --blocks 1 --input 256 --output $((2 * output))
    wait $beside
    say "gaps between tokens, $arm: p50 $(latency "quiet-$arm" $arm itl p50_ms) ms, p99 $(latency "quiet-$arm" $arm itl p99_ms) ms;" \
        "while prompts of $long tokens arrive: p50 $(latency "mixed-$arm" $arm itl p50_ms) ms, p99 $(latency "mixed-$arm" $arm itl p99_ms) ms"
done
exit $bad
