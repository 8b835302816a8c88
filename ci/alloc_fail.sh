#!/bin/sh
# Runs the program's commands while one memory allocation fails: the first, the second, and so on.
#   alloc_fail.sh [--all] [--jobs N] [--sample N] PROGRAM FAILING_ALLOC [COMMAND...]
# FAILING_ALLOC is the shared object of base/test/failing_alloc.c. COMMAND is a name of the list below;
# default: all of them. --sample N: the first 40 allocations and N others that are spread evenly
# (default 60). --all: every allocation up to 4000, and 2000 spread over the others.
#
# A run is right if its output and exit code are those of a run without a failure, or if it ends with
# exit code 2 or 3 and a message that names memory. Everything else is counted and listed:
#   wrong    another output with the same exit code
#   unclear  exit code 2 or 3, but a message that hides the cause
#   code     another exit code
#   crash    ended by a signal
# Prints one line for each command. Exits with 1 if a run was not right.
set -u
if [ "${1:-}" = --one ]; then # how this script calls itself: --one FOLDER COMMAND N
    dir=$2 name=$3 n=$4
    here=$dir/$name.$n
    mkdir "$here"
    code=0
    OUT=$here/out ALLOC_FAIL_AT=$n \
        timeout -s KILL 60 sh "$dir/$name.sh" >"$here/stdout" 2>"$here/stderr" </dev/null || code=$?
    kind=code
    if [ "$code" -gt 128 ]; then
        kind=crash
    elif [ "$code" = "$(cat "$dir/$name.code")" ]; then
        kind=same
        sh "$dir/collect.sh" "$here" >"$here/all"
        if [ -e "$dir/$name.lines" ]; then
            [ "$(wc -l <"$here/all")" = "$(wc -l <"$dir/$name.all")" ] || kind=wrong
        else
            cmp -s "$here/all" "$dir/$name.all" || kind=wrong
        fi
    elif [ "$code" = 2 ] || [ "$code" = 3 ]; then
        kind=unclear
        grep -qi 'memory' "$here/stderr" && kind=clear
    fi
    printf '%s %s %s: exit %s: %s\n' "$name" "$kind" "$n" "$code" \
        "$(grep -v '^usage' "$here/stderr" | tail -n 1 | cut -c 1-120)"
    [ -n "${KEEP:-}" ] || rm -rf "$here"
    exit 0
fi

all=0 jobs=$(nproc) sample=60
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=1 ;;
    --jobs) jobs=$2 && shift ;;
    --sample) sample=$2 && shift ;;
    *) break ;;
    esac
    shift
done
program=$(realpath "$1")
FAILING_ALLOC=$(realpath "$2")
export FAILING_ALLOC NO_COLOR=1
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fixtures=harness/test/fixtures
replay="--arm bf16=replay:datasets/synth_aime/bf16.jsonl --arm fp8=replay:datasets/synth_aime/fp8.jsonl"

# ---- the commands; $OUT is a path for what they write ----

command_line() {
    case $1 in
    grade) echo "grade --task aime24 '$dir/integers.jsonl'" ;;
    grade-math) echo "grade --task math500 '$dir/math.jsonl'" ;;
    grade-letter) echo "grade --task gpqa_diamond '$dir/letters.jsonl'" ;;
    grade-ifeval) echo "grade --task ifeval '$dir/ifeval.jsonl'" ;;
    eval) echo "eval --suite demo $replay --out \"\$OUT\"" ;;
    report) echo "report --format html,csv,tex,md $fixtures/run.json --out \"\$OUT\"" ;;
    bench-help) echo "bench --help" ;;
    bench) echo "bench kernel --shapes 2/1/1/64 --scope kernel --threads 1 --min-time 0.01 --out \"\$OUT\"" ;;
    gate) echo "gate check --baseline $fixtures/run.json --current $fixtures/run.json --allow-shared" ;;
    fetch) echo "fetch --list --dir '$dir/none'" ;;
    generate) echo "generate --prompt Hi --max-tokens 4 --temperature 0 --threads 1 --context 64 models/snapmla-10m" ;;
    *) return 1 ;;
    esac
}
COMMANDS="grade grade-math grade-letter grade-ifeval eval report bench-help bench gate fetch generate"

