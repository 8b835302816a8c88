/* Prepares the prompts, and finds how many tokens the server counts for them. */
#include "base/term.h"
#include "harness/eval/run_files.h"
#include "harness/serving/calibrate.h"
#include "harness/serving/serving_state.h"

static snap_status restore_prompts(serving *s, const js *row) {
    s->maker.around = js_get_num(row, "around", s->maker.around);
    s->maker.tokens_per_word = js_get_num(row, "tokens_per_word", s->maker.tokens_per_word);
    s->out->counted = js_get_bool(row, "counted", false);
    return SNAP_OK;
}

static snap_status calibrate(serving *s, snap_err *err) {
    const js *before = results_journal_find(s->files.journal, "prompts");
    js *row;
    snap_status st;
    if (before)
        return restore_prompts(s, before);
    st = calibrate_prompts(&s->targets[0], s->engines[0], &s->maker, s->work.seed, &s->out->counted,
                           err);
    if (st != SNAP_OK)
        return st;
    if (!s->out->counted)
        term_warn("arm '%s' reports no usage: prompts have the stated number of %s, and TPOT is "
                  "unknown",
                  s->targets[0].name,
                  s->maker.one_token ? "the tokenizer's tokens, without those of the chat template"
                                     : "words");
    row = js_new_object();
    if (row && js_set_num(row, "around", s->maker.around) &&
        js_set_num(row, "tokens_per_word", s->maker.tokens_per_word) &&
        js_set_bool(row, "counted", s->out->counted))
        return run_journal_put(s->files.journal, "prompts", row, err);
    js_free(row);
    return serving_no_memory(err);
}

snap_status serving_prepare_prompts(serving *s, snap_err *err) {
    s->out->counted = s->work.task != NULL;
    if (s->work.task)
        return SNAP_OK;
    snap_status st = prompts_open(&s->maker, s->opt->tokenizer, err);
    if (st == SNAP_OK && s->opt->tokenizer && !s->maker.one_token)
        term_warn("the vocabulary of '%s' has too few whole words: lengths of prompts are "
                  "approximate",
                  s->opt->tokenizer);
    return st == SNAP_OK ? calibrate(s, err) : st;
}
