#include "generator/test/score.h"

#include <stdlib.h>

#include "generator/local/engine/sampler.h"

typedef struct {
    runner *r;
    int n, vocab;
    float *rows, *logprobs;
    score_logits_fn fn;
    void *ctx;
} scoring;

static snap_status score_piece(const scoring *s, const model_piece *p, snap_err *err) {
    snap_status st = runner_step(s->r, p, 1, s->rows, err);
    for (int i = 0; st == SNAP_OK && i < p->count; i++) {
        const float *row = s->rows + (int64_t)i * s->vocab;
        if (p->position + i + 1 < s->n)
            s->logprobs[p->position + i] = (float)token_logprob(row, s->vocab, p->tokens[i + 1]);
        if (s->fn)
            s->fn(s->ctx, p->position + i, row);
    }
    return st;
}

snap_status score_text(runner *r, const int32_t *tokens, int n, int piece, float *logprobs,
                       score_logits_fn fn, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    int vocab = runner_shape(r)->vocab_size, need = (n + MLA_PAGE - 1) / MLA_PAGE;
    int32_t *pages = calloc((size_t)need + 1, sizeof *pages);
    float *rows = calloc((size_t)piece * (size_t)vocab, sizeof *rows);
    scoring s = {r, n, vocab, rows, logprobs, fn, ctx};
    if (!pages || !rows)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for scoring %d tokens", n));
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab)
            TRY(err_set(err, SNAP_E_SHAPE, "token %d is %d, the model has %d", i, (int)tokens[i],
                        vocab));
    for (int i = 0; i < need; i++)
        pages[i] = i;
    for (int64_t at = 0; at < n; at += piece) {
        int count = n - at < piece ? (int)(n - at) : piece;
        model_piece p = {.tokens = tokens + at,
                         .count = count,
                         .position = at,
                         .pages = pages,
                         .logits = count,
                         .chunk = piece > 1};
        TRY(score_piece(&s, &p, err));
    }
cleanup:
    free(pages);
    free(rows);
    return st;
}
