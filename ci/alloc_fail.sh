#!/bin/sh
# Runs the program's commands while one memory allocation fails: the first, the second, and so on.
#   alloc_fail.sh [--all] [--jobs N] PROGRAM FAILING_ALLOC [COMMAND...]
# FAILING_ALLOC is the shared object of base/test/failing_alloc.c. COMMAND is a name of the list below;
# default: all of them. For each command the list says how many allocations fail: the first FIRST, and
# MORE others that are spread evenly. --all: the first 4000, and 2000 others; of a slow command 40 and 20.
#
# A run is right if its output and exit code are those of a run without a failure, or if it ends with
# exit code 3 and a message that names memory. Everything else is counted and listed:
#   wrong    another output with the same exit code, unless the output itself says "out of memory" or that
#            no thread can be started: a sweep goes on without a shape that does not fit
#   unclear  exit code 3, but a message that hides the cause
#   code     another exit code
#   crash    ended by a signal
# Where a figure of the output is measured, only the text around it is compared. The figures of such a
# command differ in two runs without a failure.
#
# N commands run at the same time. Prints one line for each command. Exits with 1 if a run was not right, or if a command has created a
# file in the working directory, where none writes.
set -u
all=0 jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=1 ;;
    --jobs) jobs=$2 && shift ;;
    *) break ;;
    esac
    shift
done
program=$(realpath "$1") failing=$(realpath "$2")
export NO_COLOR=1
# No OpenCL driver is loaded: one written in C++ aborts the process when an allocation fails.
export OCL_ICD_VENDORS=/nonexistent
shift 2
dir=$(mktemp -d)
servers=
trap 'kill $servers 2>/dev/null; rm -rf "$dir"' EXIT
fixtures=harness/test/fixtures
predicted=results/amd-epyc-zen4-2-threads/2026-11-29-771836742cc5-gate-formats.json
arms="--arm bf16=replay:datasets/synth_aime/bf16.jsonl --arm fp8=replay:datasets/synth_aime/fp8.jsonl"
r=results/nvidia-h200-x2/2026-11-29-6077fc3347b9-layouts
steps=$r-lite-one.json,results/nvidia-h200-x2/2026-11-29-6077fc3347b9-exchange-sums.json,results/nvidia-h200/2026-11-23-2fe0fc2b7528-table.json
few="-q --suite synth_aime --data datasets --limit 2 --samples 2"

# ---- the commands: name, FIRST, MORE, arguments ----
# FILES is a path for what the command writes. SHARDS and PARTS are copies of two parts of an
# evaluation and of a serving benchmark, which it may lock.

