#!/bin/sh
# Measures `snapmla serve` under load on a machine with a GPU, in both precisions, with random weights.
#   gpu_serving.sh OUT [PART...]     PART: knee, open, http, client, chunked, decode, closed, users, graded, bodies;
#                                    default: the first seven
# It needs only the program, from a build tree or from a bundle of `make dist`, and for the part client
# also build/test/load_server. In the parts knee, open, http, decode, closed, users and graded, two servers share
# the device, one for each precision, with caches of the same size. Only one of them gets requests at any time.
# Results go to OUT: one folder or file for each step, logs in OUT/logs, OUT/summary.txt. Each step
# writes its results when it ends or when its time is over, so those of a script that was stopped are
# complete up to its last step. The seconds below are estimates for one H200 (see the notebook
# docs/lab/2026-11-24-serving-h200.md for the speeds they come from).
#
#   knee     Measures closed loops with several numbers of users, for each input length. The answers have 32
#            to 96 tokens. The highest number of users within the targets is the knee. A few loads with
#            many long blocks give more decided loads in the same time than a search does. The prompts are in the cache, so the
#            servers mostly decode, as in Figure 1 of the paper. There are so many prompts that the
#            second-level cache of the device does not hold them (48 of 8k, 12 of 32k, 2 of 128k). But users
#            with the same prompt can share reads (docs/lab/2026-11-30-knee-of-128k.md).
#            First comes a trial: each arm has one short block at four numbers of users. From the trial, the
#            script chooses two numbers of users for each arm: TPOT should be 5 % below the target with one, and
#            5 % above it with the other. Nearer numbers would give a narrower interval, but a load 1 % from
#            its target can stay undecided. Times: the prompts take 20 s (8k), 32 s (32k) or 40 s (128k), the trial 45 s, and
#            each number of users 110 s. So measure one length at a time, with LIMIT=570. A part that is
#            stopped keeps the loads that are complete.
#   open     The same in open loops: Poisson arrivals at a list of rates, so the number of users is not given.
#            The knee is the highest rate within the targets. If OUT has results of the part knee for this
#            length, they give the rates: 0.85 and 1.1 times the requests per second of each arm at its knee.
#            Blocks of 6 to 9 s decided few loads (docs/lab/2026-11-30-open-loops.md), so blocks should be longer.
#   http     256 streams against one request with 256 choices, which is the same work for the engine:
#            at most 5 % of the speed may be lost. The speeds are those between the first and the last
#            token (the server's own gaps between tokens), so the start does not count. Then the time
#            to the first token at the client minus that in the server: at most 1 ms. 80 s.
#   client   `bench serving` against servers that only send: 2,000 streams of somewhat more than 50 tokens per
#            second, one process on one core, the same with packets handled by other cores where that can be
#            chosen, then two processes. Answers have different lengths, and requests are sent for CLIENT_S
#            seconds, so most of that time is steady. It needs no GPU. 50 s for each of them.
#   chunked  gaps between tokens of CHUNK_USERS short requests while LONG_RATE long prompts arrive each second,
#            for several sizes of the chunks in which prompts are computed, and with each prompt in one step.
#            The sizes are measured CHUNK_TURNS times, in turns. 24 s for each size.
#   decode   a full batch on each server while it only decodes, against `bench model` without a server:
#            at least 90 % are expected. The sequences of the server can choose fewer different experts than
#            those of `bench model`. Then a step reads fewer weights. Therefore `bench model` also measures the same
#            model with fewer experts, of which its sequences choose as many as those of the server. 60 s.
#   closed   closed loops whose prompts all differ, with as many users as the FP8 cache of
#            CLOSED_CACHE_MB can hold. Most of the time goes into prompts. 190 s for 8k.
#   users    closed loops in which each user has a prompt of its own in the cache (`--prefixes 0`), with numbers of
#            users just below and above those whose prompts each cache can hold. 250 s for 32k.
#   graded   the highest number of users within the targets together with graded answers: the small model that
#            comes with the program answers problems of `snapmla synth`, with caches of GRADED_CACHE_MB, which
#            hold fewer sequences than there are users. 170 s.
#   bodies   gaps between tokens of 8 streams of the small model on the CPU, while two clients post bodies of 4 MB.
#            It needs no GPU, and at least 8 cores for a valid result. 75 s.
#
# Environment, with defaults for one H200:
#   SNAPMLA=build/snapmla LOAD_SERVER=build/test/load_server      the programs
#   DRY=1                      small numbers, on the CPU, to test this script (three minutes)
#   DEVICE=cuda                "cpu": `bench model` needs a GPU and is then left out
#   SHAPE=deepseek-v2-lite     a name in configs/models, or a config.json
#   WEIGHTS_MB=29950           size of its weights
#   CACHE_MB                   size of each server's cache; default: half of the memory that the weights
#                              and 5 GiB for each server leave, at most 32768
#   CLOSED_CACHE_MB=8192       the same in the part closed, so that the loads fill it within the time
#   FP8_TOKENS_MB=60 BF16_TOKENS_MB=34      tokens in 1 MiB of the caches
#   INPUTS=8192,32768,131072 CLOSED_INPUTS=8192 OUTPUT=512
#   LOADS                      numbers of users in the part knee, for example 130,160; default: from the trial
#   TRIAL                      numbers of users of the trial, and of the part knee if the trial fails;
#                              default: loads_of()
#   PREFIXES                   number of prompts in the parts knee and open, for example one for each user
#   RATES                      requests per second in the part open; default: near the
#                              knees of the part knee, or without its results from loads_of()
#   BLOCKS=3 BLOCK_S=15        blocks of each arm at each load of the parts knee and open, and the seconds of a
#                              block (times SCALE). More blocks and longer blocks give narrower intervals, and
#                              each load takes about BLOCKS * 2 * (BLOCK_S + 4) seconds.
#   SEARCH                     searches in the part knee instead, for example "concurrency:100-320 rate:60-220"
#   SEQUENCES=384 STREAMS=256 BATCH=16
#   CLIENT_STREAMS=2000 CLIENT_RATE=51.5 CLIENT_S=30 CLIENT_OUTPUT=uniform:250-750 CLIENT_TWO=1 (0: one process only)
#   LONG=32768 LONG_RATE=0.4 CHUNKS="256 512 1024 2048 whole" CHUNK_ARMS=fp8 CHUNK_USERS=4 CHUNK_S=16 CHUNK_TURNS=1
#   USERS                      numbers of users in the part users; default: from the sizes of the caches
#   GRADED_CACHE_MB=12 GRADED_USERS=8,10,12,14,17,20,24,29,35,42 GRADED_S=2 GRADED_LEVEL=2 GRADED_DEVICE=$DEVICE
#   GRADED_SLO                 targets of the part graded; default: from its trial
#   LIMIT                      seconds for everything; default: 570
#   SCALE=1                    factor of the times of single loads
# Exits with 1 if a step failed or a limit was missed.
set -u
out=${1:?usage: gpu_serving.sh OUT [knee|open|http|client|chunked|decode|closed|users|graded|bodies]...}
shift
parts=${*:-knee open http client chunked decode closed}
if [ -n "${DRY:-}" ]; then
    DEVICE=${DEVICE:-cpu} SHAPE=${SHAPE:-models/snapmla-10m/config.json} CACHE_MB=${CACHE_MB:-256}
    CLOSED_CACHE_MB=${CLOSED_CACHE_MB:-16} INPUTS=${INPUTS:-128,512} CLOSED_INPUTS=${CLOSED_INPUTS:-128}
    OUTPUT=${OUTPUT:-32} STREAMS=${STREAMS:-8} SEQUENCES=${SEQUENCES:-16} BATCH=${BATCH:-2} TRIAL=${TRIAL:-2,4}
    LONG=${LONG:-512} CHUNKS=${CHUNKS:-64 whole} SCALE=${SCALE:-0.15} CLIENT_STREAMS=${CLIENT_STREAMS:-100}
    TTFT_REQUESTS=${TTFT_REQUESTS:-10} LONG_RATE=${LONG_RATE:-3} CLIENT_S=${CLIENT_S:-6}
    CLIENT_OUTPUT=${CLIENT_OUTPUT:-uniform:50-150} USERS=${USERS:-2,4} GRADED_USERS=${GRADED_USERS:-2,4}
