#include "generator/local/model/remote.h"

#include <stdlib.h>
#include <string.h>

#include "generator/local/model/model_parts.h"

size_t runner_page_bytes(const runner *r) {
    return r->link ? r->page_bytes : kv_cache_page_bytes(r->cache);
}

snap_status runner_create_remote(runner **out, const runner *first, call_link *link,
                                 snap_err *err) {
    runner *r = calloc(1, sizeof *r);
    *out = r;
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a model");
    *r = (runner){.w = first->w,
                  .s = first->s,
                  .opt = first->opt,
                  .pool = first->pool,
                  .link = link,
                  .page_bytes = runner_page_bytes(first)};
    r->opt.comm = r->opt.experts = NULL;
    r->opt.calls = &link->sender;
    return SNAP_OK;
}

/* ---- steps: the remote runner ---- */

static int64_t rows_of(const model_piece *pieces, int count) {
    int64_t rows = 0;
    for (int i = 0; i < count; i++)
        rows += pieces[i].logits;
    return rows;
}

static snap_status send_step(runner *r, const runner_batch *b, snap_err *err) {
    snap_status st;
    TRY(runner_check_pieces(r, b->pieces, b->count, err));
    calls_put_step(r, REMOTE_STEP, b->pieces, b->count);
    (void)buf_append(&r->call, b->wanted, (size_t)rows_of(b->pieces, b->count) * sizeof *b->wanted);
    TRY(calls_send(r, err));
cleanup:
    return st;
}

static snap_status malformed(snap_err *err) {
    return err_set(err, SNAP_E_NET, "a rank has sent a malformed answer");
}

static snap_status receive(runner *r, buf *to, snap_err *err) {
    const void *bytes;
    size_t n;
    snap_status st = r->link->receive(r->link, &bytes, &n, err);
    if (st != SNAP_OK)
        return st;
    buf_clear(to);
    (void)buf_append(to, bytes, n);
    return buf_check(to, "an answer of a rank", err);
}

static bool in_vocabulary(const runner *r, int32_t token) {
    return token >= 0 && token < r->s->vocab_size;
}

static bool has_list(const reading_result *got) {
    return got->kind == READ_NUCLEUS || got->kind == READ_TOP;
}

/* Whether a result can answer the reading @wanted, and its token exists. */
static bool is_result_of(const runner *r, const reading *wanted, const reading_result *got) {
    if (got->kind == READ_LOGITS || got->kind == READ_NOT_FINITE)
        return true;
    return got->kind == wanted->kind &&
           (has_list(got) ? got->n >= 1 : in_vocabulary(r, got->token));
}

/* Lets the results point to the lists that follow them in the answer, which begin at @at. Returns
 * whether the answer has the right length, and its results are possible. */
static bool take_lists(const runner *r, const runner_batch *b, size_t at, int64_t rows) {
    const buf *answer = &r->answer;
    for (int64_t i = 0; i < rows; i++) {
        reading_result *got = &b->got[i];
        got->list = NULL;
        if (!is_result_of(r, &b->wanted[i], got))
            return false;
        if (!has_list(got))
            continue;
        size_t bytes = (size_t)got->n * sizeof *got->list;
        if (bytes > answer->len - at)
            return false;
        got->list = (const token_logit *)(const void *)(answer->data + at);
        for (int j = 0; j < got->n; j++)
            if (!in_vocabulary(r, got->list[j].id))
                return false;
        at += bytes;
    }
    return at == answer->len;
}

static snap_status receive_step(runner *r, const runner_batch *b, snap_err *err) {
    snap_status st;
    int64_t rows = rows_of(b->pieces, b->count);
    size_t head = sizeof r->stats, results = (size_t)rows * sizeof *b->got;
    TRY(receive(r, &r->answer, err));
    if (r->answer.len < head + results)
        TRY(malformed(err));
    memcpy(&r->stats, r->answer.data, head);
    memcpy(b->got, r->answer.data + head, results);
    if (!take_lists(r, b, head + results, rows))
        TRY(malformed(err));
    for (int64_t i = 0; i < rows; i++) {
        const void *bytes;
        size_t n, want = (size_t)r->s->vocab_size * sizeof *b->logits;
        if (b->got[i].kind != READ_LOGITS)
            continue;
        TRY(r->link->receive(r->link, &bytes, &n, err));
        if (n != want)
            TRY(malformed(err));
        memcpy(b->logits + i * r->s->vocab_size, bytes, n);
    }
cleanup:
    return st;
}

snap_status remote_step(const runner_batch *b, snap_err *err) {
    snap_status st = send_step(b->r, b, err);
    return st == SNAP_OK ? calls_end(b->r, receive_step(b->r, b, err), err) : st;
}

snap_status runner_step_together(const runner_batch *b, int n, snap_err *err) {
    snap_status st = SNAP_OK;
    snap_err own = {0};
    if (!err)
        err = &own;
    for (int i = 1; i < n; i++)
        TRY(send_step(b[i].r, &b[i], err));
    TRY(runner_step_read(b[0].r, b[0].pieces, b[0].count, b[0].wanted, b[0].got, b[0].logits, err));
    for (int i = 1; i < n; i++)
        TRY(receive_step(b[i].r, &b[i], err));
cleanup:
    if (st == SNAP_OK || n == 1)
        return st;
    b[0].r->opt.calls->fail(b[0].r->opt.calls, err);
    return err->code;
}

/* ---- pages: the remote runner ---- */

