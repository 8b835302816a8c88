/* Any bytes as a response: no crash, no hang, and a result that keeps its promises. */
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "evals/grade.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!n)
        return 0;
    grade_input in = {.response = {(const char *)data + 1, n - 1},
                      .extracted = data[0] & 1,
                      .truncated = data[0] & 2};
    grade_result r = grader_aime.grade("204", in);
    size_t kept = strlen(r.extracted);
    if (kept >= sizeof r.extracted || !text_is_utf8(r.extracted, kept) || !r.reason)
        __builtin_trap();
    if ((r.verdict == GRADE_UNPARSED) != (r.rule == NULL))
        __builtin_trap();
    return 0;
}
