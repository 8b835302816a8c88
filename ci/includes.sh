#!/bin/sh
# Checks the order of includes between the layers (base <- kernels <- generator <- evals <- harness) and
# inside harness (opt <- measure <- record <- fetch <- bench, eval, serve <- serving <- gate, audit <- view
# <- cmd <- main): a file may include only its own part and those before it. Also checks that each external
# library is used in one place only.
set -eu
bad=0
complain() {
    echo "includes: $1" >&2
    bad=1
}

rank() {
    case $1 in
    base) echo 0 ;; kernels) echo 1 ;; generator) echo 2 ;; evals) echo 3 ;; harness) echo 4 ;;
    *) echo 9 ;;
    esac
}

for layer in base kernels generator evals harness; do
    own=$(rank "$layer")
    for line in $(grep -rnoE '^#include "[^"]+"' "$layer" --include='*.[chS]' --include='*.cu' --include='*.cuh' | tr ' ' '@'); do
        file=${line%%:*}
        path=${line##*@\"}
        path=${path%\"}
        [ "$path" = build_info.h ] && continue
        case $path in
        */*) ;;
        *) complain "$file: \"$path\" must be written from the root of the repository"; continue ;;
        esac
        [ -f "$path" ] || complain "$file: \"$path\" does not exist"
        [ "$(rank "${path%%/*}")" -le "$own" ] || complain "$file: $layer may not include $path"
    done
done

# Folders of harness with the same rank stand side by side: neither includes the other.
harness_rank() {
    case $1 in
    harness/opt*|harness/completion.*) echo 0 ;;
    harness/measure/*) echo 1 ;;
    harness/record/*) echo 2 ;;
    harness/fetch/*) echo 3 ;;
    harness/bench/*|harness/eval/*|harness/serve/*) echo 4 ;;
    harness/serving/*) echo 5 ;;
    harness/gate/*|harness/audit/*) echo 6 ;;
    harness/view/*) echo 7 ;;
    harness/cmd/*) echo 8 ;;
    harness/test/load/*) echo 11 ;; # programs that use headers of the tests
    harness/main.c|harness/test/*) echo 9 ;;
    *) echo 10 ;;
    esac
}
for line in $(grep -rnoE '^#include "harness/[^"]+"' harness --include='*.[ch]' | tr ' ' '@'); do
    file=${line%%:*}
    path=${line##*@\"}
    path=${path%\"}
    [ "${file%/*}" = "${path%/*}" ] && continue
    own=$(harness_rank "$file")
    [ "$own" != 10 ] || complain "$file: harness_rank in ci/includes.sh does not know its folder"
    [ "$(harness_rank "$path")" -lt "$own" ] || complain "$file may not include $path"
done
same=$(find harness -name '*.h' | sed 's|.*/||' | sort | uniq -d)
[ -z "$same" ] || complain "two headers of harness have the same name: $same"

# $1: header, $2: extended regex of the files that may include it
only() {
    found=$(grep -rlE "^#include <($1)>" base kernels generator evals harness | grep -vE "^($2)$" || true)
    [ -z "$found" ] || complain "<$1> belongs to $2, also included by: $found"
}
only 'jansson.h' 'base/json.c'
only 'curl/curl.h' 'base/http(_url)?\.c'
only 'microhttpd.h' 'harness/serve/http_parts\.h'
only 'zip.h' 'base/zip\.c|base/test/zip_maker\.h'
only 'utf8proc.h' 'generator/local/tokenizer/forms\.c'
only 'zlib.h' 'base/unpack\.c|evals/code/tests_unpack\.c|evals/test/.*'
only 'zstd.*|snappy-c.h' 'base/unpack\.c'
only 'pcre2.h' 'evals/pattern\.c|evals/pattern_memory\.h|generator/local/tokenizer/regex\.c'
only 'seccomp.h' 'evals/code/seccomp\.c'
only 'gmp.h|mpfr.h' 'evals/math/.*|evals/test/test_(math|synth_gold)\.c'
only 'openssl/.*' 'base/hash.c|.*/test/.*'

# Only harness/cmd and main may print to the user or end the program.
printing=$(grep -rnE '\b(exit|printf|puts|perror)\(' base kernels generator evals harness --include='*.c' |
    grep -vE '^[^:]*/test/|^harness/cmd/|^harness/main.c|^base/(err|term)\.c|_exit\(' || true)
[ -z "$printing" ] || complain "prints or exits outside harness/cmd: $printing"
[ "$bad" = 0 ] && echo 'includes: one way'
exit $bad
