#!/bin/sh
# Runs the job scripts configs/eval.sbatch and configs/serving.sbatch as the tasks of a Slurm array and as the ranks of
# MPI and srun would, with their variables set by hand, and merges the parts.
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

# This test may itself run in a job.
for name in $(env | sed -n 's/^\(\(SLURM\|OMPI\|PMI\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

# variables KIND I: what the launcher sets for task I of two
variables() {
    batch='SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_LOCALID=0' # what every batch script has
    array="SLURM_ARRAY_JOB_ID=$$ SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=7"
    array="$array SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_ID=$((2 * $2 + 3))"
    case $1 in
    array) echo "$batch SLURM_NTASKS=4 $array" ;; # of a job with several tasks
    mpi) echo "$batch SLURM_NTASKS=1 OMPI_COMM_WORLD_RANK=$(($2 - 1)) OMPI_COMM_WORLD_SIZE=2" ;;
    srun) # in a task of an array
        echo "$array SLURM_JOB_ID=7 SLURM_STEP_ID=3 SLURM_PROCID=$(($2 - 1)) SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=2" ;;
    esac
}
# parts array|mpi|srun SCRIPT OPTION...: two tasks at the same time
parts() {
    kind=$1 pids=''
    shift
    for i in 1 2; do
        # shellcheck disable=SC2046 # a list of variables, which must become several words
        env $(variables "$kind" $i) sh "$@" >"$dir/out-$i" 2>&1 &
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

# refused MESSAGE VARIABLE...: the variables do not say which part this is
refused() {
    message=$1
    shift
    for script in configs/eval.sbatch configs/serving.sbatch; do
        code=0
        env "$@" SNAPMLA=false sh "$script" "$dir/none" --arm a >"$dir/out" 2>&1 || code=$?
        { [ $code = 2 ] && grep -q "$message" "$dir/out"; } || { cat "$dir/out"; fail "'$script' did not refuse $*"; }
    done
}
refused 'neither a task of an array nor one of several ranks' SLURM_JOB_ID=7 SLURM_PROCID=0
refused 'neither a task of an array nor one of several ranks' SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4
# the shell of salloc, and srun of one task with PMI
refused 'neither a task of an array nor one of several ranks' SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 \
    SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 PMI_RANK=0 PMI_SIZE=1
refused 'must have equal distances' SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=3 \
    SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=1

# place VARIABLE...: the place where the parts of a load meet, for a part whose program fails with exit code 5
place() {
    code=0
    env "$@" SNAPMLA="$dir/fails" sh configs/serving.sbatch "$dir/load" --arm a >"$dir/out" 2>&1 || code=$?
    [ $code = 5 ] || { cat "$dir/out"; fail "exit code $code under $*, expected 5"; }
    sed -n 's/.*--meet \([^ ]*\) .*/\1/p' "$dir/out"
}
printf '#!/bin/sh\necho "$@"\nexit 5\n' >"$dir/fails"
chmod +x "$dir/fails"
step='SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2'
mpi='SLURM_JOB_ID=7 OMPI_COMM_WORLD_SIZE=2'
# shellcheck disable=SC2086 # lists of variables, which must become several words
{
    one=$(place $step SLURM_STEP_ID=1) two=$(place $step SLURM_STEP_ID=2)
    { [ -n "$one" ] && [ "$one" != "$two" ]; } || fail "two steps of a job meet at '$one' and '$two'"
    [ "$(cat "$dir/load.meet-7.1")" = "$one" ] || fail 'the file with the place is gone after a failure'
    # The second rank is on another host, where srun has started the daemon of mpirun.
    one=$(place $mpi OMPI_COMM_WORLD_RANK=0) two=$(place $mpi OMPI_COMM_WORLD_RANK=1 SLURM_STEP_ID=9)
    { [ -n "$one" ] && [ "$one" = "$two" ]; } || fail "two ranks of mpirun meet at '$one' and '$two'"
}
rm -f "$dir"/load*

"$SNAPMLA" synth --style aime --level 1 --count 4 --out "$dir/synth_aime.jsonl" >/dev/null
"$SNAPMLA" serve -q --port 0 --context 1024 --threads 1 models/snapmla-10m >"$dir/serve" &
server=$!
for _ in $(seq 600); do
    grep -q '^serving' "$dir/serve" && break
    sleep 0.1
done
url=$(sed 's/.* at //' "$dir/serve")

for kind in array mpi; do # MPI for the evaluation, and srun for the load
    model=local:models/snapmla-10m,threads=1
    parts "$kind" configs/eval.sbatch "$dir/eval" --suite synth_aime --data "$dir" --samples 1 --max-tokens 100 \
        --arm "bf16=$model" --arm "fp8=$model,precision=fp8"
    merged "$kind" eval
    [ "$(wc -l <"$dir/eval/samples.jsonl")" = 8 ] || fail "the merged evaluation under $kind has not 8 samples"
    [ "$kind" = array ] || kind=srun
    parts "$kind" configs/serving.sbatch "$dir/load" --concurrency 2 --requests 6 --blocks 2 --warmup 0 --input 40 \
        --output 4 --arm "a=$url"
    merged "$kind" load
    [ "$(wc -l <"$dir/load/requests.jsonl")" = 12 ] || fail "the merged load under $kind has not 12 requests"
    [ -z "$(find "$dir" -name '*.meet-*')" ] || fail "the file with the place is left"
    rm -rf "$dir"/eval* "$dir"/load*
done
echo 'sbatch: the job scripts run in parts, and the parts can be merged'
