/* score.c - the log-probabilities of the tokens of a prompt (teacher forcing). */
#include <math.h>
#include <stdlib.h>

#include "generator/local/engine/engine_parts.h"

snap_status engine_make_score_rows(engine *e, snap_err *err) {
    if (e->can_score)
        return SNAP_OK;
    size_t rows =
        (size_t)runner_limits(e->r)->max_decode + ENGINE_STEP_PROMPTS + ENGINE_SCORE_CHUNK;
    float *logits = realloc(e->logits, rows * (size_t)e->vocab * sizeof *logits);
    e->logits = logits ? logits : e->logits;
    reading *wanted = realloc(e->wanted, rows * sizeof *wanted);
    e->wanted = wanted ? wanted : e->wanted;
    reading_result *got = realloc(e->got, rows * sizeof *got);
    e->got = got ? got : e->got;
    e->can_score = logits && wanted && got;
    return e->can_score ? SNAP_OK
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the scores of a prompt");
}

void engine_take_scores(engine *e, prompt *p, int count, int row) {
    const engine_request *req = &p->scored_for->req;
    for (int i = 0; i < count; i++) {
        int position = p->computed + i + 1;
        const float *logits = e->logits + (int64_t)(row + i) * e->vocab;
        if (e->got[row + i].kind != READ_LOGITS) {
            p->bad_score = true;
        } else if (position < p->n) {
            float logprob = (float)token_logprob(logits, e->vocab, p->tokens[position]);
            int n = top_logprobs(logits, e->vocab, p->scored_for->top, req->top_logprobs);
            req->score(req->user, position, logprob, p->scored_for->top, n);
        }
    }
}