fi
snapmla=${SNAPMLA:-build/snapmla} load_server=${LOAD_SERVER:-build/test/load_server}
device=${DEVICE:-cuda} shape=${SHAPE:-deepseek-v2-lite} weights=${WEIGHTS_MB:-29950}
inputs=${INPUTS:-8192,32768,131072} closed_inputs=${CLOSED_INPUTS:-8192} output=${OUTPUT:-512}
batch=${BATCH:-16} long=${LONG:-32768} streams=${STREAMS:-256} sequences=${SEQUENCES:-384}
scale=${SCALE:-1} port=${PORT:-8100} clients=${CLIENT_STREAMS:-2000}
first=${inputs%%,*}
longest=$(echo "$inputs,$closed_inputs,$long" | tr ',' '\n' | sort -n | tail -n 1)
context=$((longest + longest / 20 + 4 * output + 2048))
bad=0 pids='' bf16='' fp8='' arms=''
end=$(($(date +%s) + ${LIMIT:-570})) part_end=0
mkdir -p "$out/logs"
say() { echo "$*" | tee -a "$out/summary.txt"; }
scaled() { awk -v a="$1" -v b="$scale" 'BEGIN { t = a * b; print t < 1 ? 1 : int(t) }'; }
left() { echo $((part_end - $(date +%s))); }
count() { echo "$1" | tr ',' '\n' | grep -c .; }

# The programs that send requests run on other cores than the servers, if there are enough cores. The
# cores are those that this script may use (taskset), which must be consecutive.
cores=$(nproc) on_servers='' on_clients=''
if [ "$cores" -ge 8 ] && command -v taskset >/dev/null; then
    lowest=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    on_servers="taskset -c $lowest-$((lowest + cores - 5))"
    on_clients="taskset -c $((lowest + cores - 4))-$((lowest + cores - 1))"
fi
on_core() { # NUMBER: the prefix of a command that uses one core only, counted from the last one
    [ -z "$on_servers" ] || echo "taskset -c $((lowest + cores - $1))"
}

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
    # shellcheck disable=SC2086 # lists of words
    step "$name" "$most" $on_clients "$snapmla" bench serving -q $arms --temperature 1 --gpus 1 --out "$out/$name" "$@"
    [ ! -f "$out/$name/run.json" ] ||
        "$snapmla" report "$out/$name" --format csv --out "$out/$name-report" >"$out/logs/$name-report.txt" 2>&1
}

# row RUN ARM PATTERN MEMBER: a number from run.json, whose rows are lines; of the last row with PATTERN
row() {
    sed -n "/\"arm\": *\"$2\"/{/$3/s/.*\"$4\": *\([^,}]*\).*/\1/p;}" "$out/$1/run.json" 2>/dev/null |
        awk '{ v = $1 } END { if (v == "" || v == "null") print "unknown"; else printf "%.4g\n", v }'
}
# interval RUN ARM PATTERN MEMBER: an interval of the last row of kind load with PATTERN, in brackets
interval() {
    sed -n "/\"arm\": *\"$2\"/{/\"kind\": *\"load\".*$3/s/.*\"$4\": *\[\([^]]*\)\].*/\1/p;}" "$out/$1/run.json" 2>/dev/null |
        awk -F, 'NF == 2 { v = sprintf("[%.4g, %.4g]", $1, $2) } END { print v == "" ? "(no interval)" : v }'
}
requests() { # RUN ARM: its lines of requests.jsonl
    number=0
    [ "$2" = bf16 ] || number=1
    grep "\"arm\": *${number}[,}]" "$out/$1/requests.jsonl" 2>/dev/null
}
awk_get='function get(key) { return match($0, "\"" key "\": *[0-9.e+-]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
function gaps(v,   s) { if (!match($0, /"gap_us": *\[[^]]*\]/)) return split("", v)
    s = substr($0, RSTART, RLENGTH); sub(/.*\[/, "", s); sub(/\]/, "", s); return split(s, v, ",") }'

# decode_rate RUN ARM: tokens per second from when all requests of a block decode until the first one
# ends; the median of the blocks
decode_rate() {
    requests "$1" "$2" | awk "$awk_get"'
        { b = get("block"); f = get("first"); e = f; n = gaps(v); r = ++k[b]; start[b, r] = f
          for (i = 1; i <= n; i++) { e += v[i] / 1e6; at[b, r, i] = e }
          last[b, r] = n; tokens[b] += get("completion_tokens"); pieces[b] += get("pieces")
          if (f > from[b]) from[b] = f
          if (!(b in to) || e < to[b]) to[b] = e }
        END { for (b in k) { c = 0
                  for (r = 1; r <= k[b]; r++)
                      for (i = 1; i <= last[b, r]; i++) c += at[b, r, i] > from[b] && at[b, r, i] <= to[b]
                  if (to[b] > from[b] && pieces[b]) print c / (to[b] - from[b]) * tokens[b] / pieces[b] } }' |
        sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}
