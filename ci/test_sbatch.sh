#!/bin/sh
# Runs the job scripts configs/eval.sbatch and configs/serving.sbatch as the tasks of a Slurm array and as the ranks of
# MPI would, with their variables set by hand, and merges the parts.
#   test_sbatch.sh BUILD
set -eu
SNAPMLA=$(realpath "$1/snapmla")
export SNAPMLA
dir=$(mktemp -d)
server=''
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
fail() {
    echo "sbatch: $1" >&2
    exit 1
}

# parts array|mpi SCRIPT OPTION...: two tasks at the same time
parts() {
    kind=$1 pids=''
    shift
    for i in 1 2; do
        if [ "$kind" = array ]; then # whose numbers need not begin with 1
            set_by="SLURM_ARRAY_JOB_ID=$$ SLURM_ARRAY_TASK_ID=$((i + 4)) SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_COUNT=2"
        else
            set_by="OMPI_COMM_WORLD_RANK=$((i - 1)) OMPI_COMM_WORLD_SIZE=2"
        fi
        # shellcheck disable=SC2086 # $set_by is a list of variables, which must become several words
        env $set_by sh "$@" >"$dir/out-$i" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || { cat "$dir"/out-*; fail "a part of '$1' failed under $kind"; }
    done
}
# merged KIND NAME: merges the parts, checks the result, and removes all
merged() {
    "$SNAPMLA" merge "$dir/$2."*-1 "$dir/$2."*-2 --out "$dir/$2" >"$dir/merged" 2>&1 ||
        { cat "$dir/merged"; fail "the parts of '$2' under $1 cannot be merged"; }
    "$SNAPMLA" verify-run "$dir/$2" >/dev/null || fail "the merged run of '$2' under $1 does not verify"
}

"$SNAPMLA" synth --style aime --level 1 --count 4 --out "$dir/synth_aime.jsonl" >/dev/null
"$SNAPMLA" serve -q --port 0 --context 1024 --threads 1 models/snapmla-10m >"$dir/serve" &
server=$!
for _ in $(seq 600); do
    grep -q '^serving' "$dir/serve" && break
    sleep 0.1
done
url=$(sed 's/.* at //' "$dir/serve")

for kind in array mpi; do
    model=local:models/snapmla-10m,threads=1
    parts $kind configs/eval.sbatch "$dir/eval" --suite synth_aime --data "$dir" --samples 1 --max-tokens 100 \
        --arm "bf16=$model" --arm "fp8=$model,precision=fp8"
    merged $kind eval
    [ "$(wc -l <"$dir/eval/samples.jsonl")" = 8 ] || fail "the merged evaluation under $kind has not 8 samples"
    parts $kind configs/serving.sbatch "$dir/load" --concurrency 2 --requests 6 --blocks 2 --warmup 0 --input 40 \
        --output 4 --arm "a=$url"
    merged $kind load
    [ "$(wc -l <"$dir/load/requests.jsonl")" = 12 ] || fail "the merged load under $kind has not 12 requests"
    [ -z "$(find "$dir" -name '*.meet-*')" ] || fail "the file with the place is left"
    rm -rf "$dir"/eval* "$dir"/load*
done
echo 'sbatch: the job scripts run in parts, and the parts can be merged'
