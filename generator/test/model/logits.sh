#!/bin/sh
# Logits and formats of the tiny checkpoints, as test_model.c measures them: what logits.csv beside this holds.
#   sh generator/test/model/logits.sh build > generator/test/model/logits.csv
# The references are of make_fixtures.py's run: transformers 5.23.0, torch 2.15.0.
set -eu
echo 'checkpoint,comparison,figure'
SHOW_FIGURES=1 "${1:-build}/test/generator" --suite model |
    sed -n 's/^| \([^|]*\) | \([^|]*\) | \([^|]*\) |.*$/"\1","\2","\3"/p'
