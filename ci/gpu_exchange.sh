#!/bin/sh
# Measures the exchange between GPUs on a machine with two of them, and injects faults. It takes at
# most ten minutes without the build, and less if nothing hangs. Each run has a time limit. A failed
# step does not stop the others.
#   gpu_exchange.sh OUT [STEP...]     without STEP all of them, in this order
#
#   kernel    the one-shot kernel between streams of one GPU (build/test/cuda/check_exchange)    30 s
#   goal      all-reduce of 16 KB: the one-shot path inside a graph should take at most 6 us 40 s
#   curves    all operations from 1 KB to 1 GB in BF16                                      150 s
#   fp32      all-reduces from 1 KB to 1 MB in FP32                                          40 s
#   sockets   NCCL over sockets, as between two machines: peer access and shared memory off   60 s
#   mpirun    the ranks started by mpirun, if the machine has it                             40 s
#   faults    a rank is killed, a rank is stopped, ranks differ                             240 s
#
# Variables: SNAPMLA, the program (build/snapmla); DEVICES (0,1); SNAPMLA_NCCL (else libnccl.so.2 of
# the system, else that of a PyTorch wheel). NVLink multicast stays off. What is missing is built.
# OUT gets NAME.json and NAME.txt for each measurement, faults.txt, and summary.txt. Exits 1 if a
# step failed.
set -eu
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
begin "$@"
shift
steps=${*:-kernel goal curves fp32 sockets mpirun faults}
export NCCL_NVLS_ENABLE=0
check=build/test/cuda/check_exchange
make_missing "$snapmla" "$check"

# measure NAME SECONDS OPTION...: one run of `bench exchange` with a time limit, a result file and a table
measure() {
    name=$1
    limit=$2
    shift 2
    show "$name" "$limit" "$snapmla" bench exchange --devices "$devices" --out "$out/$name.json" "$@"
}

step_kernel() {
    show kernel 30 "$check"
}

step_goal() {
    measure goal 40 --operations all_reduce --sizes 16384 --min-time 0.5
    us=$(awk '$1 == "all_reduce" && $2 == "one_shot" && $3 == "graph" { print $7 }' "$out/goal.txt")
    if [ -z "$us" ]; then
        fail "goal: there is no one-shot time"
    elif awk -v us="$us" 'BEGIN { exit !(us <= 6) }'; then
        say "goal: met: 16 KB one-shot inside a graph takes $us us (at most 6)"
    else
        say "goal: missed: 16 KB one-shot inside a graph takes $us us (at most 6)"
    fi
}

step_curves() {
    measure curves 150
}

step_fp32() {
    measure fp32 40 --operations all_reduce --type fp32 --sizes 1024,4096,16384,65536,262144,1048576
}

step_sockets() {
    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=Socket \
        measure sockets 60 --operations all_reduce,all_to_all --sizes 1024,16384,1048576,16777216
}

step_mpirun() {
    command -v mpirun >/dev/null 2>&1 || {
        say "mpirun: not on this machine"
        return 0
    }
    MASTER_ADDR=127.0.0.1 show mpirun 40 mpirun --allow-run-as-root -n 2 "$snapmla" bench exchange \
        --operations all_reduce --sizes 16384
}

# Sends signal $1 to rank $2 during a run, whose message must contain $3.
inject() {
    signal_rank "$1" "$2" "$snapmla" bench exchange --devices "$devices" \
        --sizes 67108864,134217728,268435456,536870912,1073741824 --min-time 4 || return 0
    report_fault "signal $1 for rank $2" "$code" "$took" "$3"
}

# Starts two ranks without a launcher. Rank 1 has other sizes than rank 0.
differ() {
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29517
    RANK=1 LOCAL_RANK=1 timeout 60 "$snapmla" bench exchange --sizes 4096 >/dev/null 2>&1 &
    other=$!
    begun=$(date +%s)
    code=0
    RANK=0 LOCAL_RANK=0 timeout 60 "$snapmla" bench exchange --sizes 1024 >/dev/null 2>"$out/fault.err" || code=$?
    wait "$other" || true
    unset WORLD_SIZE MASTER_ADDR MASTER_PORT
    report_fault "ranks with different sizes" "$code" $(($(date +%s) - begun)) \
        "rank 1: its sizes is '4096', and that of rank 0 is '1024'"
}

step_faults() {
    : >"$out/faults.txt"
    inject KILL 1 "rank 1 was ended by signal 9"
    inject STOP 1 "rank 1: no sign of life for 10 s"
    differ
}

find_nccl
note_machine
run_steps
exit $bad
