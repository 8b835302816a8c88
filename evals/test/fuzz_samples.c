/* fuzz_samples.c - fuzzes the reader of samples.jsonl. The fuzzer's bytes become the samples.jsonl
 * of a run that is resumed. The run must refuse the file with a message, or grade it. Grading
 * rewrites the file, and grading the rewritten file must give the same verdicts. */
#include <stdint.h>
#include <string.h>

#include "base/test/fuzz_file.h"
#include "evals/samples.h"
#include "evals/test/task_of.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CELLS = 2 * 2 * 2 };

static eval_arm arms[] = {
    {.name = "a", .spec = "replay:a", .kind = "replay", .max_retries = -1, .temperature = -1},
    {.name = "b", .spec = "replay:b", .kind = "replay", .max_retries = -1, .temperature = -1}};
static eval_task task = {.samples = 2, .sampling = {.temperature = 1, .max_tokens = 64, .seed = 1}};
static eval_plan plan = {.tasks = &task, .arms = arms, .n_tasks = 1, .n_arms = 2, .margin = 0.02};

static void make_plan(void) {
    static const char rows[] = "{\"id\": \"p\", \"prompt\": \"1 + 1?\", \"answer\": 2}\n"
                               "{\"id\": \"q\", \"prompt\": \"2 + 2?\", \"answer\": 4}\n";
    const char *path = fuzz_file("rows.jsonl", rows, sizeof rows - 1);
    if (task_load(task_of("synth_aime"), path, 0, NULL, &task.set, NULL) != SNAP_OK)
        __builtin_trap();
}

/* False if the file was refused. */
static bool grade(const char *path, sample_outcome outcomes[CELLS]) {
    sample_store *s = NULL;
    snap_err err = {0};
    snap_status st = samples_open(&s, &plan, path, &err);
    if (st == SNAP_OK)
        st = samples_grade(s, outcomes, &err);
    samples_close(s);
    if (st != SNAP_OK && !err.text[0])
        __builtin_trap();
    return st == SNAP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sample_outcome first[CELLS] = {0}, second[CELLS] = {0};
    if (!task.set.n)
        make_plan();
    const char *path = fuzz_file("samples.jsonl", data, size);
    if (!grade(path, first))
        return 0;
    if (!grade(path, second))
        __builtin_trap();
    for (int i = 0; i < CELLS; i++)
        if (first[i].present != second[i].present || first[i].verdict != second[i].verdict ||
            first[i].failed != second[i].failed || first[i].text_hash != second[i].text_hash)
            __builtin_trap();
    return 0;
}
