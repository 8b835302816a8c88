#!/bin/sh
# Runs the shell steps of ci/jobs/ in a clone, with programs that are built already and few
# sessions. Equal arms must pass, a delayed arm must fail with 1, and the files to be published must
# exist.
#   test_jobs.sh BUILD
set -eu
program=$(realpath "$1/snapmla")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "jobs: $1" >&2
    exit 1
}
git clone -q --no-local . "$dir/clone"
for f in $(git ls-files -m -o --exclude-standard ci configs); do # also changes that are not committed
    mkdir -p "$dir/clone/$(dirname "$f")" && cp "$f" "$dir/clone/$f"
done
cd "$dir/clone"

# The steps of a job: `run: ...` of GitHub, the items of `script:` of GitLab. Each is one line.
github_steps() { # JOB
    awk -v job="  $1:" '/^  [a-z]+:$/ {on = $0 == job} on && sub(/^ +- run: /, "")' ci/jobs/github.yml
}
gitlab_steps() { # JOB
    awk -v job="$1:" '/^[.a-z-]+:$/ {on = $0 == job; list = 0} on && /^  [a-z_]+:/ {list = /^  script:$/}
        on && list && sub(/^    - /, "")' ci/jobs/gitlab.yml
}

branch=$(git rev-parse --abbrev-ref HEAD)
export GITHUB_BASE_REF="$branch" CI_MERGE_REQUEST_TARGET_BRANCH_NAME="$branch"
export GATE_BASELINE="$program" SNAPMLA_HEADS=1 SNAPMLA_BATCH=1 SNAPMLA_CONTEXT=256 SNAPMLA_ARMS=fp8 \
    SNAPMLA_SCOPE=kernel SNAPMLA_SESSIONS=6 SNAPMLA_LOOKS=1 SNAPMLA_THRESHOLD=50 SNAPMLA_BACKEND=cpu
export GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$dir/summary.md"

# play NAME EXIT: runs the steps on standard input; EXIT is the expected exit code
play() {
    steps=$(cat)
    [ -n "$steps" ] || fail "$1: no steps found"
    code=0
    rm -rf gate-out
    echo "$steps" | grep -v '^sh ci/install-deps' >"$dir/steps"
    sh -eu "$dir/steps" >"$dir/stdout" 2>"$dir/stderr" </dev/null || code=$?
    [ $code = "$2" ] || { cat "$dir/stdout" "$dir/stderr"; fail "$1: exit code $code, expected $2"; }
    for f in gate.json junit.xml gate.md code-quality.json; do
        [ -s "gate-out/$f" ] || fail "$1: no gate-out/$f"
    done
}

for current in "$program 0" "$program,delay=300 1"; do
    export GATE_CURRENT="${current% *}"
    for job in cpu gpu; do
        [ $job = cpu ] || export SNAPMLA_CONFIG=configs/gate-gpu.json
        github_steps $job | play "github $job" "${current##* }"
        gitlab_steps gate-$job | play "gitlab $job" "${current##* }"
        unset SNAPMLA_CONFIG
    done
done
grep -q '^::error title=snapmla gate' "$dir/stderr" || fail 'no annotation of the regression'
grep -qE '[1-9][0-9]* regressed' "$dir/summary.md" || fail 'no summary of the regression'
"$program" verify-run gate-out/gate.json >/dev/null || fail 'the result does not verify'
if command -v xmllint >/dev/null 2>&1; then
    xmllint --noout gate-out/junit.xml || fail 'junit.xml is not XML'
fi
echo 'jobs: the steps of both systems pass and fail as expected'
