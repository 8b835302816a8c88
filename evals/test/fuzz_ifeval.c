/* Uses any bytes as a response to all 25 kinds of instructions and as a judge model's text: no
 * crash, no endless loop, and values between 0 and 1. */
#include <stdint.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *all_kinds(void) {
    static buf gold;
    if (!gold.len && (fs_read("evals/test/fixtures/ifeval_all.json", &gold, NULL) != SNAP_OK ||
                      grader_ifeval.check_gold(buf_str(&gold), NULL) != SNAP_OK))
        __builtin_trap(); /* must run in the root of the repository */
    return buf_str(&gold);
}

static void judge(const grader *g, grade_input in) {
    grade_result r = g->grade(all_kinds(), in);
    if (!r.reason || !text_is_utf8(r.extracted, strlen(r.extracted)))
        __builtin_trap();
    for (int i = 0; i < 3; i++)
        if (!(r.also[i].value >= 0 && r.also[i].value <= 1) || r.also[1].weight != 25)
            __builtin_trap();
    if (r.also[2].value < r.also[1].value) /* an instruction that is followed strictly is also
                                              followed loosely */
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const span text = {(const char *)data, n};
    judge(&grader_ifeval, (grade_input){.response = text});
    judge(&grader_ifeval_plain, (grade_input){.response = text, .extracted = true});
    const char *verdict = arena_verdict(text);
    if (verdict && strlen(verdict) > 4)
        __builtin_trap();
    return 0;
}