commands() {
    cat <<END
bench-help     400    0 bench --help
bench-predict  200   60 bench model --predict --model-config deepseek-v2-lite --layout DP2,TP2 --measured $steps
print-config   400    0 eval --config demo --print-config
completion     400    0 --completion zsh
grade          400  100 grade --task aime24 $dir/integers.jsonl
grade-math     400  100 grade --task math500 $dir/math.jsonl
grade-letter   400  100 grade --task gpqa_diamond $dir/letters.jsonl
grade-ifeval   400  100 grade --task ifeval $dir/ifeval.jsonl
grade-code      20   20 grade --task humaneval --jobs 1 $dir/programs.jsonl
info            20   20 info
eval           300  500 eval $few $arms --out FILES
eval-http      300  100 eval $few --limit 1 --arm a=http://127.0.0.1:9/v1,model=m,retries=0 --out FILES
bench-serving  300  100 bench serving --concurrency 1 -n 1 --arm a=http://127.0.0.1:9/v1 --out FILES
merge          200  100 merge SHARDS/1 SHARDS/2 --out FILES
merge-serving  150  100 merge PARTS/1 PARTS/2 --out FILES
report-serving 150  150 report --format html,csv,tidy,tex,md,svg $dir/served --out FILES
verify-serving 100  100 verify-run $dir/served
check-task     300  400 eval check-task datasets/capitals/capitals.json -n 1
check-long     300  200 eval check-task long_order --lengths 300 -n 1
check-choices  300  200 eval check-task mmlu_pro --data $dir/choices.jsonl -n 1
eval-show      300  100 eval show $dir/run
import         200  300 eval import a=$fixtures/logs/samples_sums_2026-01-01T00-00-00.000000.jsonl --filter strict --metric exact_match --out FILES
import-inspect 200  300 eval import a=$fixtures/logs/bf16.json b=$fixtures/logs/fp8.json --task gsm8k --out FILES
report-lm-eval 200  200 report lm-eval $dir/run --out FILES
report         200  500 report --format html,csv,tidy,tex,md,svg $fixtures/run.json $dir/run --out FILES
report-paper   150  200 report paper --format html,csv,tidy,tex,md,svg --e2e results/nvidia-h200-x4/2026-11-29-ff5691afbad3-figure1-v3-dp4ep4.json --out FILES
report-print   200  200 report $fixtures/run.json
compare        200  200 compare $fixtures/run.json $fixtures/run.json
verify         200  200 verify-run $dir/run
pack           200  200 pack $dir/run --out FILES
gate           200  400 gate check --baseline $fixtures/run.json --current $fixtures/run.json --allow-shared --out FILES
gate-predict   200  200 gate check --baseline $predicted --current $predicted --out FILES
gate-worker    150   50 gate worker --quiet
gate-run        80    1 gate run self self --backend plugin:$plugin --arms bf16 --shapes 1/1/1/1 --looks 1 --sessions 6 --threshold 900 --out FILES
bench          100  100 bench kernel --backend plugin:$plugin --arms bf16 --shapes 1/1/1/64 --scope kernel --min-time 0.001 --min-samples 2 --timeout 0.05 --d-c 32 --d-r 32 --ceilings $dir/ceilings.json --out FILES
bench-arms     100  100 bench kernel --arm a=plugin:$plugin --arm b=plugin:$plugin --lengths uniform:3-70 --heads 1 --batch 2 --scope kernel --min-time 0.001 --min-samples 2 --timeout 0.05 --d-c 32 --d-r 32 --ceilings $dir/ceilings.json --out FILES
fidelity       100   50 fidelity --formats bf16,snapmla --distribution normal --contexts 64 --threads 1 --out FILES
predict        100   50 fidelity --model models/snapmla-10m --predict synth_aime --limit 1 --samples 2 --max-tokens 2 --precisions bf16,fp8 --threads 1 --out FILES
formats        200  200 formats
formats-check  200  200 formats check nvfp4
synth          200   50 synth --style aime --level 3 --count 2 --out FILES
synth-long     200   50 synth --long needle,turns --length 192 --count 2 --questions 1 --threads 1 --out FILES
eval-plan      200  100 eval plan --suite aime24,math500 --samples 4 --json
fetch          400  200 fetch --list --dir $dir/none
fetch-files    300  100 fetch --manifest $dir/manifest.json --retries 0 --dir FILES tiny
serve           20   30 serve --port 0 --threads 1 --context 256 --sequences 2
generate       100  100 generate --prompt Hi --max-tokens 4 --temperature 0 --threads 1 --context 64 models/snapmla-10m
generate-split  40   20 generate --layout TP2 --prompt Hi --max-tokens 4 --temperature 0 --threads 2 --context 64 models/snapmla-10m
generate-ep     40   20 generate --layout EP2 --samples 2 --prompt Hi --max-tokens 4 --temperature 0 --threads 2 --context 64 models/snapmla-10m
END
}

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
cat >"$dir/choices.jsonl" <<'END'
{"question_id": 1, "question": "Which?", "options": ["a", "b", "N/A"], "answer": "B", "category": "law"}
{"question_id": 2, "question": "Which?", "options": ["c", "d"], "answer": "A", "category": "law"}
END
cat >"$dir/ifeval.jsonl" <<'END'
{"key": 1, "prompt": "x", "instruction_id_list": ["length_constraints:number_sentences", "change_case:capital_word_frequency"], "kwargs": [{"num_sentences": 2, "relation": "at least"}, {"capital_frequency": 1, "capital_relation": "at least"}], "response": "Mr. Jones has come. NASA, too."}
END
cat >"$dir/programs.jsonl" <<'END'
{"task_id": "T/0", "prompt": "def f(x):\n    \"\"\"Doubles.\"\"\"\n", "entry_point": "f", "test": "def check(c):\n    assert c(2) == 4\n", "response": "```python\ndef f(x):\n    return 2 * x\n```"}
END
cat >"$dir/worker.jsonl" <<'END'
{"protocol": 1, "backend": "cpu", "isa": "auto", "threads": 1, "delay_pct": 0, "distribution": "normal", "cold": false, "seed": 1}
{"cell": {"precision": "bf16", "scope": "kernel", "heads": 1, "s_q": 1, "batch": 1, "context": 64, "d_c": 32, "d_r": 32}}
{"steps": 3}
{"end": true}
END
cat >"$dir/chat.json" <<'END'
{"messages":[{"role":"user","content":"Hi"}],"max_tokens":6,"temperature":0,"stream":true,"logprobs":true,"top_logprobs":1}
END
{
    printf 'POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n' "$(wc -c <"$dir/chat.json")"
    cat "$dir/chat.json"
} >"$dir/chat.http"
# This plugin has no probes, which would take seconds in each run, and needs one set of inputs only.
plugin=$(dirname "$program")/test/plugins/warm.so
sed 's/Example CPU, 2 threads/one thread of the host/' $fixtures/run.json >"$dir/ceilings.json"
for run in run "shards/1 --shard 1/2" "shards/2 --shard 2/2"; do
    # shellcheck disable=SC2086
    "$program" eval $few $arms --out "$dir/"$run >"$dir/log" 2>&1 || {
        cat "$dir/log" >&2
        exit 2
    }
