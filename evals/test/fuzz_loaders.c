/* fuzz_loaders.c - fuzzes the readers of the tasks' data files. The first byte holds options, and
 * the other bytes become the data file. The result must be a set of problems that can be graded, or
 * an error message.
 *
 * Bits 0 to 3 and 7 of the first byte select the task. Bit 4 selects the file name: rows.jsonl if
 * set, else answers.csv. Bit 5 selects the policy of grading: strict if set, else field. Bit 6
 * selects the limit on the number of problems: none if set, else 2. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "base/text.h"
#include "evals/task.h"
#include "evals/test/task_of.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const task_spec *choose(uint8_t byte) {
    size_t n = 0;
    while (task_known[n])
        n++;
    return task_of(task_known[((byte & 15) | (byte & 128) >> 3) % n]);
}

/* Creates the files that HMMT's table of answers refers to. */
static void make_problems(void) {
    static const char text[] = "What is $1 + 1$?\n";
    if (fuzz_folder[0])
        return;
    (void)mkdir(fuzz_path("problems"), 0700);
    (void)fuzz_file("problems/1.tex", text, sizeof text - 1);
    (void)fuzz_file("problems/2.tex", text, sizeof text - 1);
    (void)fuzz_file("problems/3.tex", "\xff", 1);
}

static void check_set(const task_set *set) {
    if (!set->n || set->n > set->rows || strlen(set->sha256) != HASH_HEX - 1)
        __builtin_trap();
    for (size_t i = 0; i < set->n; i++) {
        const task_problem *p = &set->problems[i];
        const char *prompt = p->messages[0].content;
        size_t at;
        if (!prompt[0] || !text_is_utf8(prompt, strlen(prompt)) ||
            grade_check_gold(set->grader, p->gold, NULL) != SNAP_OK ||
            task_problem_find(set, p->id, &at) != p || at != i)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    make_problems();
    const task_options options = {.policy = data[0] & 32 ? MATH_STRICT : MATH_FIELD,
                                  .gpqa_password = "secret"};
    const char *path = fuzz_file(data[0] & 16 ? "rows.jsonl" : "answers.csv", data + 1, size - 1);
    task_set set;
    snap_err err = {0};
    snap_status st = task_load(choose(data[0]), path, data[0] & 64 ? 0 : 2, &options, &set, &err);
    if (st == SNAP_OK)
        check_set(&set);
    else if (!err.text[0])
        __builtin_trap();
    task_set_release(&set);
    return 0;
}
