/* score.c - teacher forcing. */
#include "generator/local/engine/engine_parts.h"

#include <stdlib.h>

/* What a scored text asks for. */
typedef struct {
    int n;
    float *rows, *logprobs;
    engine_logits_fn fn;
    void *ctx;
} scoring;

static snap_status score_piece(engine *e, const scoring *s, const model_piece *p, snap_err *err) {
    snap_status st = runner_step(e->r, p, 1, s->rows, err);
    for (int i = 0; st == SNAP_OK && i < p->count; i++) {
        const float *row = s->rows + (int64_t)i * e->vocab;
        if (p->position + i + 1 < s->n)
            s->logprobs[p->position + i] = (float)token_logprob(row, e->vocab, p->tokens[i + 1]);
        if (s->fn)
            s->fn(s->ctx, p->position + i, row);
    }
    return st;
}

snap_status engine_score(engine *e, const int32_t *tokens, int n, int piece, float *logprobs,
                         engine_logits_fn logits, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    int held = 0, need = pages_for(n);
    int32_t *pages = calloc((size_t)need + 1, sizeof *pages);
    float *rows = calloc((size_t)piece * (size_t)e->vocab, sizeof *rows);
    scoring s = {.n = n, .rows = rows, .logprobs = logprobs, .fn = logits, .ctx = ctx};
    if (!pages || !rows) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for scoring %d tokens", n);
        goto cleanup;
    }
    TRY(engine_check_tokens(e, tokens, n, err));
    if (engine_pending(e) || !engine_have_pages(e, need))
        TRY(err_set(err, SNAP_E_SHAPE, "%d tokens need %d pages, %d are free", n, need,
                    (int)e->pool.n_free));
    while (held < need)
        pages[held++] = pool_take(&e->pool);
    for (int64_t at = 0; at < n; at += piece) {
        int count = n - at < piece ? (int)(n - at) : piece;
        model_piece p = {.tokens = tokens + at,
                         .count = count,
                         .position = at,
                         .pages = pages,
                         .logits = count,
                         .chunk = piece > 1};
        TRY(score_piece(e, &s, &p, err));
    }
cleanup:
    for (int i = 0; i < held; i++)
        pool_drop(&e->pool, pages[i]);
    free(pages);
    free(rows);
    return st;
}
