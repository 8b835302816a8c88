#!/bin/sh
# Gives a named pipe to every argument, and as the value of every option. Nothing ever writes to the pipe, so a
# command that opens it like a file waits for ever.
#   named_pipes.sh PROGRAM [WORD]     WORD: only commands with this text in them
#
# The options are those of the man page, so a new one is tested without a change here. Each command must end
# within PIPE_SECONDS (60). Where the man page says FILE, DIR, PATH, RUN or the like, the command must also have
# reached the pipe: its output names it, or a file has replaced it. If an option needs other options to be
# reached, they belong in table() below.
set -u
program=$(realpath "$1")
only=${2:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export NO_COLOR=1
unset SNAPMLA_CONFIG SNAPMLA_API_KEY
pipe=$dir/named-pipe
absent=$dir/absent
run=harness/test/fixtures/run.json
# what bench model --predict needs: measured steps and cells of the kernel
steps=results/nvidia-h200-x2/2026-11-29-6077fc3347b9-layouts-lite-one.json,results/nvidia-h200/2026-11-23-2fe0fc2b7528-table.json
log=harness/test/fixtures/logs/samples_sums_2026-01-01T00-00-00.000000.jsonl
plugins=$(dirname "$program")/plugins
arm="--arm a=replay:datasets/synth_aime/bf16.jsonl"
url="--arm a=http://127.0.0.1:9/v1,model=m,key_env=none"
few="--shapes 1/1/1/1 --min-time 0.001 --min-samples 2 --timeout 0.05"
# a model configuration that is refused, so that no command measures one
echo '{}' >"$dir/empty.json"
mkdir -p "$dir/empty" "$dir/scratch" "$dir/arena/arena_hard"
echo '{"uid": "q", "category": "hard_prompt", "prompt": "p"}' >"$dir/arena/arena_hard/question.jsonl"
echo '{"cells": {"bf16": 500}, "commit": "1", "machine": "m", "started": "2026-01-01T03:04:05Z"}' >"$dir/history"
cat >"$dir/ifeval.jsonl" <<'END'
{"key": 1, "prompt": "x", "instruction_id_list": ["length_constraints:number_sentences", "language:response_language"], "kwargs": [{"num_sentences": 2, "relation": "at least"}, {"language": "de"}], "response": "Mr. Jones has come. NASA, too."}
END
for folder in run "shard1 --shard 1/2" "shard2 --shard 2/2"; do
    # shellcheck disable=SC2086
    "$program" eval -q --suite synth_aime --data datasets --limit 2 --samples 1 $arm --out "$dir"/$folder >"$dir/log" 2>&1 || {
        cat "$dir/log" >&2
        exit 2
    }
done

# What an option needs beside itself: COMMAND|OPTION|ARGUMENTS. OPTION is a name, "argument", or "*" for all
# others. If ARGUMENTS begin with "- ", the command may end before it reaches the pipe: bench model needs a GPU, and
# gate run and gate selftest take long. The code with which they write their files is tested with other commands.
table() {
    cat <<END
bench|*|$few
bench|shapes|--min-time 0.001
bench|lengths|--arms bf16 --heads 1 --batch 1
bench model|*|--model-config $dir/empty.json
bench model|model-config|
bench model|out|- --model-config $dir/empty.json
bench model|measured|--predict --model-config deepseek-v2-lite
bench model|against|--predict --model-config deepseek-v2-lite --measured $steps
bench exchange|out|- --devices 0,1
bench grading|*|--rounds 1 --rows 1
bench serving|data|$url --concurrency 1 --prompts task:synth_aime --out $dir/scratch/serving
bench tokenizer|*|--model $dir/empty
bench tokenizer|text|--model models/snapmla-10m
bench serving|*|$url --concurrency 1 --requests 1 --blocks 1 --warmup 0 --out $dir/scratch/serving
eval|*|--suite synth_aime --limit 1 --samples 1 $arm --out $dir/scratch/eval
eval|suite|$arm --out $dir/scratch/eval
eval|tokenizer|--suite long_order --lengths 300 --limit 1 $arm --out $dir/scratch/eval
eval plan|*|--suite synth_aime
eval show|*|$dir/run
eval show|argument|
eval show|out|
eval check-task|*|aime24
eval check-task|argument|
eval check-task|tokenizer|long_order --lengths 300 -n 1
eval import|*|a=$log --filter strict --metric exact_match --out $dir/scratch/import
eval import|argument|--metric m --out $dir/scratch/import
merge|*|$dir/shard1 $dir/shard2 --out $dir/scratch/merged
merge|argument|--out $dir/scratch/merged
grade|*|--task aime24
fidelity|*|--formats bf16 --contexts 16 --distribution normal
fidelity|model|--text $dir/ifeval.jsonl
fidelity|text|--model models/snapmla-10m
fidelity|predict|--model models/snapmla-10m
fidelity|data|--model models/snapmla-10m --predict synth_aime --limit 1 --samples 2 --max-tokens 1
gate|*|--baseline $run --current $run --allow-shared
gate run|*|- $absent $absent
gate run|argument|self
gate selftest|*|- --shapes x
gate history|*|$dir/history
gate history|argument|
report|*|$run
report|argument|
report paper|*|$run
report paper|argument|
report lm-eval|*|$dir/run
report lm-eval|argument|--out $dir/scratch/lm
report lm-eval|data|--out $dir/scratch/lm $dir/run
compare|*|$run $run
compare|argument|$run
verify-run|*|$run
verify-run|argument|
pack|*|$dir/run
pack|argument|--out $dir/scratch/pack.zip
generate|*|--prompt x $dir/empty
generate|argument|--prompt x
generate|file|models/snapmla-10m
serve|*|$dir/empty
serve|argument|
serve|random-weights|--port 0
synth|*|--count 1
fetch|*|--list --dir $absent
fetch|dir|--accept-licences --retries 0 aime24
fetch|mirror|--accept-licences --retries 0 --dir $absent aime24
roofline|*|--seconds 0.01
conformance|*|--backend plugin:$absent
formats check|*|nvfp4
END
}

# Values that hold the name of a file: the command must reach the pipe. PIPE stands for it.
values() {
    cat <<END
bench --arm a=plugin:PIPE $few
bench --arm a=python:PIPE $few
bench --arm a=plugin:$plugins/packed.so,format=PIPE $few
bench --backend plugin:PIPE $few
bench serving --concurrency 1 --blocks 1 --out $dir/scratch/s --prompts task:PIPE $url
bench serving --concurrency 1 --blocks 1 --out $dir/scratch/s --arm a=http://127.0.0.1:9/v1,key_env=none,header=X-A:@PIPE
eval --suite PIPE.json $arm --out $dir/scratch/e
eval --suite synth_aime --arm a=replay:PIPE --out $dir/scratch/e
eval --suite synth_aime --arm a=local:PIPE --out $dir/scratch/e
eval --suite synth_aime --arm a=local:models/snapmla-10m,template=@PIPE --out $dir/scratch/e
eval --suite synth_aime --arm a=http://127.0.0.1:9/v1,header=X-A:@PIPE --out $dir/scratch/e
eval --suite synth_aime --arm a=http://127.0.0.1:9/v1,body=@PIPE --out $dir/scratch/e
eval --suite synth_aime --arm a=http://127.0.0.1:9/v1,system=@PIPE --out $dir/scratch/e
eval --suite arena_hard --data $dir/arena $arm --judge-model replay:PIPE --out $dir/scratch/e
eval --suite synth_aime $arm --control damaged=replay:PIPE --out $dir/scratch/e
conformance --backend plugin:PIPE
fidelity --formats PIPE --contexts 16 --distribution normal
formats check PIPE
gate run self,backend=plugin:PIPE self --shapes 1/1/1/1
grade --task humaneval PIPE
END
    for task in $("$program" eval check-task no-such-task 2>&1 | sed 's/.*(tasks: //; s/)$//; s/,//g'); do
        case $task in long_*) continue ;; esac # made by the program; no file
        echo "eval check-task $task --data PIPE"
    done
    echo "SNAPMLA_PUNKT=PIPE grade --task ifeval $dir/ifeval.jsonl"
    echo "SNAPMLA_LANGDETECT=PIPE grade --task ifeval $dir/ifeval.jsonl"
    echo "SNAPMLA_CONFIG=PIPE info"
    echo "GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=PIPE gate check --baseline $run --current $run --allow-shared"
}
# One line for each option with a value and for each command with arguments: COMMAND|OPTION|PLACEHOLDER
options() {
    "$program" --man-options | awk '
        /^\.Ss snapmla / {
            command = ""
            for (i = 3; i <= NF && $i ~ /^[a-z][a-z-]*$/; i++)
                command = command (command == "" ? "" : " ") $i
            for (; i <= NF; i++)
                if ($i ~ /^\[?[A-Z]/ && $i !~ /VERB/ && $(i - 1) !~ /^[[(|]*--/ && $(i - 1) != "|") {
                    print command "|argument|" $i
                    break
                }
        }
        /^\.It .*Fl -[a-z0-9-]* Ar / {
            sub(/.*Fl -/, "")
            print command "|" $1 "|" $3
        }'
}

new_pipe() {
    rm -rf "$pipe" "$dir/scratch"
    mkdir "$dir/scratch"
    mkfifo "$pipe"
}

bad=0 n=0
fail() {
    bad=$((bad + 1))
    echo "named_pipes: $*"
}

# check REACHED VARIABLE=VALUE... ARGUMENT...: runs the program; REACHED: 1 if it must reach the pipe
check() {
    reached=$1 code=0 variables=
    shift
    while case ${1:-} in [A-Z]*=*) true ;; *) false ;; esac do
        variables="$variables $1"
        shift
    done
    case "$variables $*" in *"$only"*) ;; *) return ;; esac
    n=$((n + 1))
    # shellcheck disable=SC2086
    env $variables timeout -k 1 "${PIPE_SECONDS:-60}" "$program" "$@" >"$dir/log" 2>&1 </dev/null || code=$?
    if [ $code -ge 124 ]; then
        fail "exit $code:$variables $*"
    elif [ "$reached" = 1 ] && [ -p "$pipe" ] && ! grep -qF "$pipe" "$dir/log"; then
        fail "the pipe is not reached:$variables $*: $(tail -n 1 "$dir/log" | cut -c 1-160)"
    fi
}