# all_gaps RUN ARM: percentiles and maximum of all gaps between pieces, in ms, and the shares above 20 and 100 ms
all_gaps() {
    requests "$1" "$2" | awk "$awk_get"'{ n = gaps(v); for (i = 1; i <= n; i++) print v[i] / 1e3 }' | sort -g |
        awk '{ v[NR] = $1; if ($1 > 20) { above20++; sum20 += $1 } above100 += $1 > 100 } function q(p) { return v[int(p * (NR - 1)) + 1] }
            END { if (!NR) { print "unknown"; exit }
                printf "%d gaps, p50 %.2f, p90 %.2f, p99 %.2f, p99.9 %.2f, longest %.1f ms; above 20 ms: %.2f %% (mean %.1f ms), above 100 ms: %.2f %%\n",
                    NR, q(.5), q(.9), q(.99), q(.999), v[NR], 100 * above20 / NR, above20 ? sum20 / above20 : 0, 100 * above100 / NR }'
}
model_rate() { # FILE ARM: tokens per second of `bench model`
    sed -n "/\"arm\": *\"$2\"/s/.*\"tokens_s\": *\([^,}]*\).*/\1/p" "$out/$1" 2>/dev/null |
        awk 'NR == 1 { printf "%.2f\n", $1 }'
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
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
if [ -z "${CACHE_MB:-}" ]; then
    free=0
    [ "$device" != cuda ] || free=$(free_mb)
    CACHE_MB=$(((free - 2 * (weights + 5120)) / 2))
    [ $CACHE_MB -lt 32768 ] || CACHE_MB=32768
    [ $CACHE_MB -ge 256 ] || [ -z "$(echo "$parts" | tr ' ' '\n' | grep -v -x -e client -e bodies -e graded)" ] ||
        { say "a device with $free MiB of free memory is too small; set CACHE_MB" && exit 1; }
    say "device: ${gpu:-unknown}, $cores cores, free memory $free MiB; cache of each server: $CACHE_MB MiB"
fi
most_cache=$CACHE_MB cache=$CACHE_MB

# serve NAME PRECISION PORT OPTION...: starts a server; its process id goes to $pids
serve() {
    name=$1 precision=$2 at=$3
    shift 3
    # shellcheck disable=SC2086 # a list of words
    $on_servers "$snapmla" serve --random-weights "$shape" --device "$device" --precision "$precision" --port "$at" \
        --cache-mb "$cache" --sequences "$sequences" --max-queue 4096 --context $context \
        --served-model-name m --timeout 0 "$@" >"$out/logs/serve-$name.txt" 2>&1 &
    pids="$pids $!"
}
await() { # NAME: waits for the server that was started last under this name; fails if it ends
    waiting=${pids##* }
    for _ in $(seq 480); do
        grep -q '^serving' "$out/logs/serve-$1.txt" 2>/dev/null && return 0
        kill -0 "$waiting" 2>/dev/null || break
        sleep 0.25
    done
    say "the server $1 did not start:"
    cat "$out/logs/serve-$1.txt"
    return 1
}
finish() {
    [ ! -d "$out/client-steered" ] || steer 0
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill $pids 2>/dev/null
    # shellcheck disable=SC2086
    [ -z "$pids" ] || wait $pids 2>/dev/null
    pids=''
    bf16=''
}
trap finish EXIT
trap 'exit 1' INT TERM

# both CACHE: starts both servers, unless they already run with this cache. If there is too little memory,
# they are started again with half of this cache.
both() {
    [ -z "$bf16" ] || [ "$asked" != "$1" ] || return 0
    finish
    asked=$1 cache=$1
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

# ---- the parts knee, decode and closed ----

# say_loop NAME TITLE USERS: tokens and requests per second, and goodput, of both arms with this load,
# with their intervals
say_loop() {
    at="\"load\": *$3[.,]"
    for arm in bf16 fp8; do
        say "$2, $arm: $(row "$1" $arm "\"kind\": *\"load\".*$at" output_tok_s) tokens/s $(interval "$1" $arm "$at" output_tok_s_ci95)," \
            "$(row "$1" $arm "\"kind\": *\"load\".*$at" requests_s) requests/s, $(row "$1" $arm "\"kind\": *\"load\".*$at" goodput_s) within the targets," \
            "TPOT p50 $(row "$1" $arm "\"kind\": *\"latency\".*$at.*\"metric\": *\"tpot\"" p50_ms) ms"
    done
}

# knee_end RUN ARM MEMBER: one end of a knee
knee_end() { row "$1" "$2" '"kind": *"knee"' "$3" | sed 's/^unknown$/(not found)/'; }

# say_knee NAME INPUT: the knees of both arms, which are between two loads that were decided
say_knee() {
    for arm in bf16 fp8; do
        say "knee, input $2, $arm: from $(knee_end "$1" $arm knee_lo) to $(knee_end "$1" $arm knee_hi) $(unit_of "$1")"
    done
    headline=$(sed -n '/"kind": *"ratio"/s/.*"headline": *"\([^"]*\)".*/\1/p' "$out/$1/run.json" 2>/dev/null)
    say "knee, input $2: ${headline:-no ratio: the run has no result for both arms}"
}
unit_of() { case $1 in *-rate | open-*) echo requests/s ;; *) echo users ;; esac }

# loads_of INPUT: numbers of users below and above the knees of both precisions on one H200, as far from them as
# the targets need: the blocks of a load are few (docs/lab/2026-11-29-correlated-loads.md)
loads_of() {
    [ -z "${LOADS:-${TRIAL:-}}" ] || { echo "${LOADS:-$TRIAL}" && return; }
    case $1 in
    8192) echo 145,165,215,260 ;;
    32768) echo 48,58,80,95 ;;
    131072) echo 13,17,29,36 ;;
    *) echo "$1" | awk '{ n = 1200000 / $1; printf "%d,%d,%d,%d\n", n + 1, 1.25 * n + 2, 1.6 * n + 3, 2 * n + 4 }' ;;
    esac
}

# crossing: reads lines "USERS TPOT" of one arm, and prints two numbers of users: with the first, TPOT should be 5 % below
# the target, with the second 5 % above it. A straight line is fitted to all points (least squares). Two points alone can
# mislead: TPOT depends on the number of sequences in an irregular way, and 36 of them can be as fast as 29
# (docs/lab/2026-11-30-knee-of-128k.md). Points above twice the target are left out, because requests wait for each other
# there, and TPOT no longer rises linearly. Nothing is printed if TPOT does not rise with the number of users, or if a
# result is below half of the lowest or above twice the highest number.
crossing() {
    sort -n | awk -v target=$tpot_ms '
        $2 + 0 > 0 && $2 <= 2 * target { u[++n] = $1; su += $1; st += $2; suu += $1 * $1; sut += $1 * $2 }
        END {
            spread = n * suu - su * su
            if (n < 2 || spread <= 0) exit
            slope = (n * sut - su * st) / spread
            if (slope <= 0) exit
            low = su / n + (0.95 * target - st / n) / slope
            high = su / n + (1.05 * target - st / n) / slope
            if (low < u[1] / 2 || high < u[1] / 2 || low > 2 * u[n] || high > 2 * u[n]) exit
            low = low < 1 ? 1 : int(low); high = int(high) + (high > int(high))
            if (high <= low) high = low + 1
            print low; print high
        }'
}

# tpots NAME ARM USERS...: lines for crossing, from the results of a run
tpots() {
    run=$1 arm=$2
    shift 2
    for number; do
        echo "$number $(row "$run" "$arm" "\"kind\": *\"latency\".*\"load\": *${number}[.,].*\"metric\": *\"tpot\"" p50_ms)"
    done
}

# trial INPUT SECONDS: measures some numbers of users briefly, and chooses those of the part knee, which go to $users.
# They are those of loads_of() if the trial fails. With LOADS there is no trial. SCALE does not shorten the
# trial, because a median needs 10 complete requests, and short blocks have fewer.
trial() {
    users=$(loads_of "$1") chosen=''
    [ -z "${LOADS:-}" ] || return 0
    # shellcheck disable=SC2086
    load "trial-$1" "$2" --concurrency "$users" --duration 4 --drain 1 --blocks 1 --warmup 8 \
        $shared --output $lengths
    for arm in bf16 fp8; do
        # shellcheck disable=SC2046 # a list of numbers
        lines=$(tpots "trial-$1" $arm $(echo "$users" | tr ',' ' '))
        say "trial, input $1, $arm: users and TPOT p50 in ms: $(echo "$lines" | paste -sd ',' -)"
        near=$(echo "$lines" | crossing)
        [ -n "$near" ] || { say "trial, input $1: no crossing of $arm was found, so users: $users" && return; }
        chosen="$chosen $near"
    done
    # shellcheck disable=SC2086 # a list of numbers
    users=$(printf '%s\n' $chosen | sort -nu | paste -sd ',' -)
    say "trial, input $1: users near a TPOT of $tpot_ms ms: $users"
}

