#!/bin/sh
# Every check, with the time each took; the same on a developer's machine.
set -eu
began=$(date +%s)
sh ci/install-deps.sh lint
make DEVELOPER=1 check
echo "checks took $(($(date +%s) - began)) s"