done

cp -r $fixtures/serving-parts "$dir/parts"
"$program" merge "$dir/parts/1" "$dir/parts/2" --out "$dir/served" >"$dir/log" 2>&1 || {
    cat "$dir/log" >&2
    exit 2
}

# A server with a data set of two files: one that is kept as it is, and one that is converted.
mkdir "$dir/www"
cp "$dir/integers.jsonl" "$dir/www/"
echo '{"num_rows_total": 2, "rows": [{"row_idx": 0, "row": {"a": 1}}, {"row_idx": 1, "row": {"a": "x"}}]}' >"$dir/www/rows.json"
python3 -u -m http.server --bind 127.0.0.1 --directory "$dir/www" 0 >"$dir/www.log" 2>/dev/null &
servers=$!
for _ in $(seq 100); do
    grep -q 'http://' "$dir/www.log" && break
    sleep 0.1
done
url=$(sed -n 's#.*(\(http://[0-9.:]*\)/).*#\1#p' "$dir/www.log")
[ -n "$url" ] || {
    echo 'alloc_fail: the server of files does not start' >&2
    exit 2
}
cat >"$dir/manifest.json" <<END
{
"schema": {"name": "snapmla.manifest", "major": 1, "minor": 0},
"sets": [
{"name": "tiny", "title": "Tiny", "rows": 5, "large": false, "licence": "ours", "notice": null, "home": "$url/", "files": [
{"path": "tiny/integers.jsonl", "bytes": $(wc -c <"$dir/www/integers.jsonl"), "sha256": "$(sha256sum <"$dir/www/integers.jsonl" | cut -c 1-64)", "url": "$url/integers.jsonl", "convert": null},
{"path": "tiny/rows.jsonl", "bytes": null, "sha256": null, "url": "$url/rows.json", "convert": "hf_rows"}
]}
]
}
END

# ---- one command ----

# The output in $1 and the files in $2, without times, dates and the paths of this run; $3: its folder.
collect() {
    { cat "$1"; find "$2" -type f ! -name '*.lock' ! -name log 2>/dev/null | LC_ALL=C sort |
        while read -r f; do echo "== ${f#"$2"}"; cat "$f"; done; } |
        sed -E -e "s#$3/##g" \
            -e 's#http://127.0.0.1:[0-9]+#URL#g; s/"(id":"chatcmpl-|created":)[0-9a-f]+/"\10/g' \
            -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+Z?)?/DATE/g' \
            -e 's/"(seconds|started|ended|wall_s|cpu_s|elapsed[a-z_]*|pid|sha256|digest|load[a-z_0-9]*|samples_sha256)": *[^,}]*/"\1":0/g'
}