# rates_at_knee INPUT: rates below and above the knees that the part knee found in the same folder. The last
# line is "unknown" if it did not find the knees of both precisions.
rates_at_knee() {
    for arm in bf16 fp8; do
        low=$(row "knee-$1" $arm '"kind": *"knee"' knee_lo)
        row "knee-$1" $arm "\"kind\": *\"load\".*\"load\": *${low}[.,]" requests_s
    done | awk '$1 + 0 > 0 { print 0.85 * $1; print 1.1 * $1; n++ } END { exit n < 2 }' || echo unknown
}

# rates_of INPUT: rates below and above the knees of both precisions. Without results of the part knee, they come from
# the numbers of users of loads_of(). At 20 ms for each token, an answer of 64 tokens takes 1.28 s, so N users send
# N / 1.28 requests per second
rates_of() {
    [ -z "${RATES:-}" ] || { echo "$RATES" && return; }
    rates=$(rates_at_knee "$1")
    case $rates in *unknown*) rates=$(loads_of "$1" | tr ',' '\n' | awk '{ print $1 / 1.28 }') ;; esac
    # Multiples of 0.25 have the same digits in run.json, where say_loop finds them.
    echo "$rates" | awk '{ r = int(4 * $1 + 0.5) / 4; print (r > 0 ? r : 0.25) }' | sort -gu | paste -sd ',' -
}

# search INPUT RANGE SECONDS: the knees of both arms in this range, of rates or of numbers of users
search() {
    # 6 s are kept for the result, which is computed after the search has ended
    # shellcheck disable=SC2086
    load "knee-$1-${2%%:*}" $(($3 - 6)) --slo $targets --search "$2" --duration "$(scaled 10)" --drain "$(scaled 4)" --blocks 2 \
        --warmup 8 $shared --output $lengths
    say_knee "knee-$1-${2%%:*}" "$1"
}

# prompts PART INPUT: computes the prompts of this length. They go to $shared, as options of `bench serving`, and
# their number to $prefixes
prompts() {
    prefixes=$((cache * ${BF16_TOKENS_MB:-34} * 3 / 5 / $2))
    most=$((393216 / $2))
    [ "$2" -lt 131072 ] || most=2
    [ $prefixes -le $most ] || prefixes=$most
    [ $prefixes -ge 1 ] || prefixes=1
    [ -z "${PREFIXES:-}" ] || prefixes=$PREFIXES
    shared="--prefix-share 1 --prefixes $prefixes --input $2"
    # Of 5 * N random choices among N prompts, all but 1 % are chosen.
    # shellcheck disable=SC2086 # a list of options
    load "prompts-$1-$2" 120 --concurrency "$prefixes" --requests $((5 * prefixes)) --blocks 1 --warmup 0 \
        $shared --output 1
}

# loops PART INPUT SECONDS: closed loops of $users (knee) or open loops (open) of this input length
loops() {
    case $1 in
    knee) kind=closed option=--concurrency of=users list=$users ;;
    open) kind=open option=--rate of=requests/s list=$(rates_of "$2") ;;
    esac
    say "$1, input $2: $of: $list"
    # shellcheck disable=SC2086
    load "$1-$2" "$3" $option "$list" --duration "$(scaled "${BLOCK_S:-15}")" --drain "$(scaled 3)" \
        --blocks "${BLOCKS:-3}" --warmup 8 $shared --output $lengths --slo $targets
    for number in $(echo "$list" | tr ',' ' '); do
        say_loop "$1-$2" "$kind loop, $prefixes prompts of $2 tokens in the cache, $number $of" "$number"
    done
    say_knee "$1-$2" "$2"
}

# knees PART: all input lengths
knees() {
    both "$most_cache"
    n=$(count "$inputs")
    tpot_ms=20
    targets=ttft_p75=500ms,tpot_p75=${tpot_ms}ms # p75 needs fewer requests in a block than p90
    # Drawn lengths: with equal ones, all users begin and end in the same steps.
    lengths=uniform:$((output / 16))-$((3 * output / 16))
    for input in $(echo "$inputs" | tr ',' ' '); do
        input_end=$(($(date +%s) + $(left) / n))
        n=$((n - 1))
        prompts "$1" "$input"
        if [ "$1" = open ] || [ -z "${SEARCH:-}" ]; then
            [ "$1" = open ] || trial "$input" $(((input_end - $(date +%s)) / 3))
            loops "$1" "$input" $((input_end - $(date +%s) - 6))
            continue
        fi
        input_left=$((input_end - $(date +%s)))
        for range in $SEARCH; do
            search "$input" "$range" $((input_left / $(echo "$SEARCH" | wc -w)))
        done
    done
}
run_knee() { knees knee; }
run_open() { knees open; }

# matched_experts EXPERTS: the number of routed experts of a model in which $batch sequences that choose at random
# choose so many different ones in the mean
matched_experts() {
    awk -v chosen="$1" -v batch="$batch" -v each="$(shape_number num_experts_per_tok)" -v most="$(shape_number n_routed_experts)" '
        function used(n) { return n * (1 - (1 - each / n) ^ batch) }
        BEGIN { for (n = each + 1; n < most && used(n + 0.5) < chosen; n++) { } print n }'
}
# The file of the model's shape, which may be the name of a file in configs/models.
shape_file() {
    for file in "$shape" "configs/models/$shape.json" "$(dirname "$snapmla")/../share/snapmla/configs/models/$shape.json"; do
        [ -f "$file" ] && echo "$file" && return
    done
}
shape_number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$(shape_file)" | head -n 1; }
bench_model() { # NAME SHAPE CONTEXT
    step "$1" 80 "$snapmla" bench model --model-config "$2" --batch "$batch" --context "$3" --out "$out/$1.json"
}

# One arm: computes the prompts, so that they are in the cache, and then decodes. $experts is set.
decode_arm() { # ARM PORT
    one="--concurrency $batch --requests $batch --blocks 1 --warmup 0 --input $first"
    # shellcheck disable=SC2086 # a list of options
    load "decode-prompts-$1" 60 $one --output 1
    before=$(engine_times "$2")
    # shellcheck disable=SC2086
    load "decode-$1" 60 $one --output $((2 * output))
    after=$(engine_times "$2")
    experts=$(printf '%s\n%s\n' "$before" "$after" | awk '{ l = $8 - l; e = $9 - e } END { if (l > 0) printf "%.1f", e / l }')
    say "decode, $1: $(step_parts "$before" "$after")"
}