cat >"$dir/integers.jsonl" <<'END'
{"gold":"204","response":"so \\boxed{203} or rather \\boxed{204}"}
{"gold":"7","response":"The final answer is 8."}
{"gold":"7","response":"we get 7"}
END
cat >"$dir/math.jsonl" <<'END'
{"gold":"\\frac{1}{2}","answer":"0.5"}
{"gold":"\\sqrt{2}+1","response":"so \\boxed{1 + \\sqrt2}."}
{"gold":"3, -3","response":"\\boxed{-3} and \\boxed{3}"}
{"gold":"\\sin 3","response":"The answer is therefore $\\sin(3)$, as was to be shown."}
END
cat >"$dir/letters.jsonl" <<'END'
{"gold":"C","response":"Therefore the correct option is **(C)**."}
{"gold":"A","response":"**B** it is"}
END
cat >"$dir/ifeval.jsonl" <<'END'
{"key": 1, "prompt": "x", "instruction_id_list": ["length_constraints:number_sentences", "change_case:capital_word_frequency"], "kwargs": [{"num_sentences": 2, "relation": "at least"}, {"capital_frequency": 1, "capital_relation": "at least"}], "response": "Mr. Jones has come. NASA, too."}
END

# The output of a run and the files it wrote, without times, dates, speeds and paths of this run.
cat >"$dir/collect.sh" <<'END'
cd "$1" || exit 1
{ cat stdout; find out -type f ! -name '*.lock' ! -name log 2>/dev/null | LC_ALL=C sort |
  while read -r f; do echo "== $f"; cat "$f"; done; } |
  sed -E -e 's/[^ "]*\/(tmp|var)[^ "<]*\/out//g' \
      -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+Z?)?/DATE/g' \
      -e 's/"(seconds|started|ended|wall_s|cpu_s|elapsed[a-z_]*|pid|sha256|digest|load[a-z_0-9]*|samples_sha256)": *[^,}]*/"\1":0/g'
END

# ---- one command ----

# The allocations that fail in turn, of $1.
numbers() {
    if [ $all = 1 ]; then
        first=4000 more=2000
    else
        first=40 more=$sample
    fi
    [ "$1" -lt $first ] && first=$1
    seq 1 "$first"
    step=$((($1 - first) / more + 1))
    [ "$1" -gt "$first" ] && seq $((first + 1)) $step "$1"
}

failed=0
for name in ${*:-$COMMANDS}; do
    line=$(command_line "$name") || { echo "alloc_fail: no command '$name' ($COMMANDS)" >&2; exit 2; }
    echo "exec env LD_PRELOAD=\"\$FAILING_ALLOC\" '$program' $line" >"$dir/$name.sh"
    for pass in first second; do
        here=$dir/$name.$pass
        mkdir "$here"
        code=0
        OUT=$here/out ALLOC_FAIL_COUNT=$dir/count \
            sh "$dir/$name.sh" >"$here/stdout" 2>"$here/stderr" </dev/null || code=$?
        echo $code >"$dir/$name.code"
        sh "$dir/collect.sh" "$here" >"$here.all"
    done
    mv "$dir/$name.second.all" "$dir/$name.all"
    # an output that differs from run to run is compared by its number of lines
    cmp -s "$dir/$name.all" "$dir/$name.first.all" || : >"$dir/$name.lines"
    n=$(cat "$dir/count")
    numbers "$n" | xargs -P "$jobs" -n 1 sh "$0" --one "$dir" "$name" >"$dir/result"
    awk -v name="$name" -v n="$n" '{ k[$2]++ } END {
        printf "%-14s %7d allocations, %5d failed in turn: %d same, %d clear; not right: %d wrong, %d unclear, %d code, %d crash\n",
            name, n, NR, k["same"], k["clear"], k["wrong"], k["unclear"], k["code"], k["crash"] }' "$dir/result"
    if grep -qv "^$name \(same\|clear\) " "$dir/result"; then
        failed=1
        grep -v "^$name \(same\|clear\) " "$dir/result" | sort -t ' ' -k 2,2 -k 3n | head -n "${SHOW:-12}" | sed 's/^/    /'
    fi
done
exit $failed
