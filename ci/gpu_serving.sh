#!/bin/sh
# Measures `snapmla serve` under load on a machine with a GPU, in both precisions, with random weights.
#   gpu_serving.sh OUT [PART...]     PART: closed, knee, http, chunked; default: all of them
# It needs only the program, from a build tree or from a bundle of `make dist`. Two servers, one for
# each precision, share the device and have caches of the same size. At any time only one of them gets
# requests, except in the part chunked. Results go to OUT: one folder or file for each step, logs in
# OUT/logs, OUT/summary.txt. Each step writes its results when it ends or when its time is over, so
# those of a script that was stopped are complete up to its last step.
#
#   closed   `bench model` without a server, then a full batch of prompts on each server while it only
#            decodes: at least 90 % of the tokens per second of `bench model` are expected. Then closed
#            loops for each input length, with as many users as the FP8 cache can hold.
#   knee     for each input length, the highest rate within the targets. The prompts are in the cache,
#            so the server mostly decodes, as in Figure 1 of the paper. The search begins at 1.2 million
#            divided by the input length, which is near the knee of one H200.
#   http     256 streams against one request with 256 choices and a single answer, which is the same
#            work for the engine: at most 5 % of the throughput may be lost. And the time to the first
#            token at the client minus that in the server's own metrics: at most 1 ms.
#   chunked  gaps between tokens of short requests while long prompts arrive: prompts computed in
#            chunks, and each prompt computed in one step
#
# Environment, with defaults for one H100 or H200:
#   SNAPMLA=build/snapmla      the program
#   DEVICE=cuda                "cpu" tests this script; `bench model` needs a GPU and is then left out
#   SHAPE=deepseek-v2-lite     a name in configs/models, or a config.json
#   WEIGHTS_MB=29950           size of its weights
#   CACHE_MB                   size of each server's cache; default: half of the memory that the weights
#                              and 4 GiB for each server leave, at most 8192, so that the loads fill it
#                              within the time
#   FP8_TOKENS_MB=60           tokens in 1 MiB of the FP8 cache
#   BATCH=16 INPUTS=8192,32768,131072 OUTPUT=512 LONG=32768 STREAMS=256
#   LIMIT                      seconds for everything; default: 820, or 560 for one part
#   SCALE=1                    factor of the times of single loads
# Exits with 1 if a step failed or a limit was missed.
set -u
out=${1:?usage: gpu_serving.sh OUT [closed|knee|http|chunked]...}
shift
parts=${*:-closed knee http chunked}
snapmla=${SNAPMLA:-build/snapmla} device=${DEVICE:-cuda} shape=${SHAPE:-deepseek-v2-lite}
batch=${BATCH:-16} inputs=${INPUTS:-8192,32768,131072} output=${OUTPUT:-512} long=${LONG:-32768}
streams=${STREAMS:-256} scale=${SCALE:-1} port=${PORT:-8100} weights=${WEIGHTS_MB:-29950}
first=${inputs%%,*} longest=${inputs##*,}
context=$((longest + longest / 20 + 4 * output + 2048))
bad=0 pids='' bf16='' fp8='' arms=''
limit=820
[ $# != 1 ] || limit=560
limit=${LIMIT:-$limit}
end=$(($(date +%s) + limit)) part_end=0
mkdir -p "$out/logs"
say() { echo "$*" | tee -a "$out/summary.txt"; }
scaled() { awk -v a="$1" -v b="$scale" 'BEGIN { t = a * b; print t < 1 ? 1 : int(t) }'; }
left() { echo $((part_end - $(date +%s))); }

# begin PART SECONDS OF: the time of a part, as a share of what is left
begin() {
    now=$(date +%s)
    part_end=$((now + (end - now) * $2 / $3))
    say "==== $1: at most $((part_end - now)) s"
}

# step NAME SECONDS COMMAND...: runs a command for at most so long, with its output in a log
step() {
    name=$1 most=$2 code=0 begun=$(date +%s)
    shift 2
    [ "$most" -lt "$(left)" ] || most=$(left)
    [ "$most" -ge 2 ] || { say "== $name: no time is left" && return 1; }
    timeout --foreground -s INT -k 20 "$most" "$@" >"$out/logs/$name.txt" 2>&1 || code=$?
    say "== $name: exit $code, $(($(date +%s) - begun)) s of at most $most"
    [ $code = 0 ] || [ $code = 124 ] || { bad=1 && tail -n 3 "$out/logs/$name.txt"; }
    return $code
}

# load NAME SECONDS OPTION...: measures the servers of $arms, and leaves a table in the log. With a
# temperature of 0, sequences of a model with random weights soon have equal tokens and experts.
load() {
    name=$1 most=$2
    shift 2
    # shellcheck disable=SC2086 # a list of options
    step "$name" "$most" "$snapmla" bench serving -q $arms --temperature 1 --out "$out/$name" "$@"
    [ ! -f "$out/$name/run.json" ] ||
        "$snapmla" report "$out/$name" --format csv --out "$out/$name-report" >"$out/logs/$name-report.txt" 2>&1
}

# row RUN ARM PATTERN MEMBER: a number from run.json, whose rows are lines; of the last row with PATTERN
row() {
    sed -n "/\"arm\": *\"$2\"/{/$3/s/.*\"$4\": *\([^,}]*\).*/\1/p;}" "$out/$1/run.json" 2>/dev/null |
        awk '{ v = $1 } END { if (v + 0 > 0) printf "%.4g", v; else print "unknown" }'
}
requests() { # RUN ARM: its lines of requests.jsonl
    number=0
    [ "$2" = bf16 ] || number=1
    grep "\"arm\": *${number}[,}]" "$out/$1/requests.jsonl" 2>/dev/null
}
awk_get='function get(key) { return match($0, "\"" key "\": *[0-9.e+-]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }'

# decode_rate RUN ARM: tokens per second from when all requests of a block decode until the first one
# ends; the median of the blocks
decode_rate() {
    requests "$1" "$2" | awk "$awk_get"'
        { b = get("block"); f = get("first"); e = f; n = split("", gap)
          if (match($0, /"gap_us": *\[[^]]*\]/)) { s = substr($0, RSTART, RLENGTH); sub(/.*\[/, "", s); n = split(s, gap, ",") }
          for (i = 1; i <= n; i++) e += gap[i] / 1e6
          k[b]++; start[b, k[b]] = f; gaps[b, k[b]] = s; tokens[b] += get("completion_tokens"); pieces[b] += get("pieces")
          if (f > from[b]) from[b] = f
          if (!(b in to) || e < to[b]) to[b] = e }
        END { for (b in k) { c = 0
                  for (r = 1; r <= k[b]; r++) { t = start[b, r]; n = split(gaps[b, r], gap, ",")
                      for (i = 1; i <= n; i++) { t += gap[i] / 1e6; c += t > from[b] && t <= to[b] } }
                  if (to[b] > from[b] && pieces[b]) print c / (to[b] - from[b]) * tokens[b] / pieces[b] } }' |
        sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}
# whole_rate RUN ARM: tokens per second from the first request of a block to its last answer; the best
whole_rate() {
    requests "$1" "$2" | awk "$awk_get"'
        { b = get("block"); e = get("end"); t[b] += get("completion_tokens"); if (e > end[b]) end[b] = e
          s = get("sent"); if (!(b in from) || s < from[b]) from[b] = s }
        END { for (b in t) if (end[b] > from[b]) print t[b] / (end[b] - from[b]) }' | sort -g | tail -n 1
}
model_rate() { # FILE ARM: tokens per second of `bench model`
    sed -n "/\"arm\": *\"$2\"/s/.*\"tokens_s\": *\([^,}]*\).*/\1/p" "$out/$1" 2>/dev/null | head -n 1
}
percent() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { if (a > 0 && b > 0) printf "%.1f", 100 * a / b; else print "unknown" }'; }
check() { # VALUE at-least|at-most LIMIT: on a GPU, notes a limit that was missed
    [ "$device" = cuda ] || return 0
    awk -v x="$1" -v how="$2" -v y="$3" 'BEGIN { exit x == "unknown" || (how == "at-least" ? x < y : x > y) }' || bad=1
}

# ---- servers ----

# The memory of the device that is free, in MiB
free_mb() {
    mb=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | head -n 1)
    [ -n "$mb" ] || mb=$("$snapmla" info --json | awk '/"cuda"/ { found = 1 }
        found && /"memory_bytes"/ { gsub(/[^0-9]/, ""); print int($0 / 1048576); exit }')
    echo "${mb:-0}"
}
if [ -z "${CACHE_MB:-}" ]; then
    free=0
    [ "$device" != cuda ] || free=$(free_mb)
    CACHE_MB=$(((free - 2 * (weights + 4096)) / 2))
    [ $CACHE_MB -lt 8192 ] || CACHE_MB=8192
    [ $CACHE_MB -ge 256 ] || { say "a device with $free MiB of free memory is too small; set CACHE_MB" && exit 1; }
    say "free memory of the device: $free MiB; cache of each server: $CACHE_MB MiB"
fi
cache=$CACHE_MB

# serve NAME PRECISION PORT OPTION...: starts a server; its process id goes to $pids
serve() {
    name=$1 precision=$2 at=$3
    shift 3
    "$snapmla" serve --random-weights "$shape" --device "$device" --precision "$precision" --port "$at" \
        --cache-mb "$cache" --sequences "$streams" --max-queue 4096 --context $context \
        --served-model-name m --timeout 0 "$@" >"$out/logs/serve-$name.txt" 2>&1 &
    pids="$pids $!"
}
await() { # NAME: waits for the server that was started last under this name; fails if it ends
    waiting=${pids##* }
    for _ in $(seq 120); do
        grep -q '^serving' "$out/logs/serve-$1.txt" && return 0
        kill -0 "$waiting" 2>/dev/null || break
        sleep 1
    done
    say "the server $1 did not start:"
    cat "$out/logs/serve-$1.txt"
    return 1
}
finish() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill $pids 2>/dev/null
    # shellcheck disable=SC2086
    [ -z "$pids" ] || wait $pids 2>/dev/null
    pids=''
    bf16=''
}
trap finish EXIT
trap 'exit 1' INT TERM

# Starts both servers, unless they run. With too little memory, once more with half the cache.
both() {
    [ -z "$bf16" ] || return 0
    for _ in 1 2; do
        begun=$(date +%s)
        serve bf16 bf16 "$port"
        if await bf16 && serve fp8 fp8 $((port + 1)) && await fp8; then
            bf16="--arm bf16=http://127.0.0.1:$port/v1,model=m,precision=bf16"
            fp8="--arm fp8=http://127.0.0.1:$((port + 1))/v1,model=m,precision=fp8"
            arms="$bf16 $fp8"
            say "== servers: $(($(date +%s) - begun)) s; caches of $cache MiB"
            return 0
        fi
        finish
        cache=$((cache / 2))
    done
    exit 1
}

# ---- parts ----

run_closed() {
    [ "$device" != cuda ] || step steps 80 "$snapmla" bench model --model-config "$shape" --batch "$batch" \
        --context $((first + output * 9 / 8)) --out "$out/steps.json"
    both
    load decode 110 --concurrency "$batch" --requests "$batch" --blocks 2 --warmup 1 --input "$first" \
        --output $((2 * output))
    for arm in bf16 fp8; do
        served=$(decode_rate decode $arm) model=$(model_rate steps.json $arm)
        share=$(percent "$served" "$model")
        say "decode, $arm: $batch streams, ${served:-unknown} tokens/s; bench model: ${model:-not measured}; share: $share %"
        check "$share" at-least 90
    done
    n=$(echo "$inputs" | tr ',' '\n' | grep -c .)
    for input in $(echo "$inputs" | tr ',' ' '); do
        users=$((cache * ${FP8_TOKENS_MB:-60} / (input + output)))
        [ $users -ge 1 ] || users=1
        [ $users -le "$streams" ] || users=$streams
        seconds=22
        [ "$input" -lt 32768 ] || seconds=26
        [ "$input" -lt 65536 ] || seconds=45
        load "closed-$input" $(($(left) / n)) --concurrency $users --duration "$(scaled $seconds)" --warmup 1 \
            --drain "$(scaled 10)" --blocks 1 --input "$input" --output "$output" --slo tpot_p90=30ms
        n=$((n - 1))
        for arm in bf16 fp8; do
            say "closed loop, input $input, $users users, $arm: $(row "closed-$input" $arm '"kind": *"load"' output_tok_s) tokens/s," \
                "$(row "closed-$input" $arm '"kind": *"load"' requests_s) requests/s"
        done
    done
}

run_knee() {
    both
    n=$(echo "$inputs" | tr ',' '\n' | grep -c .)
    for input in $(echo "$inputs" | tr ',' ' '); do
        prefixes=$((cache * ${FP8_TOKENS_MB:-60} * 2 / 5 / input))
        [ $prefixes -ge 1 ] || prefixes=1
        [ $prefixes -le 3 ] || prefixes=3
        seconds=8
        [ "$input" -lt 65536 ] || seconds=16
        # p75 needs fewer requests in a block than p90; 5 s are for the result, computed after the time
        load "knee-$input" $(($(left) / n - 5)) --slo ttft_p75=500ms,tpot_p75=20ms \
            --search "${RATES:-rate:$((300000 / input + 1))-$((4800000 / input + 2))}" \
            --duration "$(scaled $seconds)" --drain "$(scaled 4)" --blocks 1 --warmup $((2 * prefixes)) \
            --prefix-share 1 --prefixes $prefixes --input "$input" --output $((output / 8))
        n=$((n - 1))
        for arm in bf16 fp8; do
            say "knee, input $input, $arm: from $(row "knee-$input" $arm '"kind": *"knee"' knee_lo) to" \
                "$(row "knee-$input" $arm '"kind": *"knee"' knee_hi) requests/s (unknown: not found)"
        done
    done
}

# fetch URL [BODY]: prints the answer to a GET or POST, with curl or else Python
fetch() {
    if command -v curl >/dev/null; then
        curl -s --max-time 60 ${2:+-d "$2"} "$1"
    else
        python3 -c 'import sys, urllib.request as u
print(u.urlopen(sys.argv[1], *(s.encode() for s in sys.argv[2:]), timeout=60).read().decode())' "$@"
    fi 2>/dev/null
}
# choices PORT: tokens per second of one request with as many choices as there are streams
choices() {
    body="{\"prompt\": \"$(printf '%064d' 0)\", \"n\": $streams, \"max_tokens\": $output, \"temperature\": 1, \"ignore_eos\": true}"
    from=$(date +%s.%N)
    tokens=$(fetch "http://127.0.0.1:$1/v1/completions" "$body" | sed 's/.*"completion_tokens": *\([0-9]*\).*/\1/' | tail -n 1)
    awk -v n="${tokens:-0}" -v s="$from" -v e="$(date +%s.%N)" 'BEGIN { if (n > 0) print n / (e - s) }'
}
# metrics PORT NAME: a time that the server measures: its sum and its number of values
metrics() {
    fetch "http://127.0.0.1:$1/metrics" | awk -v name="vllm:$2_seconds" '
        index($1, name "_sum") == 1 { s = $2 } index($1, name "_count") == 1 { n = $2 } END { print s + 0, n + 0 }'
}
# since "SUM COUNT" "SUM COUNT": the mean of the values between two calls of metrics, in ms
since() {
    echo "$1 $2" | awk '{ if ($4 > $2) printf "%.3f", 1e3 * ($3 - $1) / ($4 - $2); else print "unknown" }'
}

run_http() {
    both
    at=$port
    for arm in bf16 fp8; do
        case $arm in bf16) arms=$bf16 ;; fp8) arms=$fp8 ;; esac
        gaps0=$(metrics $at inter_token_latency)
        load "streams-$arm" 30 --concurrency "$streams" --requests "$streams" --blocks 2 --warmup 2 --prefix-share 1 \
            --input 64 --output "$output"
        gaps1=$(metrics $at inter_token_latency)
        alone=$(printf '%s\n%s\n' "$(choices $at)" "$(choices $at)" | sort -g | tail -n 1)
        # the files name a single arm, so its number is 0
        streamed=$(whole_rate "streams-$arm" bf16)
        share=$(percent "$streamed" "$alone")
        gaps2=$(metrics $at inter_token_latency)
        say "HTTP, $arm: mean gap between tokens in the server: $(since "$gaps0" "$gaps1") ms with $streams streams," \
            "$(since "$gaps1" "$gaps2") ms with one request"
        say "HTTP, $arm: $streams streams: ${streamed:-unknown} tokens/s; one request with $streams choices:" \
            "${alone:-unknown}; share: $share %"
        check "$share" at-least 95
        # the server's metrics also have the two requests that fit the length of prompts
        before=$(metrics $at time_to_first_token)
        load "ttft-$arm" 20 --concurrency 1 --requests 200 --blocks 1 --warmup 0 --input 512 --output 8
        after=$(metrics $at time_to_first_token)
        at=$((at + 1))
        client=$(requests "ttft-$arm" bf16 | awk "$awk_get"'
            get("first") > 0 { s += get("first") - get("sent"); n++ } END { if (n) print 1e3 * s / n; else print "unknown" }')
        cost=$(echo "$client $(since "$before" "$after")" |
            awk '{ if ($1 + 0 > 0 && $2 + 0 > 0) printf "%.3f", $1 - $2; else print "unknown" }')
        say "HTTP, $arm: time to the first token at the client minus that in the server: $cost ms"
        check "$cost" at-most 1
    done
    arms="$bf16 $fp8"
}

# The same short requests twice; the second time, a second client sends long prompts.
run_chunked() {
    finish
    for arm in fp8 bf16; do
        for how in chunks whole; do
            chunk=0
            [ $how = chunks ] || chunk=$((long + long / 16))
            serve $arm-$how $arm "$port" --chunk $chunk
            await $arm-$how || { finish && bad=1 && continue; }
            arms="--arm $arm=http://127.0.0.1:$port/v1,model=m,precision=$arm"
            load "quiet-$arm-$how" 14 --concurrency 4 --duration "$(scaled 6)" --blocks 1 --warmup 1 --input 256 --output "$output"
            (load "long-$arm-$how" 25 --rate "${LONG_RATE:-0.5}" --arrivals constant --duration "$(scaled 13)" \
                --drain "$(scaled 6)" --blocks 1 --warmup 0 --input "$long" --output 4) &
            beside=$!
            load "mixed-$arm-$how" 25 --concurrency 4 --duration "$(scaled 15)" --blocks 1 --warmup 1 --input 256 --output "$output"
            wait $beside
            finish
            itl='"kind": *"latency".*"metric": *"itl"'
            say "gaps between tokens, $arm, prompts in $how: alone p50 $(row "quiet-$arm-$how" $arm "$itl" p50_ms) ms," \
                "p99 $(row "quiet-$arm-$how" $arm "$itl" p99_ms) ms; while prompts of $long tokens arrive:" \
                "p50 $(row "mixed-$arm-$how" $arm "$itl" p50_ms) ms, p99 $(row "mixed-$arm-$how" $arm "$itl" p99_ms) ms"
        done
    done
}

total=0
for part in $parts; do
    case $part in closed) share=330 ;; knee) share=320 ;; http) share=50 ;; chunked) share=120 ;;
    *) echo "unknown part: $part" >&2 && exit 2 ;;
    esac
    total=$((total + share))
done
for part in $parts; do
    case $part in closed) share=330 ;; knee) share=320 ;; http) share=50 ;; *) share=120 ;; esac
    begin "$part" $share $total
    total=$((total - share))
    "run_$part"
done
exit $bad