run_decode() {
    both "${CLOSED_CACHE_MB:-8192}"
    at=$port wanted=''
    for arm in bf16 fp8; do
        case $arm in bf16) arms=$bf16 ;; fp8) arms=$fp8 ;; esac
        decode_arm $arm $at
        wanted="$wanted ${experts:-0}"
        at=$((at + 1))
    done
    finish # bench model needs the memory of the device
    # the file names a single arm, so its number is 0
    tokens=$(row decode-bf16 bf16 '"kind": *"load"' prompt_tokens_mean)
    [ "$tokens" != unknown ] || tokens=$first
    context=$(awk -v p="$tokens" -v n="$output" 'BEGIN { print int(p + n) }') # in the middle of the answers
    [ "$device" != cuda ] || bench_model steps "$shape" "$context"
    # shellcheck disable=SC2086 # two numbers
    set -- $wanted
    for arm in bf16 fp8; do
        routed=$(matched_experts "$1")
        sed "s/\(\"n_routed_experts\": *\)[0-9]*/\1$routed/" "$(shape_file)" >"$out/shape-$arm.json"
        [ "$device" != cuda ] || bench_model "steps-$arm" "$out/shape-$arm.json" "$context"
        served=$(decode_rate "decode-$arm" bf16) model=$(model_rate steps.json $arm) same=$(model_rate "steps-$arm.json" $arm)
        share=$(percent "$served" "$same")
        say "decode, $arm: $batch streams, ${served:-unknown} tokens/s with $1 experts of a layer in use;" \
            "bench model at $context tokens: ${model:-not measured} with $(shape_number n_routed_experts) experts, of which it reads more;" \
            "${same:-not measured} with $routed experts, of which it reads about as many; share of the latter: $share %"
        check "$share" at-least 90
        shift
    done
}

run_closed() {
    both "${CLOSED_CACHE_MB:-8192}"
    n=$(count "$closed_inputs")
    for input in $(echo "$closed_inputs" | tr ',' ' '); do
        users=$((cache * ${FP8_TOKENS_MB:-60} / (input + output)))
        [ $users -ge 1 ] || users=1
        [ $users -le "$streams" ] || users=$streams
        seconds=32
        [ "$input" -lt 65536 ] || seconds=60
        load "closed-$input" $(($(left) / n)) --concurrency $users --duration "$(scaled $seconds)" --warmup 1 \
            --drain "$(scaled 16)" --blocks 2 --input "$input" --output "$output" --slo tpot_p90=30ms
        n=$((n - 1))
        say_loop "closed-$input" "closed loop, different prompts of $input tokens, $users users" "$users"
    done
}

# ---- the part http ----

# fetch URL [BODY]: prints the answer to a GET or POST, with curl or else Python
fetch() {
    if command -v curl >/dev/null; then
        curl -s --max-time 60 ${2:+-d "$2"} "$1"
    else
        python3 -c 'import sys, urllib.request as u
print(u.urlopen(sys.argv[1], *(s.encode() for s in sys.argv[2:]), timeout=60).read().decode())' "$@"
    fi 2>/dev/null
}
# The prompt of the streams: what `bench serving` sends with --input 64 --prefix-share 1, because the
# tokenizer of random weights has one token for each byte. Sequences with the same prompt choose
# similar experts, and how similar depends on the prompt. So one request with many choices is the same
# work only with this prompt.
stream_prompt='Text others land member piece war place price lot month music industry'
# choices PORT TOKENS: one request with as many choices as there are streams
choices() {
    fetch "http://127.0.0.1:$1/v1/chat/completions" "{\"messages\": [{\"role\": \"user\", \"content\": \"$stream_prompt\"}], \"n\": $streams, \"max_tokens\": $2, \"temperature\": 1, \"ignore_eos\": true}" |
        sed 's/.*"completion_tokens": *\([0-9]*\).*/one request: \1 tokens/' | tail -n 1
}
# metrics PORT NAME: a time that the server measures: its sum and its number of values
metrics() {
    fetch "http://127.0.0.1:$1/metrics" | awk -v name="vllm:$2_seconds" '
        index($1, name "_sum") == 1 { s = $2 } index($1, name "_count") == 1 { n = $2 } END { print s + 0, n + 0 }'
}
# since "SUM COUNT" "SUM COUNT": the mean of the values between two calls of metrics, in ms
since() {
    echo "$1 $2" | awk '{ if ($4 > $2) printf "%.4f", 1e3 * ($3 - $1) / ($4 - $2); else print "unknown" }'
}
# engine_times PORT: sums of the engine so far: steps; seconds with work; those in the model, those of
# them in which work was started, graphs were recorded, and results were awaited; recorded steps; layers
# and experts counted; tokens of prompts, and those that were in the cache
engine_times() {
    fetch "http://127.0.0.1:$1/metrics" | awk '/^(snapmla:(engine|model)|vllm:prefix)_/ { sub(/{.*/, "", $1); sub(/^[a-z]*:/, "", $1); v[$1] = $2 }
        END { print v["engine_steps_total"] + 0, v["engine_busy_seconds_total"] + 0, v["engine_model_seconds_total"] + 0,
            v["model_launch_seconds_total"] + 0, v["model_record_seconds_total"] + 0, v["model_wait_seconds_total"] + 0,
            v["model_recorded_total"] + 0, v["model_layers_total"] + 0, v["model_experts_total"] + 0,
            v["prefix_cache_queries_total"] + 0, v["prefix_cache_hits_total"] + 0 }'
}
# step_parts BEFORE AFTER: the mean time of the parts of a step, and the mean number of experts of a
# layer, between two calls of engine_times. The two requests that fit the lengths of prompts are in it.
step_parts() {
    printf '%s\n%s\n' "$1" "$2" | awk '{ for (i = 1; i <= NF; i++) d[i] = $i - d[i] }
        function ms(x) { return sprintf("%.3f", 1e3 * x / d[1]) }
        END { if (!(d[1] > 0)) { print "no steps"; exit }
            printf "%d steps of %s ms in the model (launch %s, of this %s for %d recordings; wait %s) and %s ms outside", d[1], ms(d[3]),
                ms(d[4]), ms(d[5]), d[7], ms(d[6]), ms(d[2] - d[3])
            if (d[8] > 0) printf "; %.1f experts of a layer in use", d[9] / d[8]
            if (d[10] > d[11]) printf "; %d tokens of prompts were not in the cache", d[10] - d[11] }'
}
# threads PID: the processor time of each thread so far, in ticks; and the time now
threads() {
    echo "now $(date +%s.%N)"
    cat /proc/"$1"/task/[0-9]*/stat 2>/dev/null | sed 's/^\([0-9]*\) (.*) /\1 /' | awk '{ print $1, $12 + $13 }'
}
# busiest PID BEFORE AFTER: the cores that the thread of HTTP (the first thread) and the busiest other
# thread have used between two calls of threads
busiest() {
    { echo "$2" | sed 's/^/a /' && echo "$3" | sed 's/^/b /'; } | awk -v main="$1" -v hz="$(getconf CLK_TCK)" '
        $1 == "a" { a[$2] = $3 } $1 == "b" { d[$2] = $3 - a[$2] }
        END { t = d["now"] * hz; for (k in d) if (k != "now" && k != main && d[k] > best) best = d[k]
              if (t > 0) printf "HTTP thread %.2f cores, busiest other thread %.2f", d[main] / t, best / t }'
}
# measure NAME PID PORT COMMAND...: says the speed of the server while the command runs; it goes to $rate
measure() {
    name=$1 pid=$2 at=$3
    shift 3
    gaps0=$(metrics "$at" inter_token_latency) engine0=$(engine_times "$at") cpu0=$(threads "$pid")
    "$@" >"$out/logs/$name-command.txt" 2>&1
    cpu1=$(threads "$pid") engine1=$(engine_times "$at") gaps1=$(metrics "$at" inter_token_latency)
    gap=$(since "$gaps0" "$gaps1")
    rate=$(awk -v n="$streams" -v g="$gap" 'BEGIN { if (g + 0 > 0) printf "%.1f", 1e3 * n / g; else print "unknown" }')
    say "HTTP, $name: mean gap in the server $gap ms, so $rate tokens/s; $(step_parts "$engine0" "$engine1"); $(busiest "$pid" "$cpu0" "$cpu1")"
}

