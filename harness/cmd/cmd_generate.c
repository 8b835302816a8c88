/* cmd_generate.c - `snapmla generate` */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/share.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/generate_arguments.h"
#include "harness/cmd/generate_print.h"

static generate_arguments *const given = &cmd_generate_given;

static snap_status answer_one(local_model *m, const char *text, snap_err *err) {
    snap_status st;
    local_answers all = {0};
    gen_message messages[2] = {{"system", given->system_text}, {"user", text}};
    bool has_system = given->system_text != NULL;
    st = local_answer_prompt(m, messages + !has_system, 1 + has_system, &given->answer, &all, err);
    /* A part of a single answer that failed may have been printed: this also ends its line. */
    bool printed = !given->answer.keep_ids && (st == SNAP_OK || all.n == 1);
    if (printed)
        print_answers(&all);
    else if (st == SNAP_OK)
        st = print_answers_json(&all, err);
    if (st == SNAP_OK && given->stats)
        print_answer_stats(&all);
    local_answers_release(&all);
    return st;
}

/* Each line of standard input that is not empty is a prompt. */
static snap_status answer_lines(local_model *m, snap_err *err) {
    snap_status st = SNAP_OK;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    while (st == SNAP_OK && (n = getline(&line, &size, stdin)) >= 0) {
        if (n && line[n - 1] == '\n')
            line[n - 1] = '\0';
        if (*line)
            st = answer_one(m, line, err);
    }
    if (st == SNAP_OK && !feof(stdin))
        st = err_set_errno(err, "cannot read standard input");
    free(line);
    return st;
}

/* Sets what the table of options cannot: values in another type or unit, the limit on sequences,
 * what follows from --json, and the flag that cancels an answer. */
static void complete_options(const opt_shared *shared) {
    given->model.cache_bytes = given->cache_mb << 20;
    given->model.sequences =
        given->answer.samples < LOCAL_SEQUENCES ? (int)given->answer.samples : LOCAL_SEQUENCES;
    given->model.threads = (int)given->threads;
    given->model.thinking = given->thinking      ? THINKING_ON
                            : given->no_thinking ? THINKING_OFF
                                                 : THINKING_DEFAULT;
    given->answer.sampling.top_k = (int)given->top_k;
    given->answer.max_tokens = (int)given->max_tokens;
    given->answer.stop = (stop_strings){.text = given->stops.items, .n = given->stops.n};
    given->answer.keep_ids = shared->json;
    given->answer.part = shared->json ? NULL : print_part;
    given->answer.cancel = &cmd_cancelled;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    local_model m = {0};
    buf text = {0};
    char *shipped = NULL;
    complete_options(shared);
    if (given->prompt_text && given->prompt_file)
        return err_set(err, SNAP_E_USAGE,
                       "--prompt and --file exclude each other: give one of them");
    if (given->thinking && given->no_thinking)
        return err_set(err, SNAP_E_USAGE,
                       "--thinking and --no-thinking exclude each other: give one of them");
    if (given->prompt_file)
        TRY(fs_read(given->prompt_file, &text, err));
    shipped = share_find(shared->args[0]);
    TRY(local_open(&m, shipped ? shipped : shared->args[0], &given->model, err));
    TRY(!given->prompt_text && !given->prompt_file
            ? answer_lines(&m, err)
            : answer_one(&m, given->prompt_text ? given->prompt_text : buf_str(&text), err));
cleanup:
    local_close(&m);
    buf_release(&text);
    free(shipped);
    return st;
}

const opt_command cmd_generate = {
    .name = "generate",
    .summary = "generate answers with a checkpoint, in either precision",
    .synopsis = "[options] DIR",
    .about = "Generates answers with the checkpoint in DIR (config.json, *.safetensors,\n"
             "tokenizer.json): DeepSeek V2, V3 and related models, LongCat-Flash, MiniCPM3,\n"
             "GLM-4.7-Flash, and models with grouped queries that training/grouped.py has\n"
             "rewritten for MLA. The two precisions differ only in the format of the cache and\n"
             "the arithmetic of attention.",
    .examples = "  snapmla generate --prompt 'What is 17 * 23?' DeepSeek-V2-Lite-Chat\n"
                "  snapmla generate --precision fp8 --samples 8 --stats --file question.txt DIR",
    .options = cmd_generate_options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
