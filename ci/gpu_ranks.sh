#!/bin/sh
# What gpu_exchange.sh, gpu_figure1.sh, gpu_layouts.sh, gpu_replicas.sh and gpu_tp.sh share. They change to the folder of
# the repository, read this file with the command `.`, call begin() with their arguments, set $steps, and call
# run_steps().
# shellcheck disable=SC2034,SC2154

# Prints the comment at the head of the script.
usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "ci/$(basename "$0")" >&2
    exit 2
}

# begin OUT [STEP...]: sets $snapmla, $devices and $out, the folder of the results.
begin() {
    [ $# -ge 1 ] || usage
    out=$1
    snapmla=${SNAPMLA:-build/snapmla}
    devices=${DEVICES:-0,1}
    bad=0
    mkdir -p "$out"
    : >"$out/summary.txt"
}

say() {
    echo "$*" | tee -a "$out/summary.txt"
}

fail() {
    say "FAILED: $*"
    bad=1
}

# make_missing PROGRAM...
make_missing() {
    for program in "$@"; do
        [ -x "$program" ] || make -j"$(nproc)" CUDA=1 "$program"
    done
}

# run NAME SECONDS COMMAND...: one command with a time limit. Its output goes to NAME.txt, and its errors to
# NAME.err.
run() {
    name=$1
    limit=$2
    shift 2
    code=0
    timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err" || code=$?
    [ "$code" = 0 ] || fail "$name: exit $code: $(tail -n 1 "$out/$name.err")"
}

# show NAME SECONDS COMMAND...: run(), and prints the output and the errors
show() {
    run "$@"
    cat "$out/$1.txt" "$out/$1.err"
}

# Calls the function step_X for each X in $steps. $bad is 1 afterwards if a step failed.
run_steps() {
    for step in $steps; do
        step_begun=$(date +%s)
        echo "== $step"
        "step_$step"
        say "$step: $(($(date +%s) - step_begun)) s"
    done
}

# differing FILE FILE: how many lines differ
differing() {
    paste -d '\n' "$1" "$2" | awk 'NR % 2 { one = $0; next } $0 != one { n++ } END { print n + 0 }'
}

# generate NAME SECONDS OPTION...: `generate` with the shipped model. NAME.texts gets the texts, one for each line.
generate() {
    texts=$1
    limit=$2
    shift 2
    run "$texts" "$limit" "$snapmla" generate --json "$@" models/snapmla-10m
    grep -o '"text": *"[^"]*"' "$out/$texts.txt" >"$out/$texts.texts" || fail "$texts: no texts"
}

# Measures the exchanges of FP32 numbers for `bench model --predict`, into sums.json. `--sizes` counts the parts of all
# ranks. The longest part on the path `step` is 2 MiB, so its largest size is 4 MiB with two GPUs and 16 MiB with eight.
measure_sums() {
    show sums 120 "$snapmla" bench exchange --devices "$devices" --type fp32 \
        --operations all_reduce,all_gather,reduce_scatter \
        --sizes "8192,16384,32768,65536,131072,262144,393216,524288,786432,1048576,1572864,2097152,3145728,4194304,\
8388608,16777216,67108864" --min-time 0.02 --out "$out/sums.json"
}

# gpu_at PLACE: the GPU at this place in $devices, counted from 1, as a number for CUDA_VISIBLE_DEVICES
gpu_at() {
    number=$(echo "$devices" | cut -d, -f"$1")
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || number=$(echo "$CUDA_VISIBLE_DEVICES" | cut -d, -f$((number + 1)))
    echo "$number"
}

# Writes the index, SM clock (MHz), power (W) and reasons for a lower clock of each GPU into NAME-clocks.csv, twice a
# second until stop_clocks().
record_clocks() {
    recorder=
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    timeout 150 nvidia-smi --query-gpu=index,clocks.sm,power.draw,clocks_event_reasons.active --format=csv,noheader,nounits \
        -lms 500 >"$out/$1-clocks.csv" 2>&1 &
    recorder=$!
}

# Prints the mean clock and power of each GPU, over the samples with more than 250 W.
stop_clocks() {
    [ -n "$recorder" ] || return 0
    kill "$recorder" 2>/dev/null || true
    wait "$recorder" 2>/dev/null || true
    awk -F ', ' -v name="$1" '$3 + 0 > 250 { n[$1]++; clock[$1] += $2; power[$1] += $3 }
        END { for (g in n) printf "clocks, %s: GPU %s: %.0f MHz, %.0f W (%d samples)\n", name, g, clock[g] / n[g],
            power[g] / n[g], n[g] }' "$out/$1-clocks.csv" | sort | tee -a "$out/summary.txt"
}

# ratio A B: B / A
ratio() {
    awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { print a ? b / a : "unknown" }'
}

# serve NAME USERS OPTION...: starts `serve` with a model of random weights and the options, and measures it with a
# closed loop of USERS users, whose prompts all differ. Sets $rate, the tokens per second, and keeps NAME-metrics.txt.
# Uses $shape, $input, $output, $port and $REQUESTS (for each user).
serve() {
    server_name=$1
    loop=$2
    shift 2
    rm -rf "${out:?}/$server_name"
    timeout -k 5 170 "$snapmla" serve --random-weights "$shape" --served-model-name m --precision fp8 \
        --context $((input + input / 20 + 4 * output + 2048)) --port "$port" "$@" \
        >"$out/$server_name-server.txt" 2>"$out/$server_name-server.err" &
    server=$!
    waited=0
    until grep -q serving "$out/$server_name-server.txt" || [ $waited = 90 ] || ! kill -0 $server 2>/dev/null; do
        sleep 1
        waited=$((waited + 1))
    done
    run "$server_name" 120 "$snapmla" bench serving -q --arm "a=http://127.0.0.1:$port/v1,model=m" --concurrency "$loop" \
        --requests $((REQUESTS * loop)) --input "$input" --output "$output" --blocks 1 --warmup 0 --temperature 1 \
        --out "$out/$server_name"
    curl -s "http://127.0.0.1:$port/metrics" >"$out/$server_name-metrics.txt" || fail "$server_name: no metrics"
    kill $server
    wait $server || fail "$server_name: the server ended with an error: $(tail -n 1 "$out/$server_name-server.err")"
    rate=$(sed -n 's/.*"output_tok_s": *\([0-9.e+]*\).*/\1/p' "$out/$server_name/run.json" | tail -n 1)
    say "$server_name: $loop users, tokens/s: ${rate:-unknown}"
}

find_nccl() {
    [ -z "${SNAPMLA_NCCL:-}" ] || return 0
    ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2' && return 0
    wheel=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null || true)
    [ -f "$wheel/lib/libnccl.so.2" ] && export SNAPMLA_NCCL="$wheel/lib/libnccl.so.2"
    return 0
}

