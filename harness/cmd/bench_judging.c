/* bench_judging.c - `snapmla bench grading` and `snapmla bench tokenizer`, which time graders and
 * tokenizers on one core. */
#include "base/fs.h"
#include "harness/bench/grading.h"
#include "harness/bench/tokenizing.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/bench_tables.h"

enum { kMadeUpBytes = 4 << 20 };

static const char *dir, *text;
static int64_t seed = 1;
static double min_time = 0.25;

#define MEASURING                                                                                  \
    {.type = OPT_GROUP, .help = "Measuring"},                                                      \
        {OPT_INT, "seed", 0, &seed, "N", "seed of the generated input", 0, 1e15}, {                \
        OPT_NUM, "min-time", 0, &min_time, "S", "minimum measured time of one row, in seconds", 0, \
            3600                                                                                   \
    }

/* ---- bench grading ---- */

static const opt grading_options[] = {MEASURING, {.type = OPT_END}};

static snap_status run_grading(opt_shared *shared, snap_err *err) {
    grading_row rows[GRADING_ROWS];
    snap_status st = grading_bench((uint64_t)seed, min_time, rows, err);
    if (st != SNAP_OK)
        return st;
    table t = grading_table(rows);
    js *all = shared->json ? grading_json(rows) : NULL;
    st = shared->json ? print_json(all, err) : print_table(&t, err);
    table_release(&t);
    js_free(all);
    return st;
}

const opt_command cmd_bench_grading = {
    .name = "bench grading",
    .summary = "measure how many answers one core grades per second",
    .synopsis = "[options]",
    .about = "Times the graders on generated answers, half of which are correct. A rate is\n"
             "reported only if every verdict is the known one.",
    .examples = "  snapmla bench grading\n"
                "  snapmla bench grading --min-time 2 --json",
    .options = grading_options,
    .run = run_grading,
    .of = &cmd_bench,
};

/* ---- bench tokenizer ---- */

static const opt tokenizer_options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "model", 'm', &dir, "DIR", "folder of the checkpoint", 0, 0},
    {OPT_STR, "text", 0, &text, "FILE",
     "file with the text; default: 4 MiB of generated words, numbers and code", 0, 0},
    MEASURING,
    {.type = OPT_END}};

static snap_status run_tokenizer(opt_shared *shared, snap_err *err) {
    snap_status st = SNAP_OK;
    buf input = {0};
    tokenizing_row row;
    table t = {0};
    js *all = NULL;
    if (!dir)
        return err_set(err, SNAP_E_USAGE,
                       "no checkpoint is given: name its folder with --model DIR");
    if (text)
        TRY(fs_read(text, &input, err));
    else
        tokenizing_text((uint64_t)seed, kMadeUpBytes, &input);
    TRY(buf_check(&input, "a text", err));
    TRY(tokenizing_bench(dir, buf_str(&input), input.len, min_time, &row, err));
    t = tokenizer_table(&row);
    all = shared->json ? tokenizer_json(&row) : NULL;
    TRY(shared->json ? print_json(all, err) : print_table(&t, err));
cleanup:
    table_release(&t);
    js_free(all);
    buf_release(&input);
    return st;
}

const opt_command cmd_bench_tokenizer = {
    .name = "bench tokenizer",
    .summary = "measure the speed of a checkpoint's tokenizer on one core",
    .synopsis = "--model DIR [options]",
    .about = "Times the tokenizer of a checkpoint in both directions. A speed is reported only\n"
             "if decoding the tokens gives the original text.",
    .examples = "  snapmla bench tokenizer --model models/snapmla-10m\n"
                "  snapmla bench tokenizer --model DIR --text book.txt",
    .options = tokenizer_options,
    .run = run_tokenizer,
    .of = &cmd_bench,
};
