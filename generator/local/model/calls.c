#include "generator/local/model/calls.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/model/model_parts.h"

/* The number of pages that hold the tokens of a piece and those before it. */
static int64_t pages_of(const model_piece *p) {
    return (p->position + p->count - 1) / MLA_PAGE + 1;
}

/* ---- rank 0: sending ---- */

static void put(buf *b, int64_t x) {
    int32_t word = (int32_t)x;
    (void)buf_append(b, &word, sizeof word);
}

snap_status calls_send(runner *r, snap_err *err) {
    snap_status st = buf_check(&r->call, "a call of a split model", err);
    return st == SNAP_OK ? r->opt.calls->send(r->opt.calls, r->call.data, r->call.len, err) : st;
}

void calls_put_step(runner *r, int kind, const model_piece *pieces, int count) {
    buf *b = &r->call;
    buf_clear(b);
    put(b, kind);
    put(b, count);
    for (int i = 0; i < count; i++) {
        const model_piece *p = &pieces[i];
        put(b, p->count);
        put(b, p->position);
        put(b, p->logits);
        put(b, p->chunk + 2 * p->padding);
        (void)buf_append(b, p->tokens, (size_t)p->count * sizeof *p->tokens);
        (void)buf_append(b, p->pages, (size_t)pages_of(p) * sizeof *p->pages);
    }
}

snap_status calls_send_step(runner *r, const model_piece *pieces, int count, snap_err *err) {
    if (!r->opt.calls)
        return SNAP_OK;
    calls_put_step(r, CALL_STEP, pieces, count);
    return calls_send(r, err);
}

snap_status calls_send_word(runner *r, int kind, int32_t word, snap_err *err) {
    buf_clear(&r->call);
    put(&r->call, kind);
    put(&r->call, word);
    return calls_send(r, err);
}

snap_status calls_send_copy(runner *r, int32_t from, int32_t to, snap_err *err) {
    if (!r->opt.calls)
        return SNAP_OK;
    buf_clear(&r->call);
    put(&r->call, CALL_COPY_PAGE);
    put(&r->call, from);
    put(&r->call, to);
    return calls_send(r, err);
}

snap_status calls_send_page(runner *r, int32_t page, const void *host, snap_err *err) {
    if (!r->opt.calls)
        return SNAP_OK;
    buf_clear(&r->call);
    put(&r->call, CALL_WRITE_PAGE);
    put(&r->call, page);
    (void)buf_append(&r->call, host, runner_page_bytes(r));
    return calls_send(r, err);
}

/* A row that is not finite (SNAP_E_INPUT) is found after the step, which all ranks have run. */
snap_status calls_end(runner *r, snap_status st, snap_err *err) {
    snap_err own = {0};
    if (st == SNAP_OK || st == SNAP_E_INPUT || !r->opt.calls)
        return st;
    if (!err)
        err = &own;
    (void)err_set(err, st, "a step failed");
    r->opt.calls->fail(r->opt.calls, err);
    return err->code;
}

/* ---- the other ranks: repeating ---- */

/* Takes the next @n numbers. NULL: there are fewer. */
static const int32_t *take(word_reader *w, int64_t n) {
    const int32_t *words = w->at;
    if (n < 0 || (uint64_t)n > w->left)
        return NULL;
    w->at += n;
    w->left -= (size_t)n;
    return words;
}

/* Reads one piece. Its sizes are checked here, and its tokens and pages by the step. */
static bool take_piece(const runner *r, word_reader *w, model_piece *p) {
    const int32_t *head = take(w, 4);
    if (!head || head[0] < 1 || head[0] > r->opt.max_rows || head[1] < 0 ||
        head[1] > r->opt.context - head[0] || head[2] < 0 || head[2] > head[0] || head[3] < 0 ||
        head[3] > 3)
        return false;
    *p = (model_piece){.count = head[0],
                       .position = head[1],
                       .logits = head[2],
                       .chunk = head[3] & 1,
                       .padding = head[3] / 2 == 1};
    p->tokens = take(w, p->count);
    p->pages = p->tokens ? take(w, pages_of(p)) : NULL;
    return p->pages != NULL;
}

snap_status calls_malformed(snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "a call from rank 0 is malformed");
}

snap_status calls_take_step(const runner *r, word_reader *w, model_piece **pieces, int *n,
                            snap_err *err) {
    const int32_t *count = take(w, 1);
    *pieces = NULL;
    *n = 0;
    if (!count || *count < 0 || *count > r->opt.max_rows)
        return calls_malformed(err);
    *pieces = calloc((size_t)*count + 1, sizeof **pieces);
    if (!*pieces)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a step");
    for (*n = 0; *n < *count; (*n)++)
        if (!take_piece(r, w, &(*pieces)[*n]))
            return calls_malformed(err);
    return SNAP_OK;
}

static snap_status repeat_step(runner *r, word_reader *w, snap_err *err) {
    model_piece *pieces;
    int count;
    snap_status st = calls_take_step(r, w, &pieces, &count, err);
    if (st == SNAP_OK && w->left)
        st = calls_malformed(err);
    if (st == SNAP_OK)
        st = runner_step_unread(r, pieces, count, err);
    free(pieces);
    return st;
}

static bool is_page(const runner *r, int32_t page) {
    return page >= 0 && page < r->opt.pages;
}

snap_status calls_read(runner *r, const void *bytes, size_t n, int32_t *kind, word_reader *rest,
                       snap_err *err) {
    *kind = 0;
    *rest = (word_reader){0};
    buf_clear(&r->call);
    if (!buf_append(&r->call, bytes, n))
        return buf_check(&r->call, "a call of a split model", err);
    if (n >= sizeof *rest->at) {
        const int32_t *words = (const int32_t *)(const void *)r->call.data;
        *kind = words[0];
        *rest = (word_reader){words + 1, n / sizeof *words - 1};
    }
    return SNAP_OK;
}

snap_status runner_repeat(runner *r, const void *bytes, size_t n, snap_err *err) {
    int32_t kind;
    word_reader rest;
    snap_status st = calls_read(r, bytes, n, &kind, &rest, err);
    if (st != SNAP_OK)
        return st;
    if (kind == CALL_STEP && n % sizeof kind == 0)
        return repeat_step(r, &rest, err);
    if (kind == CALL_COPY_PAGE && n == 3 * sizeof kind && is_page(r, rest.at[0]) &&
        is_page(r, rest.at[1]))
        return runner_copy_page(r, rest.at[0], rest.at[1], err);
    if (kind == CALL_WRITE_PAGE && n == 2 * sizeof kind + kv_cache_page_bytes(r->cache) &&
        is_page(r, rest.at[0]))
        return runner_write_page(r, rest.at[0], rest.at + 1, err);
    return calls_malformed(err);
}