# Prints the process id of rank $2, whose launcher is process $1.
process_of_rank() {
    for p in $(pgrep -P "$1"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "RANK=$2" && echo "$p"
    done
    return 0
}

# Sends signal $1 to rank $2 while it works: 15 s after its process was found. The other arguments are the
# command that starts the ranks. It must run for at least 30 s. Sets $code, its exit code, and $took, the seconds
# from the signal to its end. Returns 1 if the rank was not running.
signal_rank() {
    signal=$1
    rank=$2
    shift 2
    timeout -k 5 150 "$@" >"$out/fault.txt" 2>"$out/fault.err" &
    run=$!
    victim=
    launcher=$run
    while [ -z "$victim" ] && [ -n "$launcher" ]; do # until the rank has started, or the run has ended
        sleep 1
        launcher=$(pgrep -P "$run" | head -n 1)
        [ -z "$launcher" ] || victim=$(process_of_rank "$launcher" "$rank")
    done
    [ -z "$victim" ] || sleep 15 # until the ranks have opened their GPUs and exchange numbers
    begun=$(date +%s)
    code=0
    if [ -z "$victim" ] || ! kill "-$signal" "$victim"; then
        kill "$run" 2>/dev/null || true
        wait "$run" || code=$?
        fail "signal $signal for rank $rank: the run ended before: exit $code: $(tail -n 1 "$out/fault.err")"
        return 1
    fi
    wait "$run" || code=$?
    took=$(($(date +%s) - begun))
}

# A run with the fault $1 ended with exit code $2 after $3 s. It must have failed within 30 s, and its message
# must contain $4.
report_fault() {
    message=$(tail -n 1 "$out/fault.err")
    echo "$1: exit $2 after $3 s: $message" >>"$out/faults.txt"
    case "$2 $message" in
    "0 "* | "124 "* | "137 "*) fail "$1: exit $2 after $3 s: $message" ;;
    *"$4"*) [ "$3" -le 30 ] && say "$1: exit $2 after $3 s: $message" || fail "$1: $3 s" ;;
    *) fail "$1: the message is '$message', without '$4'" ;;
    esac
}

note_machine() {
    {
        nvidia-smi -L || true
        nvidia-smi topo -m || true
        "$snapmla" --version
    } >"$out/machine.txt" 2>&1
}
