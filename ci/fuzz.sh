#!/bin/sh
# Runs one fuzz target for some seconds. The corpus is BUILD/fuzz/LAYER/test/fuzz_X.corpus. The
# seeds in LAYER/test/seeds/fuzz_X and the dictionary LAYER/test/seeds/fuzz_X.dict are used if they
# exist.
#   fuzz.sh BUILD/fuzz/LAYER/test/fuzz_X SECONDS
set -eu
target=$1
seeds=$(echo "$target" | sed 's|.*/fuzz/\([a-z]*\)/test/|\1/test/seeds/|')
mkdir -p "$target.corpus"
set -- -max_total_time="$2" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$target." "$target.corpus"
[ ! -d "$seeds" ] || set -- "$@" "$seeds"
[ ! -f "$seeds.dict" ] || set -- -dict="$seeds.dict" "$@"
exec "$target" "$@"
