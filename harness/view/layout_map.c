#include "harness/view/layout_map.h"

#include <string.h>

/* ---- keys ---- */

/* Whether both rows have the same model and conditions, apart from the cache format and the
 * network. */
static bool same_model(const prediction_record *a, const prediction_record *b) {
    return strcmp(a->model_config, b->model_config) == 0 && strcmp(a->weights, b->weights) == 0 &&
           strcmp(a->link, b->link) == 0 && strcmp(a->exchange, b->exchange) == 0;
}

static bool same_map(const map_key *key, const report_predicted *x) {
    return key->file == x->file && strcmp(key->row->arm, x->row->arm) == 0 &&
           same_model(key->row, x->row);
}

/* Whether the row belongs to no map of these keys. A key without a network takes over that of the
 * row. */
static bool is_new(map_key *keys, size_t n, const report_predicted *x) {
    const char *network = x->row->network;
    for (size_t i = 0; i < n; i++) {
        if (!same_map(&keys[i], x))
            continue;
        if (!keys[i].network[0])
            keys[i].network = network;
        if (!network[0] || strcmp(keys[i].network, network) == 0)
            return false;
    }
    return true;
}

size_t layout_map_keys(const report_model *m, map_key *out, size_t most) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_predicted; i++) {
        const report_predicted *x = &m->predicted[i];
        if (x->row->best && is_new(out, n, x) && n < most)
            out[n++] = (map_key){x->file, x->row, x->row->network};
    }
    return n;
}

bool layout_map_same_but_arm(const map_key *a, const map_key *b) {
    return a->file == b->file && same_model(a->row, b->row) && strcmp(a->network, b->network) == 0;
}

/* ---- axes ---- */

static int place(const map_axis *a, int64_t value) {
    for (int i = 0; i < a->n; i++)
        if (a->at[i] == value)
            return i;
    return -1;
}

/* Inserts the number. Of more than @most numbers, the smallest ones are dropped. */
static void add(map_axis *a, int64_t value, int most) {
    int to = 0;
    if (place(a, value) >= 0)
        return;
    while (to < a->n && a->at[to] < value)
        to++;
    if (a->n == most) {
        a->cut = true;
        if (to == 0)
            return;
        memmove(a->at, a->at + 1, (size_t)(to - 1) * sizeof a->at[0]);
        a->at[to - 1] = value;
        return;
    }
    memmove(a->at + to + 1, a->at + to, (size_t)(a->n - to) * sizeof a->at[0]);
    a->at[to] = value;
    a->n++;
}

/* ---- cells ---- */

/* Whether the row is one of the map. Rows that fit and are not the best, such as those of --layout,
 * belong to no map. */
static bool is_in(const map_key *key, const report_predicted *x) {
    const prediction_record *r = x->row;
    return (r->best || !(r->parts & PREDICTION_FITS)) && same_map(key, x) &&
           (!r->network[0] || strcmp(r->network, key->network) == 0);
}

static void put(map_cell *c, const prediction_record *r) {
    if (r->best && (!c->best || r->tokens_s > c->best->tokens_s))
        c->best = r;
    c->too_large |= !r->best;
}

/* Finds out why cells are empty. A row of sequences that do not fit does not have their number. A
 * number of sequences that has no layout is smaller than all numbers that have one, at any context.
 * So if a context has a row of sequences that do not fit, these are its empty cells from the
 * smallest number on that has a layout. */
static void mark_too_large(layout_map *map, int g, const bool unfit[MAP_CONTEXTS]) {
    int least = map->batches.n;
    for (int b = 0; b < map->batches.n; b++)
        for (int c = 0; c < map->contexts.n; c++)
            if (map->at[g][b][c].best && b < least)
                least = b;
    least = least == map->batches.n ? 0 : least;
    for (int b = least; b < map->batches.n; b++)
        for (int c = 0; c < map->contexts.n; c++)
            map->at[g][b][c].too_large = unfit[c];
}

void layout_map_fill(const report_model *m, const map_key *key, layout_map *out) {
    bool unfit[MAP_GPUS][MAP_CONTEXTS] = {{false}};
    *out = (layout_map){.key = *key};
    for (size_t i = 0; i < m->n_predicted; i++) {
        const prediction_record *r = m->predicted[i].row;
        if (!is_in(key, &m->predicted[i]))
            continue;
        add(&out->gpus, r->gpus, MAP_GPUS);
        add(&out->contexts, r->context, MAP_CONTEXTS);
        if (r->best && !r->largest)
            add(&out->batches, r->batch, MAP_BATCHES);
    }
    for (size_t i = 0; i < m->n_predicted; i++) {
        const prediction_record *r = m->predicted[i].row;
        int g = place(&out->gpus, r->gpus), c = place(&out->contexts, r->context),
            b = place(&out->batches, r->batch);
        if (g < 0 || c < 0 || !is_in(key, &m->predicted[i]))
            continue;
        if (r->largest) {
            out->has_largest = true;
            put(&out->largest[g][c], r);
        } else if (!r->best)
            unfit[g][c] = true;
        else if (b >= 0)
            put(&out->at[g][b][c], r);
    }
    for (int g = 0; g < out->gpus.n; g++)
        mark_too_large(out, g, unfit[g]);
}

bool layout_map_is_tied(const prediction_record *best) {
    return best->runner_up && best->runner_up[0] &&
           best->runner_up_interval[1] >= best->tokens_s_interval[0];
}

void layout_map_text(const report_model *m, const map_key *key, buf *out) {
    const prediction_record *r = key->row;
    (void)buf_printf(out, "%s, weights in %s", r->model_config, r->weights);
    if (strcmp(r->link, "measured") != 0)
        (void)buf_printf(out, ", link %s", r->link);
    if (key->network[0])
        (void)buf_printf(out, ", network %s", key->network);
    if (r->exchange[0])
        (void)buf_puts(out, ", all-to-all");
    if (m->n_files > 1)
        (void)buf_printf(out, ", %s", report_name_of(m, key->file));
}
