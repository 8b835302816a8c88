/* preemption.c - how sequences lose their pages (finished, swapped out, or queued to be computed
 * again), and how they get pages: swapping in, and growing by a page. */
#include "generator/local/engine/engine_parts.h"

#include <stdlib.h>

static void drop_pages(engine *e, sequence *s) {
    for (int i = 0; i < s->held && !s->swapped; i++)
        pool_drop(&e->pool, s->pages[i]);
    s->held = 0;
}

void sequence_free(engine *e, sequence *s) {
    if (!s)
        return;
    e->tokens -= sequence_tokens(s);
    drop_pages(e, s);
    if (s->from)
        prompt_leave(e, s->from);
    free(s->tokens);
    free(s->pages);
    free(s->swapped);
    free(s->top);
    free(s);
}

void engine_finish(engine *e, sequence_list *l, sequence *s, finish_reason why) {
    list_take_out(l, s);
    s->req.done(s->req.user, why);
    sequence_free(e, s);
}

static snap_status swap_out(engine *e, sequence *s, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t bytes = runner_page_bytes(e->r);
    char *host = malloc(bytes * (size_t)s->held + 1);
    if (!host)
        return err_set(err, SNAP_E_NOMEM, "out of memory for swapping %d pages", s->held);
    for (int i = 0; i < s->held; i++)
        TRY(runner_read_page(e->r, s->pages[i], host + bytes * (size_t)i, err));
    for (int i = 0; i < s->held; i++)
        pool_drop(&e->pool, s->pages[i]);
    s->swapped = host;
    host = NULL;
    list_take_out(&e->running, s);
    list_push_front(&e->swapped, s);
    e->stats.preemptions++;
cleanup:
    free(host);
    return st;
}

static snap_status swap_in(engine *e, sequence *s, snap_err *err) {
    snap_status st = SNAP_OK;
    size_t bytes = runner_page_bytes(e->r);
    for (int i = 0; i < s->held; i++)
        s->pages[i] = pool_take(&e->pool);
    char *host = s->swapped;
    s->swapped = NULL;
    list_take_out(&e->swapped, s);
    list_push(&e->running, s);
    for (int i = 0; i < s->held; i++)
        TRY(runner_write_page(e->r, s->pages[i], host + bytes * (size_t)i, err));
cleanup:
    free(host);
    return st;
}

/* Puts the sequence back to the front of the queue, with all its tokens as its prompt. The next
 * token is drawn from that prompt's logits. */
static snap_status requeue(engine *e, sequence *s, snap_err *err) {
    prompt *p = prompt_join(e, s->tokens, s->n);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a sequence of %d tokens", s->n);
    drop_pages(e, s);
    s->from = p;
    list_take_out(&e->running, s);
    list_push_front(&e->queue, s);
    e->stats.preemptions++;
    e->stats.recomputed += s->n;
    return SNAP_OK;
}

snap_status engine_admit_swapped(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    int most = runner_limits(e->r)->max_decode;
    while (st == SNAP_OK && e->swapped.n && e->running.n < most) {
        sequence *s = e->swapped.first;
        /* If nothing else runs, prompts may lose the pages that they keep. */
        if (!engine_have_pages(e, s->held + 1) && !e->running.n)
            (void)prompts_drop(e);
        if (e->pool.n_free < s->held + (e->running.n > 0))
            break;
        st = swap_in(e, s, err);
    }
    return st;
}

snap_status engine_reserve_pages(engine *e, snap_err *err) {
    snap_status st = SNAP_OK;
    bool gone = false; /* @s itself was preempted; it was the last running one */
    for (sequence *s = e->running.first; s; s = gone ? NULL : s->next)
        while (!gone && s->held < pages_for(s->cached + 1)) {
            int32_t page = engine_take_page(e);
            if (page >= 0) {
                s->pages[s->held++] = page;
            } else if (e->running.n > 1) {
                gone = s == e->running.last;
                TRY((e->recompute ? requeue : swap_out)(e, e->running.last, err));
            } else if (!prompts_drop(e)) {
                engine_finish(e, &e->running, s, FINISH_NO_PAGES);
                return SNAP_OK;
            }
        }
cleanup:
    return st;
}
