/* cmd_synth.c - `snapmla synth`: generated problems for training and evaluation. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/synth/stream.h"
#include "harness/cmd/cmd.h"

static const char *style_list = "aime,math,gpqa,code", *level_list = "1,2,3,4,5";
static const char *split_name = "heldout", *kind_list, *length_list = "1024", *out_path;
static int64_t count = 100, start, seed = 1, threads, questions = 8;
static bool solutions;
static double chars_per_token = 4;

static const opt options[] = {
    {OPT_STR, "style", 's', &style_list, "LIST", "styles: aime, math, gpqa, code", 0, 0},
    {OPT_STR, "level", 'l', &level_list, "LIST",
     "levels 1 to 6, used in turn; a level that is listed twice is used twice as often; level 6 is "
     "longer than the training data of the shipped model",
     0, 0},
    {OPT_STR, "split", 0, &split_name, "NAME",
     "heldout: for evaluation, without repetitions; train: for training, without held-out problems",
     0, 0},
    {OPT_INT, "count", 'n', &count, "N", "number of problems", 1, 1e9},
    {OPT_INT, "start", 0, &start, "N", "position of the first problem in the stream", 0, 1e12},
    {OPT_INT, "seed", 0, &seed, "N", "seed of the stream", 0, 1e15},
    {OPT_FLAG, "solutions", 0, &solutions, NULL, "add worked solutions", 0, 0},
    {OPT_STR, "long", 0, &kind_list, "LIST",
     "in place of problems, chats about long texts with right answers: needle, lookup, variables, "
     "count, frequent, order, copy, turns",
     0, 0},
    {OPT_STR, "length", 0, &length_list, "LIST",
     "with --long: tokens of the texts, used in turn like levels", 0, 0},
    {OPT_INT, "questions", 0, &questions, "N",
     "with --long: at most so many further questions about each text", 0, LONGTEXT_QUESTIONS},
    {OPT_NUM, "chars-per-token", 0, &chars_per_token, "X",
     "with --long: mean number of characters per token", 1, 100},
    {OPT_STR, "out", 'o', &out_path, "FILE", "file to write; default: standard output", 0, 0},
    {OPT_INT, "threads", 0, &threads, "N", "CPU threads; 0 = all cores", 0, 1024},
    {.type = OPT_END},
};

static snap_status add_style(void *ctx, const char *part, snap_err *err) {
    synth_plan *p = ctx;
    if (p->styles == SYNTH_STYLES)
        return err_set(err, SNAP_E_USAGE, "--style has more than %d entries", SYNTH_STYLES);
    return synth_style_parse(part, &p->style[p->styles++], err);
}

static snap_status add_level(void *ctx, const char *part, snap_err *err) {
    synth_plan *p = ctx;
    int64_t level;
    if (!text_to_int(part, &level) || level < 1 || level > SYNTH_LEVELS)
        return err_set(err, SNAP_E_USAGE, "--level '%.20s': must be 1 to %d", part, SYNTH_LEVELS);
    if (p->levels == SYNTH_LEVEL_LIST)
        return err_set(err, SNAP_E_USAGE, "--level has more than %d entries", SYNTH_LEVEL_LIST);
    p->level[p->levels++] = (int)level;
    return SNAP_OK;
}

static snap_status add_kind(void *ctx, const char *part, snap_err *err) {
    synth_plan *p = ctx;
    int kind = 0;
    while (training_kinds[kind] && strcmp(training_kinds[kind], part) != 0)
        kind++;
    if (!training_kinds[kind])
        return err_set(err, SNAP_E_USAGE,
                       "--long: unknown kind '%.40s' (needle, lookup, variables, count, frequent, "
                       "order, copy, turns)",
                       part);
    if (p->kinds == TRAINING_KINDS)
        return err_set(err, SNAP_E_USAGE, "--long has more than %d entries", TRAINING_KINDS);
    p->kind[p->kinds++] = kind;
    return SNAP_OK;
}

static snap_status add_length(void *ctx, const char *part, snap_err *err) {
    synth_plan *p = ctx;
    int64_t length;
    if (!text_to_int(part, &length) || length < LONGTEXT_SHORTEST || length > LONGTEXT_LONGEST)
        return err_set(err, SNAP_E_USAGE, "--length '%.20s': must be %d to %d", part,
                       LONGTEXT_SHORTEST, LONGTEXT_LONGEST);
    if (p->lengths == SYNTH_LEVEL_LIST)
        return err_set(err, SNAP_E_USAGE, "--length has more than %d entries", SYNTH_LEVEL_LIST);
    p->length[p->lengths++] = length;
    return SNAP_OK;
}

static snap_status print_lines(void *ctx, const char *lines, size_t n, snap_err *err) {
    (void)ctx;
    if (cmd_cancelled)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    if (fwrite(lines, 1, n, stdout) != n)
        return err_set_errno(err, "cannot write standard output");
    return SNAP_OK;
}

static snap_status keep_lines(void *ctx, const char *lines, size_t n, snap_err *err) {
    if (cmd_cancelled)
        return err_set(err, SNAP_E_CANCELLED, "cancelled");
    (void)buf_append(ctx, lines, n);
    return buf_check(ctx, "the problems (leave out --out for so many)", err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    (void)shared;
    snap_status st;
    parallel *pool = NULL;
    buf kept = {0};
    synth_plan plan = {.seed = (uint64_t)seed,
                       .start = start,
                       .count = count,
                       .solutions = solutions,
                       .questions = (int)questions,
                       .chars_per_token = chars_per_token};
    TRY(text_split(style_list, ',', "--style", add_style, &plan, err));
    TRY(text_split(level_list, ',', "--level", add_level, &plan, err));
    if (kind_list) {
        TRY(text_split(kind_list, ',', "--long", add_kind, &plan, err));
        TRY(text_split(length_list, ',', "--length", add_length, &plan, err));
    }
    TRY(synth_split_parse(split_name, &plan.split, err));
    TRY(parallel_create(&pool, (int)threads, err));
    TRY(synth_stream(&plan, pool, out_path ? keep_lines : print_lines, &kept, err));
    TRY(out_path ? fs_write_atomic(out_path, buf_str(&kept), kept.len, err) : SNAP_OK);
cleanup:
    parallel_free(pool);
    buf_release(&kept);
    return st;
}

const opt_command cmd_synth = {
    .name = "synth",
    .summary = "generate problems, with worked solutions if wanted",
    .synopsis = "[options]",
    .about = "Writes generated problems, one JSON object per line. There are four styles, which\n"
             "follow the evaluations: integers (aime), LaTeX (math), one of four options (gpqa),\n"
             "and programs with tests (code). The tasks synth_aime, synth_math, synth_gpqa and\n"
             "synth_code read them. A problem depends only on its style, level, split, seed and\n"
             "position. No training stream contains a held-out problem, whatever its seed.\n\n"
             "--long writes chats about long texts, as the tasks long_* ask about them. Each has\n"
             "the messages of all sides; those of the assistant are worked solutions. No chat of\n"
             "the split train starts with a question and answer that the tasks long_* have.",
    .examples = "  snapmla synth --style aime --level 2 --count 200 --out synth_aime.jsonl\n"
                "  snapmla synth --split train --solutions --count 100000 > train.jsonl\n"
                "  snapmla synth --split train --long needle,turns --length 512,1024 > chats.jsonl",
    .options = options,
    .run = run,
};
