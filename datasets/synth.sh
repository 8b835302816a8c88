#!/bin/sh
# Writes held-out problems of our own generator. Their levels are chosen so that version 1 of
# models/snapmla-10m answered 70 to 90 % of the samples of a set correctly:
#   synth.sh PROGRAM FOLDER [PROBLEMS]      writes FOLDER/synth_aime.jsonl and the other three
# AIME, MATH, GPQA and CODE in the environment are other lists of levels.
set -eu
program=$1
to=$2
count=${3:-500}
mkdir -p "$to"
write() { # STYLE LEVELS
    "$program" synth --quiet --style "$1" --level "$2" --count "$count" --out "$to/synth_$1.jsonl"
}
write aime "${AIME:-3,4,5}"
write math "${MATH:-3,4,4,4,5}"
write gpqa "${GPQA:-3,4,6}"
write code "${CODE:-2,3,6}"