# Leaves out measured figures, their number, and what depends on them. A "-" stands in a table for a
# figure that needs more samples than there was time for.
mask() {
    sed -E -e 's/-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?|null/N/g' -e ':dash s/(^| )-( |$)/\1N\2/; t dash' -e 's/N(, ?N)+/N/g' -e 's/ +/ /g' \
        -e 's/\b(shared|noisy|outliers|bytes|flops)\b//g' -e 's/"(flags|stop_reason)": ?(\[[^]]*\]|"[a-z]*")//g'
}

# The allocations that fail in turn, of $1; $2: FIRST, $3: MORE.
numbers() {
    first=$2
    [ "$1" -lt "$first" ] && first=$1
    seq 1 "$first"
    [ "$1" -gt "$first" ] && [ "$3" -gt 0 ] && seq $((first + 1)) $((($1 - first) / $3 + 1)) "$1"
    [ "$name" != serve ] || seq $(($1 - 160)) "$1" # the request, after the start
}

# Runs a command: run FOLDER ARGUMENT..., with FILES as FOLDER/files. Further variables for failing_alloc.c
# are in the environment.
run() {
    here=$1
    shift
    stdin=/dev/null
    [ "${2:-}" = worker ] && stdin=$dir/worker.jsonl
    ALLOC_FAIL_REQUEST=
    [ "$1" = serve ] && ALLOC_FAIL_REQUEST=$dir/chat.http
    export ALLOC_FAIL_REQUEST
    [ "$1" = merge ] && cp -r "$dir/shards" "$dir/parts" "$here/"
    # With the plugin loaded already, the loader allocates nothing: its messages hide exhausted memory.
    # shellcheck disable=SC2046
    LD_PRELOAD="$failing $plugin" "$program" $(echo "$*" | sed "s#FILES#$here/files#; s#SHARDS#$here/shards#g; s#PARTS#$here/parts#g") <"$stdin"
}

