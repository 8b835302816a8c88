/* Grades any bytes as a response, and reads them as a judge model's opinion: no crash, no endless
 * loop, and a consistent result. */
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "evals/grade.h"
#include "evals/opinion.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char kGrid[] = "{\"header\": [\"House\", \"Name\"], \"rows\": [[\"1\", \"Ann\"], "
                            "[\"2\", \"Bob\"]]}";

/* @reads: the grader can parse whatever is extracted, so unparsed means that nothing was
 * extracted. */
static void judge(const grader *g, const char *gold, grade_input in, int reads) {
    grade_result r = g->grade(gold, in);
    size_t kept = strlen(r.extracted);
    if (kept >= sizeof r.extracted || !text_is_utf8(r.extracted, kept) || !r.reason)
        __builtin_trap();
    if (!r.rule && (r.verdict != GRADE_UNPARSED || kept))
        __builtin_trap();
    if (r.undecided && (r.verdict == GRADE_CORRECT || !kept))
        __builtin_trap();
    if (reads && r.rule && r.verdict == GRADE_UNPARSED)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!n)
        return 0;
    grade_input in = {.response = {(const char *)data + 1, n - 1},
                      .extracted = data[0] & 1,
                      .truncated = data[0] & 2};
    judge(&grader_aime, "204", in, 1);
    judge(&grader_gsm8k, "#### 1,204", in, 1);
    judge(&grader_letter, "C", in, 1);
    judge(&grader_ten_letters, "J", in, 1);
    judge(&grader_letter_field, "C", in, 1);
    judge(&grader_zebra, kGrid, in, 1);
    judge(&grader_math_field, "\\frac{1}{2}, 3", in, 0);
    judge(&grader_math_strict, "x^2", in, 0);
    if ((unsigned)opinion_parse(in.response) > OPINION_DIFFERENT)
        __builtin_trap();
    return 0;
}
