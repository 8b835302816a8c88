/* answer.h - generates one or more answers to a prompt with an open checkpoint. The text of a
 * single answer can be shown while it grows. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ANSWER_H
#define SNAPMLA_GENERATOR_LOCAL_ANSWER_H

#include <signal.h>

#include "base/hist.h"
#include "base/json.h"
#include "generator/local/engine/stop.h"
#include "generator/local/local.h"

typedef struct {
    sampling sampling;
    int64_t seed;    /* answer i draws from seed + i */
    int64_t samples; /* answers to the prompt; they share it in the cache */
    int max_tokens;  /* per answer */
    stop_strings stop;
    bool keep_ids; /* fill local_answer.ids */
    /* Called with each part of the text as soon as no stop string can cut it, but only if `samples`
     * is 1. NULL: not called. */
    void (*part)(void *ctx, const char *text, size_t n);
    void *ctx;
    const volatile sig_atomic_t *cancel; /* generation stops once it is not 0; may be NULL */
} answer_options;

typedef struct {
    buf text;
    js *ids; /* array of token ids; NULL without keep_ids */
    int64_t tokens;
    int64_t start_ns, first_ns; /* clock_now_ns() when the answer was queued, and at its first token
                                   (0: it has none) */
    finish_reason why;
} local_answer;

typedef struct {
    local_answer *all; /* [n]; n is 0 after an error before the first answer */
    int64_t n, prompt_tokens, ns;
    hist gaps;          /* times between the tokens of an answer, over all answers */
    engine_stats stats; /* counters of the engine since it was created, read when the last answer
                           was done */
} local_answers;

/**
 * local_answer_prompt - generate answers to one prompt
 *
 * @out: release with local_answers_release(), also after an error
 *
 * SNAP_E_CANCELLED; SNAP_E_NOMEM; any error of local_prompt(), engine_add(), engine_step() and
 * local_finish_error().
 */
snap_status local_answer_prompt(local_model *m, const gen_message *messages, int n,
                                const answer_options *o, local_answers *out,
                                snap_err *err) SNAP_CHECK_RESULT;
void local_answers_release(local_answers *a);

#endif