run_http() {
    both "$most_cache"
    at=$port
    # shellcheck disable=SC2086 # two numbers
    set -- $pids
    for arm in bf16 fp8; do
        case $arm in bf16) arms=$bf16 ;; fp8) arms=$fp8 ;; esac
        one="--concurrency $streams --requests $streams --blocks 1 --warmup 0 --prefix-share 1 --input 64"
        # Computes the prompt, and records the step of this number of sequences.
        # shellcheck disable=SC2086
        load "warm-$arm" 60 $one --output 8
        one="$one --output $output"
        # shellcheck disable=SC2086
        measure "streams-1-$arm" "$1" $at load "streams-1-$arm" 60 $one && a=$rate
        measure "choices-1-$arm" "$1" $at choices $at "$output" && b=$rate
        measure "choices-2-$arm" "$1" $at choices $at "$output" && c=$rate
        # shellcheck disable=SC2086
        measure "streams-2-$arm" "$1" $at load "streams-2-$arm" 60 $one && d=$rate
        share=$(awk -v a="$a" -v b="$b" -v c="$c" -v d="$d" 'BEGIN { if (a + 0 > 0 && b + 0 > 0 && c + 0 > 0 && d + 0 > 0) printf "%.1f", 100 * (a + d) / (b + c); else print "unknown" }')
        # the files name a single arm, so its number is 0
        say "HTTP, $arm: $streams streams have $share % of the speed of one request with $streams choices;" \
            "at the client: $(decode_rate "streams-1-$arm" bf16), $(decode_rate "streams-2-$arm" bf16) tokens/s"
        check "$share" at-least 95
        # the server's metrics also have the two requests that fit the length of prompts
        before=$(metrics $at time_to_first_token)
        load "ttft-$arm" 20 --concurrency 1 --requests "${TTFT_REQUESTS:-100}" --blocks 1 --warmup 0 --input 512 --output 8
        after=$(metrics $at time_to_first_token)
        at=$((at + 1))
        shift
        client=$(requests "ttft-$arm" bf16 | awk "$awk_get"'
            get("first") > 0 { s += get("first") - get("sent"); n++ } END { if (n) print 1e3 * s / n; else print "unknown" }')
        cost=$(echo "$client $(since "$before" "$after")" |
            awk '{ if ($1 + 0 > 0 && $2 + 0 > 0) printf "%.3f", $1 - $2; else print "unknown" }')
        say "HTTP, $arm: time to the first token at the client minus that in the server: $cost ms"
        check "$cost" at-most 1
    done
    arms="$bf16 $fp8"
}

# ---- the part client ----

# watch PID NAME: waits for the client NAME, then prints its largest memory (MiB) until the block had ended, that with
# the computation of the result, and its processor time (s)
watch() {
    while kill -0 "$1" 2>/dev/null; do
        memory=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$1/status" 2>/dev/null)
        ticks=$(sed 's/^[0-9]* (.*) //' "/proc/$1/stat" 2>/dev/null | awk '{ print $12 + $13 }')
        [ -z "$memory" ] || last_memory=$memory
        [ -z "$ticks" ] || last_ticks=$ticks
        grep -q 'lag of all events' "$out/$2/log" 2>/dev/null || block_memory=${last_memory:-0}
        sleep 0.1
    done
    echo "$((${block_memory:-0} / 1024)) MiB until the block had ended, $((${last_memory:-0} / 1024)) MiB with the result;" \
        "$(awk -v t="${last_ticks:-0}" -v hz="$(getconf CLK_TCK)" 'BEGIN { print t / hz }') s of processor time"
}
# client NAME CORE URLS OPTION...: starts a client on one core in the background; its pid goes to $client_pid. The
# answers have different lengths. With equal ones, all streams would end at the same time.
client() {
    name=$1 core=$2 urls=$3
    shift 3
    # shellcheck disable=SC2046 # a list of words, or nothing
    timeout -s INT -k 10 $((2 * client_s + 60)) $(on_core "$core") "$snapmla" bench serving -q --arm "a=$urls,model=m" \
        --concurrency "$clients" --duration "$client_s" --output "${CLIENT_OUTPUT:-uniform:250-750}" --input 20 --blocks 1 \
        --warmup 0 --drain 30 --out "$out/$name" "$@" >"$out/logs/$name.txt" 2>&1 &
    client_pid=$!
    pids="$pids $client_pid"
}
# inner PID: the program that timeout has started
inner() {
    sleep 0.3
    child=$(cat "/proc/$1/task/$1/children" 2>/dev/null)
    [ -n "$child" ] || child=$(ps -o pid= --ppid "$1" 2>/dev/null)
    echo "${child:-$1}" | awk '{ print $1 }'
}
# steer MASK: the processors that handle the packets of the loopback, as a hexadecimal number. Fails if
# they cannot be chosen here.
steer() { for queue in /sys/class/net/lo/queues/rx-*/rps_cpus; do
    (echo "$1" >"$queue") 2>/dev/null || return 1
done; }
# event_rate RUN FROM TO: events per second that arrived between two times of the block
event_rate() {
    requests "$1" bf16 | awk -v from="$2" -v to="$3" "$awk_get"'{ t = get("first"); c += t >= from && t < to; n = gaps(v)
        for (i = 1; i <= n; i++) { t += v[i] / 1e6; c += t >= from && t < to } } END { printf "%.0f", c / (to - from) }'
}
say_client() { # NAME
    ! grep -q 'lag of all events' "$out/$1/log" 2>/dev/null || say "client, $1: $(sed -n 's/.*\(lag of all events.*\)/\1/p' "$out/$1/log" 2>/dev/null | tail -n 1);" \
        "$(requests "$1" bf16 | awk "$awk_get"'{ p += get("pieces"); e = get("end"); f = get("first"); if (e > end) end = e
            if (!from || f < from) from = f } END { if (end > from) printf "%d events in %.2f s with start and end", p, end - from }')"
    lag=$(row "$1" a '"kind": *"load"' lag_p99_ms) # the result of one of several parts has no such row
    [ "$lag" != unknown ] || return 0
    window=$(row "$1" a '"kind": *"load"' window_s)
    say "client, $1: $(event_rate "$1" "$(awk -v t="$client_s" -v w="$window" 'BEGIN { print t - w }')" "$client_s") events/s" \
        "in the steady window, the last $window s in which requests were sent; lag of the recorded times, largest of each request: p99 $lag ms"
}

