#include "harness/view/layout_map.h"

#include <string.h>

#include "harness/view/layout_text.h"

/* Whether the row has the fastest layout of a cell. */
static bool is_best(const prediction_record *r) {
    return r->best && (r->parts & PREDICTION_FITS);
}

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
        if (is_best(x->row) && is_new(out, n, x) && n < most)
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
    return (is_best(r) || !(r->parts & PREDICTION_FITS)) && same_map(key, x) &&
           (!r->network[0] || strcmp(r->network, key->network) == 0);
}

static void put(map_cell *c, const prediction_record *r) {
    if (is_best(r) && (!c->best || r->tokens_s > c->best->tokens_s))
        c->best = r;
    c->too_large |= !is_best(r);
}

/* A row of sequences that do not fit does not have their number. But of the layouts with a sequence
 * for each replica, it has the one with the most replicas. So its sequences are at least as many as
 * its replicas, and a number of sequences that has no layout is smaller. @replicas: the fewest
 * replicas of such a row for each context; 0 = there is no such row. */
static void mark_too_large(layout_map *map, int g, const int replicas[MAP_CONTEXTS]) {
    for (int b = 0; b < map->batches.n; b++)
        for (int c = 0; c < map->contexts.n; c++)
            map->at[g][b][c].too_large = replicas[c] > 0 && map->batches.at[b] >= replicas[c];
}

void layout_map_fill(const report_model *m, const map_key *key, layout_map *out) {
    int replicas[MAP_GPUS][MAP_CONTEXTS] = {{0}};
    *out = (layout_map){.key = *key};
    for (size_t i = 0; i < m->n_predicted; i++) {
        const prediction_record *r = m->predicted[i].row;
        if (!is_in(key, &m->predicted[i]))
            continue;
        add(&out->gpus, r->gpus, MAP_GPUS);
        add(&out->contexts, r->context, MAP_CONTEXTS);
        if (is_best(r) && !r->largest)
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
        } else if (!is_best(r)) {
            const int dp = layout_read(r->layout).dp;
            if (dp > 0 && (!replicas[g][c] || dp < replicas[g][c]))
                replicas[g][c] = dp;
        } else if (b >= 0)
            put(&out->at[g][b][c], r);
    }
    for (int g = 0; g < out->gpus.n; g++)
        mark_too_large(out, g, replicas[g]);
}

bool layout_map_is_tied(const prediction_record *best) {
    return best->tied > 0 ||
           (best->runner_up[0] && best->runner_up_interval[1] >= best->tokens_s_interval[0]);
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
