#!/bin/sh
# What the compiler made of the Hopper kernels, without a GPU: registers, stack, spills, barriers and
# shared memory of every kernel, and how many FP8 and BF16 tensor instructions its machine code has
# where a disassembler is at hand ($NVDISASM or nvdisasm). Exits 1 when a kernel spills or uses a stack,
# when the compiler serialises wgmma or ignores setmaxnreg, or when a kernel in sm90_fp8 or sm90_bf16
# has no tensor instruction of its kind.
#   NVCC=nvcc audit.sh BUILD     the table goes to BUILD/audit.md; kernels/cuda/AUDIT.md keeps the last one
set -eu
build=${1:-build}
nvcc=${NVCC:-$(command -v nvcc || true)}
if [ -z "$nvcc" ]; then
    echo 'audit: skipped: no nvcc here'
    exit 0
fi
disassembler=${NVDISASM:-$(command -v nvdisasm || true)}
work=$build/audit
table=$build/audit.md
rm -rf "$work"
mkdir -p "$work"

# ptxas -v, one line a kernel: name|registers|stack|spill stores|spill loads|barriers|smem
digest() {
    awk '
        /Compiling entry function/ { split($0, q, "\047"); name = q[2] }
        /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
        / Used [0-9]+ registers/ {
            regs = 0; bars = 0; smem = 0
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^registers/) regs = $(i - 1)
                if ($i ~ /^barriers/) bars = $(i - 1)
                if ($i ~ /^smem/) smem = $(i - 2)
            }
            if (name != "") print name "|" regs "|" stack "|" stores "|" loads "|" bars "|" smem
            name = ""; stack = stores = loads = 0
        }'
}

# How often an instruction stands in one kernel of a cubin.
count_in() { # CUBIN KERNEL MNEMONIC
    [ -n "$disassembler" ] || { echo -; return; }
    "$disassembler" -c "$1" 2>/dev/null | awk -v kernel=".text.$2" -v what="$3" '
        /^\/\/-+ \.text\./ || /^\t?\.section/ { inside = index($0, kernel) > 0 }
        inside && $0 ~ what "\\." { n++ }
        END { print n + 0 }'
}

bad=0
complain() {
    echo "audit: $1" >&2
    bad=1
}

{
    echo '| file | kernel | registers | stack | spill stores | spill loads | barriers | static smem | QGMMA | HGMMA |'
    echo '|---|---|---|---|---|---|---|---|---|---|'
} >"$table"
files=$(find kernels/cuda -name '*.cu' ! -path '*/test/*' | sort)
# Compiled side by side, looked at one after the other; where one fails there is no cubin.
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P "$(nproc)" -n 1 sh -c 'to=$1/$(echo "$2" | tr / _)
    "$0" -std=c++17 -O3 -I. -gencode arch=compute_90a,code=sm_90a -Xptxas=-v -cubin -o "$to.cubin" "$2" >"$to.log" 2>&1' \
    "$nvcc" "$work" || true
for file in $files; do
    name=$(echo "$file" | tr / _)
    [ -s "$work/$name.cubin" ] || {
        cat "$work/$name.log" >&2
        complain "$file does not compile"
        continue
    }
    grep -E 'serialized|setmaxnreg.*ignored' "$work/$name.log" >&2 && complain "$file: the compiler serialised or ignored what the kernel relies on"
    digest <"$work/$name.log" >"$work/$name.kernels"
    found=''
    while IFS='|' read -r kernel regs stack stores loads bars smem; do
        plain=$(c++filt "$kernel" 2>/dev/null | sed 's/(anonymous namespace):://g; s/([a-z_]*)\([0-9]\)/\1/g; s/(.*//; s/^void //; s/|/\\|/g')
        q=$(count_in "$work/$name.cubin" "$kernel" QGMMA)
        h=$(count_in "$work/$name.cubin" "$kernel" HGMMA)
        echo "| ${file#kernels/cuda/} | $plain | $regs | $stack | $stores | $loads | $bars | $smem | $q | $h |" >>"$table"
        case $file:$stack$stores$loads in
        *:000 | kernels/cuda/sm90_ablation/*) ;; # the ablation's kernels are made to be worse
        *) complain "$file: $plain: $stack B of stack, $stores B of spill stores, $loads B of spill loads" ;;
        esac
        case $file:$q:$h in
        kernels/cuda/sm90_fp8/*:[1-9]*:*) found="$found fp8" ;;
        kernels/cuda/sm90_bf16/*:*:[1-9]*) found="$found bf16" ;;
        esac
    done <"$work/$name.kernels"
    case $file in
    kernels/cuda/sm90_*/launch.cu)
        [ -z "$disassembler" ] || [ -n "$found" ] || complain "$file: no tensor instruction of its kind in the machine code"
        ;;
    esac
done
cat "$table"
[ -n "$disassembler" ] || echo 'audit: no disassembler here: machine code not looked at'
[ "$bad" = 0 ] && echo 'audit: clean'
exit $bad
