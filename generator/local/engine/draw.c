/* draw.c - draws the next token of a sequence, with the log-probabilities that its request
 * wants. */
#include <math.h>

#include "generator/local/engine/engine_parts.h"

bool engine_must_go_on(const sequence *s) {
    return s->n - s->n_prompt < s->req.min_tokens && s->req.n_stop_ids > 0;
}

reading engine_reading(const engine *e, const sequence *s) {
    return s->req.logprobs || s->req.top || engine_must_go_on(s)
               ? (reading){.kind = READ_LOGITS}
               : sampler_reading(e->sampler[0], &s->req.sampling, &s->rng);
}

/* Sets the logits of the stop ids from index @from on to minus infinity, draws, and restores
 * them. */
static void draw_without(sampler *with, drawing *d, float *logits, int from) {
    sequence *s = d->s;
    if (from == s->req.n_stop_ids) {
        d->token = sampler_draw(with, &s->req.sampling, logits, s->tokens, s->n, &s->rng, NULL);
        return;
    }
    float *at = &logits[s->req.stop_ids[from]], kept = *at;
    *at = -INFINITY;
    draw_without(with, d, logits, from + 1);
    *at = kept;
}

void engine_draw(sampler *with, drawing *d, float *logits) {
    sequence *s = d->s;
    d->logprob = 0;
    if (engine_must_go_on(s)) {
        draw_without(with, d, logits, 0);
        if (s->req.logprobs)
            d->logprob = (float)token_logprob(logits, sampler_vocab(with), d->token);
    } else {
        d->token = sampler_draw(with, &s->req.sampling, logits, s->tokens, s->n, &s->rng,
                                s->req.logprobs ? &d->logprob : NULL);
    }
    if (s->req.top)
        s->n_top = top_logprobs(logits, sampler_vocab(with), s->top, s->req.top_logprobs);
}