run_client() {
    finish
    urls='' servers='' client_s=${CLIENT_S:-30}
    # Each server sends half of the events.
    for i in 1 2; do
        # shellcheck disable=SC2046
        $(on_core $((4 + i))) "$load_server" --rate "${CLIENT_RATE:-51.5}" --port $((port + 10 + i)) >"$out/logs/load-server-$i.txt" 2>&1 &
        pids="$pids $!" servers="$servers $!"
        urls="$urls${urls:+|}http://127.0.0.1:$((port + 10 + i))/v1"
    done
    sleep 0.5
    client client-one 1 "$urls"
    say "client, one process: largest memory and time: $(watch "$(inner "$client_pid")" client-one)"
    wait "$client_pid" || { bad=1 && tail -n 3 "$out/logs/client-one.txt"; }
    say_client client-one
    # On the loopback, the kernel handles the acknowledgements for the servers in the client's time. With a
    # server on another machine it does not.
    if [ -n "$on_servers" ] && steer "$(printf '%x' $((3 << (cores - 6))))"; then
        client client-steered 1 "$urls"
        say "client, one process, packets handled on the servers' cores: largest memory and time: $(watch "$(inner "$client_pid")" client-steered)"
        wait "$client_pid" || { bad=1 && tail -n 3 "$out/logs/client-steered.txt"; }
        say_client client-steered
        steer 0
    fi
    [ "${CLIENT_TWO:-1}" = 0 ] || two_clients
    # shellcheck disable=SC2086 # a list of numbers
    kill $servers 2>/dev/null
    # shellcheck disable=SC2086
    wait $servers 2>/dev/null
    say "the servers of the client: $(tail -q -n 1 "$out"/logs/load-server-*.txt | tr '\n' ';')"
    pids=''
}
two_clients() {
    client client-1 1 "$urls" --part 1/2 --meet "127.0.0.1:$((port + 20))"
    part_1=$client_pid
    client client-2 2 "$urls" --part 2/2 --meet "127.0.0.1:$((port + 20))"
    say "client, part 2 of 2: largest memory and time: $(watch "$(inner "$client_pid")" client-2)"
    wait "$client_pid" || { bad=1 && tail -n 3 "$out/logs/client-2.txt"; }
    wait "$part_1" || { bad=1 && tail -n 3 "$out/logs/client-1.txt"; }
    say_client client-1
    say_client client-2
    step client-merged 30 "$snapmla" merge "$out/client-1" "$out/client-2" --out "$out/client-merged"
    say_client client-merged
}

# ---- the part chunked ----

# long_prompts RUN: of the long prompts, those whose first token came while prompts arrived, in tokens per second; and
# the time to it
long_prompts() {
    requests "$1" bf16 | awk "$awk_get"'{ if (get("sent") > last) last = get("sent") }
        get("first") > 0 { s += get("first") - get("sent"); n++; at[n] = get("first"); tokens[n] = get("prompt_tokens") }
        END { for (i = 1; i <= n; i++) if (at[i] <= last) t += tokens[i]
            if (n && last > 0) printf "%.0f prompt tokens/s, first token of a long prompt after %.2f s (mean of %d of %d)", t / last, s / n, n, NR
            else print "no first token of a long prompt" }'
}

# chunks ARM SIZE TURN: short requests, while a second client sends long prompts
chunks() {
    size=$2 chunk_run=$1-$2-$3
    [ "$size" != whole ] || size=$((long + long / 16))
    cache=${CLOSED_CACHE_MB:-8192}
    serve "$chunk_run" "$1" "$port" --chunk "$size"
    await "$chunk_run" || { finish && bad=1 && return; }
    arms="--arm $1=http://127.0.0.1:$port/v1,model=m,precision=$1"
    chunk_s=$(scaled "${CHUNK_S:-16}")
    short="--concurrency ${CHUNK_USERS:-4} --blocks 1 --warmup 1 --input 256 --output $((output / 2))"
    # shellcheck disable=SC2086 # a list of options
    [ -d "$out/quiet-$1" ] || load "quiet-$1" 14 $short --duration "$(scaled 6)"
    # Long prompts arrive for 2 s longer than the short requests are sent, so that these end beside them.
    (load "long-$chunk_run" $((chunk_s + 20)) --rate "${LONG_RATE:-0.4}" --arrivals constant --duration $((chunk_s + 2)) \
        --drain "$(scaled 4)" --blocks 1 --warmup 0 --input "$long" --output 4) &
    beside=$!
    # shellcheck disable=SC2086
    load "mixed-$chunk_run" $((chunk_s + 20)) $short --duration "$chunk_s" --drain "$(scaled 4)"
    wait $beside
    finish
    # the files name a single arm, so its number is 0
    say "gaps between tokens, $1, chunks: $2, turn $3: $(all_gaps "mixed-$chunk_run" bf16);" \
        "$(requests "mixed-$chunk_run" bf16 | awk "$awk_get"'{ p += get("pieces"); e = get("first"); n = gaps(v); for (i = 1; i <= n; i++) e += v[i] / 1e6
            if (e > end) end = e } END { if (end) printf "%.0f tokens/s", p / end }'), $(long_prompts "long-$chunk_run")"
}

# The same requests for each size of chunks. Turn 2 has the sizes in the reverse order, and so on.
run_chunked() {
    finish
    order=${CHUNKS:-256 512 1024 2048 whole}
    for turn in $(seq "${CHUNK_TURNS:-1}"); do
        for chunk in $order; do
            for arm in ${CHUNK_ARMS:-fp8}; do
                chunks "$arm" "$chunk" "$turn"
            done
        done
        order=$(echo "$order" | awk '{ for (i = NF; i; i--) printf "%s ", $i }')
    done
    for arm in ${CHUNK_ARMS:-fp8}; do
        say "gaps between tokens, $arm, no long prompts: $(all_gaps "quiet-$arm" bf16)"
    done
}

# ---- the part users ----

# users_in CACHE_TOKENS INPUT: how many users with prompts of this length the cache can hold, with their answers. The
# lengths that servers report are up to 2 % above those that are asked for.
users_in() { awk -v c="$1" -v p="$2" -v o="$output" 'BEGIN { n = int(c / (1.02 * p + o / 2 + 128)); print n < 1 ? 1 : n }'; }

run_users() {
    both "$most_cache"
    tpot_ms=20
    targets=ttft_p75=500ms,tpot_p75=${tpot_ms}ms
    # Lengths that differ less than those of the part knee: then fewer requests in flight have the same prompt.
    lengths=uniform:$((output * 3 / 32))-$((output * 5 / 32))
    n=$(count "$inputs")
    for input in $(echo "$inputs" | tr ',' ' '); do
        input_end=$(($(date +%s) + $(left) / n))
        n=$((n - 1))
        low=$(users_in $((cache * ${BF16_TOKENS_MB:-33})) "$input") high=$(users_in $((cache * ${FP8_TOKENS_MB:-58})) "$input")
        list=${USERS:-$low,$((low + 4)),$high,$((high + 4))}
        say "users, input $input: the caches hold the prompts of about $low (BF16) and $high (FP8) users; measured: $list"
        shared="--prefix-share 1 --prefixes 0 --input $input"
        # Each cache gets as many prompts as it can hold before the first load.
        for arm in bf16 fp8; do
            case $arm in bf16) arms=$bf16 fill=$low ;; fp8) arms=$fp8 fill=$high ;; esac
            # shellcheck disable=SC2086 # a list of options
            load "prompts-users-$input-$arm" 90 --concurrency "$fill" --requests "$fill" --blocks 1 --warmup 0 $shared --output 1
        done
        arms="$bf16 $fp8"
        # shellcheck disable=SC2086
        load "users-$input" $((input_end - $(date +%s) - 6)) --concurrency "$list" --duration "$(scaled "${BLOCK_S:-8}")" \
            --drain "$(scaled 2)" --blocks "${BLOCKS:-3}" --warmup 0 $shared --output $lengths --slo $targets
        for number in $(echo "$list" | tr ',' ' '); do
            say_loop "users-$input" "closed loop, a prompt of $input tokens for each user, $number users" "$number"
        done
        say_knee "users-$input" "$input"
    done
}

