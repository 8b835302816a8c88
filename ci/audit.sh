#!/bin/sh
# Checks the machine code of the Hopper kernels, without a GPU. It writes a table with the
# registers, stack, spills, barriers and shared memory of every kernel. If there is a disassembler
# ($NVDISASM or nvdisasm), the table also has the number of FP8 and BF16 tensor instructions. Exits
# 1 when a kernel spills or uses a stack, when the compiler serialises wgmma or ignores setmaxnreg,
# or when a kernel in sm90_fp8 or sm90_bf16 has no tensor instruction of its kind.
# Registers and spills are those that the compiler reported when it made BUILD/obj. Kernels are compiled
# again only if there is a disassembler.
# sm100_sketch is compiled for capability 10.0 if the compiler knows it. No program contains these
# kernels. The last two columns count their FP8 and FP4 tensor instructions.
#   NVCC=nvcc audit.sh BUILD     writes BUILD/audit.md; kernels/cuda/AUDIT.md is the last kept table
set -eu
build=${1:-build}
nvcc=${NVCC-$(command -v nvcc || true)}
if [ -z "$nvcc" ]; then
    echo 'audit: skipped, because nvcc was not found or is not used'
    exit 0
fi
disassembler=${NVDISASM:-$(command -v nvdisasm || true)}
work=$build/audit
table=$build/audit.md
rm -rf "$work"
mkdir -p "$work"

# Condenses the output of ptxas -v to one line for each kernel of Hopper or newer:
# name|registers|stack|spill stores|spill loads|barriers|smem
digest() {
    awk '
        /Compiling entry function/ { split($0, q, "\047"); name = q[4] ~ /^sm_(90|100)a$/ ? q[2] : "" }
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

# Counts an instruction in one kernel of a cubin.
count_in() { # CUBIN KERNEL MNEMONIC
    [ -n "$disassembler" ] || { echo -; return; }
    "$disassembler" -c "$1" 2>/dev/null | awk -v kernel=".text.$2" -v what="$3" '
        /^\/\/-+ \.text\./ || /^\t?\.section/ { inside = index($0, kernel) > 0 }
        inside && $0 ~ what "[. ]" { n++ }
        END { print n + 0 }'
}

bad=0
complain() {
    echo "audit: $1" >&2
    bad=1
}

{
    echo '| file | kernel | registers | stack | spill stores | spill loads | barriers | static smem | QGMMA | HGMMA | UTCQMMA | UTCOMMA |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|'
} >"$table"
files=$(find kernels/cuda -name '*.cu' ! -path '*/test/*' | sort)
"$nvcc" --list-gpu-code | grep -q '^sm_100$' || {
    echo 'audit: sm100_sketch is left out, because the compiler does not know sm_100a' >&2
    files=$(echo "$files" | sed '\,/sm100_,d')
}
# Files are compiled in parallel and then checked one by one. A file that fails has no cubin.
compiled=$files
[ -n "$disassembler" ] || compiled=$(echo "$files" | sed -n '\,/sm100_,p')
[ -z "$compiled" ] || printf '%s\n' $compiled | xargs -P "$(nproc)" -n 1 sh -c 'to=$1/$(echo "$2" | tr / _)
    case $2 in */sm100_*) arch=100a ;; *) arch=90a ;; esac
    "$0" -std=c++17 -O3 -I. -gencode arch=compute_$arch,code=sm_$arch -Xptxas=-v -cubin -o "$to.cubin" "$2" >"$to.log" 2>&1' \
    "$nvcc" "$work" || true
for file in $files; do
    name=$(echo "$file" | tr / _)
    log=$work/$name.log
    if [ ! -e "$log" ]; then
        log=$build/obj/$file.o.log
        [ -e "$log" ] || {
            complain "$file: no $log: remove the object file, so that make compiles it again"
            continue
        }
    elif [ ! -s "$work/$name.cubin" ]; then
        cat "$log" >&2
        complain "$file does not compile"
        continue
    fi
    grep -E 'serialized|setmaxnreg.*ignored' "$log" >&2 && complain "$file: the compiler serialised wgmma or ignored setmaxnreg"
    digest <"$log" >"$work/$name.kernels"
    found=''
    while IFS='|' read -r kernel regs stack stores loads bars smem; do
        plain=$(c++filt "$kernel" 2>/dev/null | sed 's/(anonymous namespace):://g; s/([a-z_]*)\([0-9]\)/\1/g; s/(.*//; s/^void //; s/|/\\|/g')
        q=$(count_in "$work/$name.cubin" "$kernel" QGMMA)
        h=$(count_in "$work/$name.cubin" "$kernel" HGMMA)
        uq=$(count_in "$work/$name.cubin" "$kernel" UTCQMMA)
        uo=$(count_in "$work/$name.cubin" "$kernel" UTCOMMA)
        echo "| ${file#kernels/cuda/} | $plain | $regs | $stack | $stores | $loads | $bars | $smem | $q | $h | $uq | $uo |" >>"$table"
        case $file:$stack$stores$loads in
        *:000 | kernels/cuda/sm90_ablation/*) ;; # the kernels of the ablation may be slower
        *) complain "$file: $plain: $stack B of stack, $stores B of spill stores, $loads B of spill
        *loads" ;;
        esac
        case $file:$q:$h:$uq:$uo in
        kernels/cuda/sm90_fp8/*:[1-9]*:*:*:*) found="$found fp8" ;;
        kernels/cuda/sm90_bf16/*:*:[1-9]*:*:*) found="$found bf16" ;;
        kernels/cuda/sm100_sketch/fp8*:*:*:[1-9]*:*) found="$found fp8" ;;
        kernels/cuda/sm100_sketch/nvfp4*:*:*:*:[1-9]*) found="$found fp4" ;;
        esac
    done <"$work/$name.kernels"
    case $file in
    kernels/cuda/sm90_*/*_launch.cu | kernels/cuda/sm100_sketch/*)
        [ -z "$disassembler" ] || [ -n "$found" ] || complain "$file: no tensor instruction of its kind in the machine code"
        ;;
    esac
done
cat "$table"
[ -n "$disassembler" ] || echo 'audit: no disassembler was found, so the tensor instructions were not counted'
[ "$bad" = 0 ] && echo 'audit: clean'
exit $bad
