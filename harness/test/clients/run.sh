#!/bin/sh
# Runs real clients against `snapmla serve` with the small model, and records one raw request of each kind.
# It is run by hand, because it needs packages from PyPI. The test serve_clients replays the recorded requests.
#   run.sh SNAPMLA OUT CLIENT...     CLIENT: openai, lm-eval, guidellm, aiperf
# VENV_OPENAI, VENV_LM_EVAL, VENV_GUIDELLM and VENV_AIPERF are virtual environments that have the packages
# openai; lm-eval[api] and transformers; guidellm; aiperf. OUT/NAME-N.http are the requests, OUT/NAME.log
# is what the client printed. A client that fails ends the script with 1.
set -eu
here=$(dirname "$(realpath "$0")") snapmla=$(realpath "$1") out=$2
root=$(realpath "$here/../../..")
model=$root/models/snapmla-10m name=snapmla-10m
shift 2
mkdir -p "$out"
out=$(realpath "$out")
server='' proxy=''
trap 'kill $server $proxy 2>/dev/null || true' EXIT
"$snapmla" serve --sequences 16 --context 2048 --port 0 "$model" >"$out/serve.txt" &
server=$!
for _ in $(seq 100); do
    grep -q '^serving' "$out/serve.txt" && break
    sleep 0.1
done
port=$(sed -n 's/.*:\([0-9]*\).v1$/\1/p' "$out/serve.txt")
url=http://127.0.0.1:8000

# record NAME PYTHON: starts the proxy in front of the server
record() {
    "$2" "$here/proxy.py" 8000 "$port" "$out" "$1" &
    proxy=$!
    sleep 1
}
# finish NAME COMMAND...: runs a client, then ends the proxy
finish() {
    log=$out/$1.log
    shift
    "$@" >"$log" 2>&1 || { tail -n 20 "$log" && exit 1; }
    kill $proxy
    wait $proxy 2>/dev/null || true
    echo "$(basename "$log" .log): $(tail -n 1 "$log")"
}

# 20 questions, and the members of a row that GuideLLM and AIPerf read
seq 20 | awk '{ q = sprintf("What is %d + %d?", 3 + $1, 2 * $1)
    printf "{\"text\": \"%s\", \"prompt\": \"%s\", \"output_tokens_count\": 12}\n", q, q }' >"$out/requests.jsonl"
cd "$here"
for client in "$@"; do
    case $client in
    openai)
        record openai "$VENV_OPENAI/bin/python"
        finish openai "$VENV_OPENAI/bin/python" openai_client.py $url/v1 $name
        ;;
    lm-eval)
        record lm-eval-completions "$VENV_LM_EVAL/bin/python"
        finish lm-eval-completions "$VENV_LM_EVAL/bin/lm_eval" run --model local-completions \
            --model_args "model=$name,base_url=$url/v1/completions,tokenizer=$model,num_concurrent=4" \
            --tasks snapmla_choices,snapmla_text,snapmla_questions --include_path . --log_samples \
            --output_path "$out/lm-eval-completions"
        record lm-eval-remote "$VENV_LM_EVAL/bin/python"
        finish lm-eval-remote "$VENV_LM_EVAL/bin/python" remote_tokenizer.py $url/v1/completions
        record lm-eval-chat "$VENV_LM_EVAL/bin/python"
        finish lm-eval-chat "$VENV_LM_EVAL/bin/lm_eval" run --model local-chat-completions --apply_chat_template \
            --model_args "model=$name,base_url=$url/v1/chat/completions,num_concurrent=4" \
            --tasks snapmla_questions --include_path . --log_samples --output_path "$out/lm-eval-chat"
        ;;
    guidellm)
        record guidellm "$VENV_GUIDELLM/bin/python"
        finish guidellm "$VENV_GUIDELLM/bin/guidellm" run --backend "kind=openai_http,target=$url,model=$name" \
            --profile kind=concurrent,streams=4 --constraint kind=max_requests,count=20 \
            --tokenizer "kind=huggingface_auto,model=$model" --data "kind=json_file,path=$out/requests.jsonl" \
            --output "kind=json,path=$out/guidellm.json" --disable-console-interactive
        ;;
    aiperf)
        record aiperf "$VENV_AIPERF/bin/python"
        finish aiperf "$VENV_AIPERF/bin/aiperf" profile --model $name --url $url --endpoint-type chat --streaming \
            --tokenizer "$model" --concurrency 4 --request-count 20 --input-file "$out/requests.jsonl" \
            --custom-dataset-type single_turn --use-server-token-count --artifact-dir "$out/aiperf" --ui none \
            --extra-inputs max_tokens:12 --extra-inputs temperature:0
        ;;
    *)
        echo "run.sh: no client '$client'" >&2
        exit 2
        ;;
    esac
done