static snap_status receive_page(runner *r, void *host, snap_err *err) {
    snap_status st;
    const void *bytes;
    size_t n;
    TRY(r->link->receive(r->link, &bytes, &n, err));
    if (n != r->page_bytes)
        TRY(malformed(err));
    memcpy(host, bytes, n);
cleanup:
    return st;
}

snap_status runner_read_page(runner *r, int32_t page, void *host, snap_err *err) {
    snap_status st;
    if (r->link) {
        st = calls_send_word(r, REMOTE_READ_PAGE, page, err);
        return st == SNAP_OK ? calls_end(r, receive_page(r, host, err), err) : st;
    }
    watchdog_begin_copy(r->dog);
    st = kv_cache_read_page(r->cache, page, host, err);
    watchdog_end(r->dog);
    return st;
}

/* ---- the rank that answers ---- */

/* Makes room for the results of @rows rows. */
static snap_status make_room(runner *r, int64_t rows, snap_err *err) {
    if (rows <= r->answer_rows)
        return SNAP_OK;
    free(r->answer_logits);
    free(r->answer_got);
    r->answer_rows = 0;
    r->answer_logits = calloc((size_t)(rows * r->s->vocab_size) + 1, sizeof *r->answer_logits);
    r->answer_got = calloc((size_t)rows + 1, sizeof *r->answer_got);
    if (!r->answer_logits || !r->answer_got)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld rows of logits", (long long)rows);
    r->answer_rows = rows;
    return SNAP_OK;
}

static snap_status send_results(runner *r, int64_t rows, runner_answer_fn send, void *ctx,
                                snap_err *err) {
    snap_status st;
    buf *a = &r->answer;
    const reading_result *got = r->answer_got;
    buf_clear(a);
    (void)buf_append(a, &r->stats, sizeof r->stats);
    (void)buf_append(a, got, (size_t)rows * sizeof *got);
    for (int64_t i = 0; i < rows; i++)
        if (got[i].kind == READ_NUCLEUS || got[i].kind == READ_TOP)
            (void)buf_append(a, got[i].list, (size_t)got[i].n * sizeof *got[i].list);
    TRY(buf_check(a, "an answer to rank 0", err));
    TRY(send(ctx, a->data, a->len, err));
    for (int64_t i = 0; i < rows; i++)
        if (got[i].kind == READ_LOGITS)
            TRY(send(ctx, r->answer_logits + i * r->s->vocab_size,
                     (size_t)r->s->vocab_size * sizeof *r->answer_logits, err));
cleanup:
    return st;
}

/* Runs a step. @wanted: the bytes of a reading for each row, not aligned. */
static snap_status run_step(runner *r, const model_piece *pieces, int count, const void *wanted,
                            runner_answer_fn send, void *ctx, snap_err *err) {
    snap_status st;
    int64_t rows = rows_of(pieces, count);
    reading *copy = calloc((size_t)rows + 1, sizeof *copy);
    if (!copy)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a step");
    memcpy(copy, wanted, (size_t)rows * sizeof *copy);
    for (int64_t i = 0; i < rows; i++)
        if ((unsigned)copy[i].kind >= READ_NOT_FINITE) {
            st = calls_malformed(err);
            goto cleanup;
        }
    TRY(make_room(r, rows, err));
    TRY(runner_step_read(r, pieces, count, copy, r->answer_got, r->answer_logits, err));
    TRY(send_results(r, rows, send, ctx, err));
cleanup:
    free(copy);
    return st;
}

static snap_status answer_step(runner *r, word_reader *w, runner_answer_fn send, void *ctx,
                               snap_err *err) {
    model_piece *pieces = NULL;
    int count = 0;
    snap_status st = calls_take_step(r, w, &pieces, &count, err);
    if (st == SNAP_OK &&
        w->left * sizeof *w->at != (size_t)rows_of(pieces, count) * sizeof(reading))
        st = calls_malformed(err);
    if (st == SNAP_OK)
        st = send ? run_step(r, pieces, count, w->at, send, ctx, err)
                  : runner_step_unread(r, pieces, count, err);
    free(pieces);
    return st;
}

static snap_status answer_page(runner *r, int32_t page, runner_answer_fn send, void *ctx,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    if (!send)
        return SNAP_OK;
    size_t n = kv_cache_page_bytes(r->cache);
    char *host = malloc(n);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a page");
    TRY(kv_cache_read_page(r->cache, page, host, err));
    TRY(send(ctx, host, n, err));
cleanup:
    free(host);
    return st;
}

snap_status runner_answer(runner *r, const void *bytes, size_t n, runner_answer_fn send, void *ctx,
                          snap_err *err) {
    int32_t first = 0, kind;
    word_reader rest;
    if (n >= sizeof first)
        memcpy(&first, bytes, sizeof first);
    if (first != REMOTE_STEP && first != REMOTE_READ_PAGE)
        return runner_repeat(r, bytes, n, err);
    if (n % sizeof first != 0)
        return calls_malformed(err);
    snap_status st = calls_read(r, bytes, n, &kind, &rest, err);
    if (st != SNAP_OK)
        return st;
    if (kind == REMOTE_STEP)
        return answer_step(r, &rest, send, ctx, err);
    if (rest.left != 1 || rest.at[0] < 0 || rest.at[0] >= r->opt.pages)
        return calls_malformed(err);
    return answer_page(r, rest.at[0], send, ctx, err);
}