table >"$dir/table"
options >"$dir/options"
[ "$(wc -l <"$dir/options")" -ge 300 ] || {
    echo "named_pipes: the man page has $(wc -l <"$dir/options") options only" >&2
    exit 2
}
while IFS='|' read -r command option placeholder; do
    needs=$(awk -F '|' -v c="$command" -v o="$option" '
        $1 == c && $2 == o { exact = $3; found = 1 }
        $1 == c && $2 == "*" { all = $3 }
        END { print found ? exact : all }' "$dir/table")
    case $placeholder in *FILE* | *DIR* | *PATH* | *RUN* | *LOG* | *SHARD* | DIST) reached=1 ;; *) reached=0 ;; esac
    case $needs in "- "*) reached=0 needs=${needs#- } ;; esac
    value=$pipe
    case $placeholder in NAME=*) value=a=$pipe ;; esac
    new_pipe
    # shellcheck disable=SC2086
    if [ "$option" = argument ]; then
        check $reached $command $needs "$value"
    else
        check $reached $command $needs "--$option" "$value"
    fi
done <"$dir/options"
values | sed "s#PIPE#$pipe#g" >"$dir/values"
while read -r line; do
    new_pipe
    # shellcheck disable=SC2086
    check 1 $line
done <"$dir/values"
echo "named pipes: $n commands, $bad failed"
[ $bad = 0 ] && [ $n -gt 0 ]
