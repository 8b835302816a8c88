#!/bin/sh
# Writes problems.jsonl, bf16.jsonl and fp8.jsonl, the set of the demonstration, into this folder.
#
# The problems are ours; the recorded answers are written by this script, not by a model. They hold
# what a real run holds: right answers in several forms, wrong ones, one cut off by the length
# limit, one that states no answer, lengths that drift by a few percent.
set -eu
cd "$(dirname "$0")"

# id | problem | answer | how
table='p01|Find the sum of the positive divisors of 84.|224|84 = 2^2 * 3 * 7, so the sum is (1+2+4)(1+3)(1+7)
p02|How many positive integers not exceeding 1000 are divisible by none of 2, 3 and 5?|266|inclusion and exclusion: 1000 - 500 - 333 - 200 + 166 + 100 + 66 - 33
p03|Find the remainder when 7^100 is divided by 1000.|1|7^4 = 2401, and (1 + 2400)^25 leaves the same as 1 + 25 * 2400
p04|In how many ways can a 2 by 10 rectangle be tiled with dominoes?|89|the counts follow the Fibonacci recurrence 1, 2, 3, 5, 8, 13, 21, 34, 55, 89
p05|How many lattice paths of unit steps right and up lead from (0,0) to (5,4)?|126|choose the 4 steps up among 9
p06|Find the sum of the decimal digits of 2^50.|76|2^50 = 1125899906842624
p07|Find the area of the triangle with sides 13, 14 and 15.|84|by Heron, the root of 21 * 8 * 7 * 6 = 7056
p08|How many subsets of {1, 2, ..., 10} contain no two consecutive integers?|144|the counts follow the Fibonacci recurrence and the tenth is F(12)
p09|Find the greatest common divisor of 2^20 - 1 and 2^15 - 1.|31|it is 2^d - 1 with d the greatest common divisor of 20 and 15
p10|In how many zeros does 500! end?|124|100 + 20 + 4 factors of five
p11|How many ordered pairs of positive integers have least common multiple 72?|35|72 = 2^3 * 3^2 gives 7 choices for the power of two times 5 for that of three
p12|How many three-digit palindromes are divisible by 11?|8|aba is divisible when b = 2a or b = 2a - 11'

printf '%s\n' "$table" | awk -F '|' '
    { printf "{\"answer\": %d, \"id\": \"%s\", \"problem\": \"%s\"}\n", $3, $1, $2 }' > problems.jsonl

# $1: arm; $2: percent by which its answers are longer; $3: "id/sample=kind" exceptions
record() {
    printf '%s\n' "$table" | awk -F '|' -v arm="$1" -v longer="$2" -v list="$3" '
    BEGIN {
        n = split(list, item, " ")
        for (i = 1; i <= n; i++) { split(item[i], kv, "="); kind[kv[1]] = kv[2] }
        form[0] = "The answer is \\\\boxed{%d}."
        form[1] = "So we get $\\\\boxed{\\\\text{%03d}}$."
        form[2] = "**Final answer:** $%d$."
        form[3] = "Hence the value is $\\\\boxed{ %d }$, as was asked."
    }
    {
        for (k = 0; k < 4; k++) {
            what = kind[$1 "/" k]
            value = what == "wrong" ? ($3 + 10) % 1000 : $3
            text = "We use that " $4 ". " sprintf(form[k], value)
            reason = "stop"
            if (what == "cut") { text = "We use that " $4 ". Let me check this again, because"; reason = "length" }
            if (what == "none") text = "I see two ways to count them and cannot settle on a value."
            tokens = int((150 + (NR * (37 + longer) + k * 53) % 90) * (100 + longer) / 100)
            if (what == "cut") tokens = 512
            printf "{\"arm\": \"%s\", \"completion_tokens\": %d, \"finish_reason\": \"%s\", \"problem\": \"%s\", ", arm, tokens, reason, $1
            printf "\"prompt_tokens\": %d, \"response\": \"%s\", \"sample\": %d, \"task\": \"synth_aime\"}\n", 20 + length($2) / 4, text, k
        }
    }'
}
record bf16 0 'p02/1=wrong p03/0=wrong p06/2=wrong p08/0=wrong p08/3=wrong p11/1=wrong p12/2=cut' > bf16.jsonl
record fp8 3 'p02/3=wrong p03/0=wrong p03/2=wrong p06/1=wrong p08/2=wrong p11/0=wrong p12/1=none p12/2=cut' > fp8.jsonl