# Whether the output $1 of a server is right although its memory ran out: it is the wanted one up to an
# error, or up to where the connection ended.
is_partly_right() {
    awk 'FILENAME == ARGV[1] { want[FNR] = $0; next }
        ended && NF { wrong = 1 }
        ended || $0 == want[FNR] { next }
        /^status [45]/ { refused = 1; next }
        refused && /^\{"error":/ || /^data: \{"error":/ || $0 == "no answer" { ended = 1; next }
        /"finish_reason":"error"/ { next }
        index(want[FNR], $0) == 1 { ended = 1; next }
        { wrong = 1 }
        END { exit wrong }' "$want" "$1"
}

# Prints "kind n exit CODE: MESSAGE" for each run of the folder $1; $2: the right exit code. Whether an
# output is the same is not judged yet: then the kind is "same".
judge() {
    awk -v dir="$1" -v right="$2" '{
        kind = $2 > 128 ? "crash" : $2 == 3 ? "unclear" : $2 == right ? "same" : "code"
        file = dir "/" $1 ".err"
        last = ""
        while ((getline last < file) > 0)
            if (kind == "unclear" && tolower(last) ~ /memory/)
                kind = "clear"
        close(file)
        if (kind == "unclear" && right == 3)
            kind = "same"
        print kind, $1, "exit " $2 ": " substr(last, 1, 120)
    }' "$1/results" | while read -r kind rest; do
        if [ "$kind" = same ]; then
            n=${rest%% *}
            collect "$1/$n.out" "$1/$n.files" "$1" | $view >"$1/seen"
            cmp -s "$1/seen" "$want" || kind=wrong
            grep -q 'out of memory\|memory or the limit on threads is exhausted' "$1/seen" && kind=clear
            [ -n "${DIFF:-}" ] && [ $kind = wrong ] && diff "$want" "$1/seen" | cut -c 1-200 | head -n 10 >&2
        fi
        if [ "$name" = serve ] && { [ "$kind" = clear ] || [ "$kind" = wrong ]; }; then
            n=${rest%% *}
            collect "$1/$n.out" "$1/$n.files" "$1" >"$1/seen"
            kind=clear
            is_partly_right "$1/seen" || kind=wrong
        fi
        printf "%s %s\n" "$kind" "$rest"
    done
}

# $1: name; $2: FIRST; $3: MORE; then the arguments of the command
test_command() {
    name=$1 first=$2 more=$3 view=cat
    shift 3
    for pass in 1 2; do
        mkdir "$dir/$name.$pass"
        code=0
        ALLOC_FAIL_COUNT=$dir/$name.count run "$dir/$name.$pass" "$@" >"$dir/$name.$pass/out" 2>"$dir/$name.$pass/err" || code=$?
        collect "$dir/$name.$pass/out" "$dir/$name.$pass/files" "$dir/$name.$pass" >"$dir/$name.$pass.all"
    done
    # If an input file is missing, the command ends early, and only its error message is tested.
    if grep 'No such file or directory' "$dir/$name.1/err" >&2; then
        echo "alloc_fail: $name: a file that the command reads is missing" >&2
        : >"$dir/failed"
        return
    fi
    want=$dir/$name.1.all
    if ! cmp -s "$want" "$dir/$name.2.all"; then
        view=mask want=$dir/$name.masked
        mask <"$dir/$name.1.all" >"$want"
    fi
    n=$(cat "$dir/$name.count")
    here=$dir/$name.runs
    mkdir "$here"
    numbers "$n" "$first" "$more" | sort -nu >"$here/list"
    ALLOC_FAIL_LIST=$here/list ALLOC_FAIL_DIR=$here run "$here" "$@"
    judge "$here" "$code" >"$here/judged"
    awk -v name="$name" -v n="$n" '{ k[$1]++ } END {
        printf "%-13s %7d allocations, %5d failed in turn: %d same, %d clear; not right: %d wrong, %d unclear, %d code, %d crash\n",
            name, n, NR, k["same"], k["clear"], k["wrong"], k["unclear"], k["code"], k["crash"] }' "$here/judged"
    if grep -qv '^\(same\|clear\) ' "$here/judged"; then
        : >"$dir/failed"
        grep -v '^\(same\|clear\) ' "$here/judged" | sort -k 1,1 -k 2n | head -n "${SHOW:-12}" | sed 's/^/    /'
    fi
    [ -n "${KEEP:-}" ] || rm -rf "$dir/$name".*
}

# Tests each of the commands that no other job has begun.
test_commands() {
    for name in $names; do
        mkdir "$dir/begun/$name" 2>/dev/null || continue
        # shellcheck disable=SC2046
        set -- $(grep "^$name " "$dir/commands")
        if [ $all = 1 ]; then
            more=2000
            [ "$3" -lt 10 ] && more=20 # these runs take seconds
            shift 3
            set -- "$name" $((2 * more)) $more "$@"
        fi
        test_command "$@" >"$dir/begun/$name/said"
        cat "$dir/begun/$name/said"
    done
}

ls -A >"$dir/before"
commands >"$dir/commands"
names=${*:-$(awk '{print $1}' "$dir/commands")}
for name in $names; do
    grep -q "^$name " "$dir/commands" || {
        echo "alloc_fail: no command '$name': $(awk '{print $1}' "$dir/commands" | xargs)" >&2
        exit 2
    }
done
mkdir "$dir/begun"
started=
for _ in $(seq "$jobs"); do
    test_commands &
    started="$started $!"
done
# shellcheck disable=SC2086
wait $started # without these numbers, wait would also wait for the file server, which does not end
ls -A | diff "$dir/before" - || { # "> NAME": a command has written to the working directory
    echo 'alloc_fail: a command has written to the working directory' >&2
    : >"$dir/failed"
}
[ ! -e "$dir/failed" ]
