/* fuzz_taskfile.c - fuzzes task files. The input is a task file, a NUL, and the rows of its data
 * file. The result must be a set of problems that can be graded, or an error message. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "base/text.h"
#include "evals/taskfile/task_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A problem's prompt must be text, and its gold must be one that the grader accepts. */
static void check_set(const task_set *set) {
    static const char answer[] = "So the answer is (B), \\boxed{7} or 12.";
    for (size_t i = 0; i < set->n; i++) {
        const task_problem *p = &set->problems[i];
        grade_result r;
        for (int m = 0; m < p->n_messages; m++)
            if (!p->messages[m].content[0] ||
                !text_is_utf8(p->messages[m].content, strlen(p->messages[m].content)))
                __builtin_trap();
        if (grade_check_gold(set->grader, p->gold, NULL) != SNAP_OK)
            __builtin_trap();
        if (!grade_runs_programs(set->grader) && !set->grader->by_model && !set->grader->recorded)
            (void)grade_response(set->grader, p->gold,
                                 (grade_input){.response = {answer, sizeof answer - 1}}, &r, NULL);
    }
}

static void check_file(task_file *f, const char *rows) {
    const task_spec *t = task_file_spec(f);
    const grader *g = t->grader;
    const task_options options = {.lengths = "300"}; /* generated texts have 300 tokens only, for
                                                        speed */
    task_set set;
    snap_err err = {0};
    if (!g || !g->id[0] || strlen(t->file_sha256) != HASH_HEX - 1)
        __builtin_trap();
    if (task_load(t, rows, 4, &options, &set, &err) == SNAP_OK)
        check_set(&set);
    else if (!err.text[0])
        __builtin_trap();
    task_set_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t n = end ? (size_t)(end - data) : size, rest = end ? size - n - 1 : 0;
    const char *rows = fuzz_file("rows.jsonl", end ? end + 1 : data, rest);
    task_file *f;
    snap_err err = {0};
    if (task_file_parse((const char *)data, n, "task.json", NULL, &f, &err) == SNAP_OK)
        check_file(f, rows);
    else if (f || !err.text[0])
        __builtin_trap();
    task_file_free(f);
    return 0;
}
