/* wrong.h - backends with one fault each, made by changing the table of a right backend in host
 * memory. Tests check that conformance, bench or gate finds each of them. The state is static:
 * one wrong backend exists at a time. */
#ifndef SNAPMLA_KERNELS_TEST_PLUGINS_WRONG_H
#define SNAPMLA_KERNELS_TEST_PLUGINS_WRONG_H

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

typedef enum {
    WRONG_DROP_4096,  /* leaves page 10 out of sequences above 4096 tokens */
    WRONG_DROP_40000, /* the same above 40,000 */
    WRONG_PAGE_64,    /* reads page 1 in the place of page 0, from the 64th sequence on */
    WRONG_REMEMBERS,  /* returns the first result of each plan again */
    WRONGS
} wrong_fault;

enum { WRONG_PLANS = 8 };

static struct {
    const mla_backend_ops *right;
    wrong_fault fault;
    int32_t *lengths, *table; /* buffers of the changed step */
    struct {
        mla_plan *plan;
        unsigned char *out, *lse;
    } known[WRONG_PLANS]; /* WRONG_REMEMBERS: first results */
} wronged;

static void wrong_forget(int i) {
    free(wronged.known[i].out);
    free(wronged.known[i].lse);
    wronged.known[i].plan = NULL;
    wronged.known[i].out = wronged.known[i].lse = NULL;
}

static void wrong_release(void) {
    for (int i = 0; i < WRONG_PLANS; i++)
        wrong_forget(i);
    free(wronged.lengths);
    free(wronged.table);
    wronged.lengths = wronged.table = NULL;
}

/* Changes row @b of the copied table and its length. */
static void wrong_sequence(int32_t *length, int32_t *row, int width, int b) {
    enum { kLost = 10 };
    int above = wronged.fault == WRONG_DROP_4096 ? 4096 : 40000;
    if (*length > (int64_t)width * MLA_PAGE) /* bad device data */
        return;
    if (wronged.fault == WRONG_PAGE_64 && b >= 63 && *length > MLA_PAGE)
        row[0] = row[1];
    if (wronged.fault > WRONG_DROP_40000 || *length <= above)
        return;
    memmove(row + kLost, row + kLost + 1, (size_t)((*length - 1) / MLA_PAGE - kLost) * sizeof *row);
    *length -= MLA_PAGE;
}

static mla_step wrong_step(const mla_step *step) {
    size_t batch = (size_t)step->batch, width = (size_t)step->table_width;
    mla_step changed = *step;
    free(wronged.lengths);
    free(wronged.table);
    wronged.lengths = malloc(batch * sizeof *wronged.lengths);
    wronged.table = malloc(batch * width * sizeof *wronged.table);
    if (!wronged.lengths || !wronged.table)
        abort();
    memcpy(wronged.lengths, step->seqlens, batch * sizeof *wronged.lengths);
    memcpy(wronged.table, step->block_table, batch * width * sizeof *wronged.table);
    for (int b = 0; b < step->batch; b++)
        wrong_sequence(wronged.lengths + b, wronged.table + (size_t)b * width, step->table_width,
                       b);
    changed.seqlens = wronged.lengths;
    changed.block_table = wronged.table;
    return changed;
}

static snap_status wrong_schedule(mla_plan *plan, const mla_step *step, snap_err *err) {
    mla_step changed = wrong_step(step);
    return wronged.right->schedule(plan, &changed, err);
}

static snap_status wrong_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                             const mla_attn *attn, snap_err *err) {
    mla_step changed = wrong_step(step);
    return wronged.right->run(plan, &changed, cache, attn, err);
}

/* The place of @plan in the list; -1 if it is not there. */
static int wrong_place(const mla_plan *plan) {
    for (int i = 0; i < WRONG_PLANS; i++)
        if (wronged.known[i].plan == plan)
            return i;
    return -1;
}

static snap_status wrong_remember(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                  const mla_attn *attn, snap_err *err) {
    size_t rows = (size_t)step->batch * (size_t)step->s_q * (size_t)plan->cap.heads;
    size_t out = rows * (size_t)plan->cap.d_c * 2, lse = attn->lse ? rows * sizeof(float) : 0;
    int at = wrong_place(plan);
    if (at >= 0) {
        memcpy(attn->out, wronged.known[at].out, out);
        memcpy(attn->lse, wronged.known[at].lse, lse);
        return SNAP_OK;
    }
    snap_status st = wronged.right->run(plan, step, cache, attn, err);
    at = wrong_place(NULL);
    if (at < 0 || st != SNAP_OK)
        return st;
    wronged.known[at].plan = plan;
    wronged.known[at].out = malloc(out);
    wronged.known[at].lse = malloc(lse + 1);
    if (!wronged.known[at].out || !wronged.known[at].lse)
        abort();
    memcpy(wronged.known[at].out, attn->out, out);
    memcpy(wronged.known[at].lse, attn->lse, lse);
    return st;
}

static void wrong_plan_free(mla_plan *plan) {
    int at = wrong_place(plan);
    if (at >= 0)
        wrong_forget(at);
    wronged.right->plan_free(plan);
}

/* The table of @right with a fault. */
static mla_backend_ops wrong_ops(const mla_backend_ops *right, wrong_fault fault) {
    mla_backend_ops ops = *right;
    wrong_release();
    wronged.right = right;
    wronged.fault = fault;
    ops.prepare = NULL; /* mla.c then calls append_kv and schedule */
    ops.plan_free = wrong_plan_free;
    ops.run = fault == WRONG_REMEMBERS ? wrong_remember : wrong_run;
    ops.schedule = fault == WRONG_REMEMBERS ? right->schedule : wrong_schedule;
    return ops;
}

#endif
