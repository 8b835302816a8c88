#!/bin/sh
# One fuzz target for some seconds, in BUILD/fuzz/LAYER/test/fuzz_X.corpus, from the seeds in
# LAYER/test/seeds/fuzz_X and with LAYER/test/seeds/fuzz_X.dict where there are such.
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
