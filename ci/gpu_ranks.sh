#!/bin/sh
# What gpu_exchange.sh and gpu_layouts.sh share. They set $out (the folder of results), $snapmla and
# bad=0, and read this file with the command `.`.

say() {
    echo "$*" | tee -a "$out/summary.txt"
}

fail() {
    say "FAILED: $*"
    bad=1
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

note_machine() {
    {
        nvidia-smi -L || true
        nvidia-smi topo -m || true
        "$snapmla" --version
    } >"$out/machine.txt" 2>&1
}