# ---- the part graded ----

# graded NAME SECONDS OPTION...: problems whose answers are graded
graded() {
    name_of_run=$1 most=$2
    shift 2
    # shellcheck disable=SC2086 # lists of words
    step "$name_of_run" "$most" $on_clients "$snapmla" bench serving -q $arms --out "$out/$name_of_run" --prompts task:synth_aime \
        --data "$out/problems.jsonl" --grade --margin 2 --temperature 1 --max-tokens 600 --warmup 4 --drain 5 "$@"
}

# The caches are so small that they limit the number of sequences that are decoded at once. With larger ones, steps of
# this small model would be limited by something else, which both precisions have in common. The target of TPOT is 1.5
# times that of BF16 in a trial with the smallest number of users.
run_graded() {
    finish
    "$snapmla" synth -q --style aime --level "${GRADED_LEVEL:-2}" --count 2000 --out "$out/problems.jsonl" || { bad=1 && return; }
    users=${GRADED_USERS:-8,10,12,14,17,20,24,29,35,42} at=$port
    for arm in bf16 fp8; do
        # shellcheck disable=SC2086 # a list of words
        $on_servers "$snapmla" serve --device "${GRADED_DEVICE:-$device}" --precision $arm --port "$at" --sequences 256 \
            --context 1024 --cache-mb "${GRADED_CACHE_MB:-12}" --max-queue 4096 >"$out/logs/serve-graded-$arm.txt" 2>&1 &
        pids="$pids $!"
        await "graded-$arm" || { bad=1 && return; }
        at=$((at + 1))
    done
    arms="--arm bf16=http://127.0.0.1:$port/v1,precision=bf16"
    graded graded-trial 30 --concurrency "${users%%,*}" --duration "$(scaled 4)" --blocks 1
    trial_ms=$(row graded-trial bf16 '"kind": *"latency".*"metric": *"tpot"' p50_ms)
    targets=${GRADED_SLO:-$(echo "$trial_ms" | awk '{ if ($1 + 0 > 0) printf "ttft_p75=100ms,tpot_p75=%.2fms", 1.5 * $1; else print "ttft_p75=100ms,tpot_p75=1ms" }')}
    say "graded: TPOT p50 of BF16 in the trial: $trial_ms ms; targets: $targets"
    arms="$arms --arm fp8=http://127.0.0.1:$((port + 1))/v1,precision=fp8"
    graded graded "$(left)" --concurrency "$users" --duration "$(scaled "${GRADED_S:-2}")" --blocks "${BLOCKS:-3}" --slo "$targets"
    finish
    "$snapmla" report "$out/graded" --format md --out "$out/graded-report" >"$out/logs/graded-report.txt" 2>&1
    say_knee graded "of graded problems"
}

# ---- the part bodies ----

# post URL FILE: posts a file again and again until it is stopped; writes one status for each answer
post() {
    if command -v curl >/dev/null; then
        while :; do curl -s -o /dev/null -w '%{http_code}\n' --max-time 60 -H 'Content-Type: application/json' --data-binary "@$2" "$1"; done
    else
        python3 -c 'import sys, urllib.request as u, urllib.error as e
body = open(sys.argv[2], "rb").read()
while True:
    try: print(u.urlopen(u.Request(sys.argv[1], body, {"Content-Type": "application/json"}), timeout=60).status, flush=True)
    except e.HTTPError as x: print(x.code, flush=True)' "$@"
    fi
}
# Streams of the small model beside clients that post bodies of 4 MB, and without them, in turns.
run_bodies() {
    finish
    # shellcheck disable=SC2086 # a list of words
    $on_servers "$snapmla" serve --device cpu --threads "${BODIES_THREADS:-4}" --context 2048 --sequences 16 --cache-mb 64 \
        --port $port >"$out/logs/serve-bodies.txt" 2>&1 &
    pids="$pids $!"
    await bodies || { bad=1 && return; }
    awk 'BEGIN { printf "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \""; for (i = 0; i < 800000; i++) printf "7919 "; print "\"}]}" }' >"$out/body-text.json"
    awk 'BEGIN { printf "{\"prompt\": \""; for (i = 0; i < 800000; i++) printf "7919 "; print "\"}" }' >"$out/body-tokenize.json"
    awk 'BEGIN { printf "{\"max_tokens\": 1, \"prompt\": [5"; for (i = 1; i < 1300000; i++) printf ", 5"; print "]}" }' >"$out/body-ids.json"
    arms="--arm a=http://127.0.0.1:$port/v1"
    for phase in nothing-1 text-1 tokenize-1 ids-1 nothing-2 ids-2 tokenize-2 text-2 nothing-3; do
        case $phase in
        text-*) path=/v1/chat/completions body=text ;;
        tokenize-*) path=/tokenize body=tokenize ;;
        ids-*) path=/v1/completions body=ids ;;
        *) body='' ;;
        esac
        posters=''
        for i in ${body:+1 2}; do
            # shellcheck disable=SC2086 # a list of words
            post "http://127.0.0.1:$port$path" "$out/body-$body.json" >"$out/logs/post-$phase-$i.txt" 2>&1 &
            posters="$posters $!"
        done
        load "bodies-$phase" 30 --concurrency 8 --duration "$(scaled 5)" --drain 5 --blocks 1 --warmup 2 --input 40 --output 400
        # shellcheck disable=SC2086 # a list of numbers
        [ -z "$posters" ] || { kill $posters && wait $posters; } 2>/dev/null
        say "gaps of streams beside bodies of 4 MB, $phase: $(all_gaps "bodies-$phase" bf16)$([ -z "$body" ] || cat "$out/logs/post-$phase-"*.txt | sort | uniq -c | awk '{ printf "; %d answers with status %s", $1, $2 }')"
    done
    rm -f "$out"/body-*.json
    finish
}

share_of() {
    case $1 in knee | open) echo 330 ;; http) echo 100 ;; client) echo 160 ;; chunked) echo 150 ;; decode) echo 80 ;; closed) echo 200 ;;
    users) echo 260 ;; graded) echo 180 ;; bodies) echo 80 ;;
    *) echo "unknown part: $1" >&2 && return 2 ;;
    esac
}
total=0
for part in $parts; do
    share=$(share_of "$part") || exit 2
    total=$((total + share))
done
for part in $parts; do
    share=$(share_of "$part")
    begin "$part" "$share" $total
    total=$((total - share))
    "run_$part"
done
exit $bad
