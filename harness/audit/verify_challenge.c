/* verify_challenge.c - derives the cells of a challenge again from its seed text and compares them
 * with the rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/challenge.h"

typedef struct {
    verify_findings *f;
    const cell_list *rows;
    challenge want;
    char hash[HASH_HEX];
} court;

static bool same_lengths(const cell_lengths *l, const challenge_cell *want) {
    bool same = l->exists && l->each.n == (size_t)want->shape.batch &&
                strcmp(l->distribution, want->distribution) == 0;
    for (size_t b = 0; same && b < l->each.n; b++)
        same = l->each.at[b] == (double)want->lengths[b];
    return same;
}

/* What differs between a row and its cell, or NULL. */
static const char *difference(const court *c, const cell_record *row) {
    if (row->challenge.cell < 0 || row->challenge.cell >= CHALLENGE_CELLS)
        return "cell";
    const challenge_cell *want = &c->want.cell[row->challenge.cell];
    const cell_shape *s = &row->shape;
    if (s->heads != want->shape.heads || s->s_q != want->shape.s_q ||
        s->batch != want->shape.batch || s->context != want->shape.context)
        return "shape";
    if (!same_lengths(&row->lengths, want))
        return "list of lengths";
    if (strcmp(row->distribution, numbers_kind_name(c->want.distribution)) != 0)
        return "distribution of the data";
    return strcmp(row->challenge.sha256, c->hash) != 0 ? "hash of the data" : NULL;
}

static bool same_challenge(const cell_record *a, const cell_record *b) {
    return b->challenge.exists && strcmp(a->challenge.seed, b->challenge.seed) == 0 &&
           a->challenge.tokens == b->challenge.tokens && a->shape.d_c == b->shape.d_c &&
           a->shape.d_r == b->shape.d_r;
}

/* The number of rows that have the arm and scope of @like and the cell @cell. */
static size_t count_rows(const court *c, const cell_record *like, int cell) {
    size_t n = 0;
    for (size_t i = 0; i < c->rows->n; i++) {
        const cell_record *row = &c->rows->at[i];
        n += row->challenge.exists && row->challenge.cell == cell &&
             strcmp(row->name, like->name) == 0 && strcmp(row->arm, like->arm) == 0 &&
             strcmp(row->scope, like->scope) == 0;
    }
    return n;
}

/* Every arm and scope must have each cell exactly once: no cell may be left out, and none may be
 * measured several times. */
static void check_complete(const court *c) {
    for (size_t i = 0; i < c->rows->n; i++) {
        const cell_record *row = &c->rows->at[i];
        for (int cell = 0; cell < CHALLENGE_CELLS; cell++) {
            size_t n = count_rows(c, row, cell);
            c->f->checks++;
            if (n == 1)
                continue;
            char where[32];
            (void)snprintf(where, sizeof where, "bench[%zu]", i);
            verify_add(c->f, VERIFY_FORM, where,
                       "its arm and scope have cell %d of the challenge %zu times", cell, n);
            break;
        }
    }
}

static bool derive(court *c, const cell_record *row) {
    int d_c = (int)row->shape.d_c, d_r = (int)row->shape.d_r;
    bool fits = d_c >= 32 && d_c <= MLA_MAX_CONTENT && d_c % 32 == 0 && d_r >= 32 &&
                d_r <= MLA_MAX_ROPE && d_r % 32 == 0;
    snap_err err = {0};
    snap_status st = fits ? challenge_derive(&c->want, row->challenge.seed, row->challenge.tokens,
                                             d_c, d_r, &err)
                          : err_set(&err, SNAP_E_USAGE, "widths of %d and %d", d_c, d_r);
    if (st == SNAP_OK)
        st = challenge_data_hash(&c->want, d_c, d_r, c->hash, &err);
    if (st == SNAP_E_NOMEM)
        c->f->failed = true;
    else if (st != SNAP_OK)
        verify_add(c->f, VERIFY_FORM, "bench", "no challenge can be derived: %s", err.text);
    return st == SNAP_OK;
}

void verify_challenge(const run_record *r, verify_findings *f) {
    const cell_record *first = NULL;
    for (size_t i = 0; i < r->bench.n && !first; i++)
        first = r->bench.at[i].challenge.exists ? &r->bench.at[i] : NULL;
    if (!first)
        return;
    court *c = calloc(1, sizeof *c);
    if (!c) {
        f->failed = true;
        return;
    }
    c->f = f;
    c->rows = &r->bench;
    bool derived = derive(c, first);
    for (size_t i = 0; i < c->rows->n && derived; i++) {
        const cell_record *row = &c->rows->at[i];
        char where[32];
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        const char *what = same_challenge(first, row) ? difference(c, row) : "challenge";
        f->checks++;
        if (what)
            verify_add(f, VERIFY_FORM, where,
                       "not the challenge '%.60s': its %s is not what follows from the seed",
                       first->challenge.seed, what);
    }
    if (derived)
        check_complete(c);
    free(c);
}
