#include "harness/view/gaps.h"

#include <stdio.h>
#include <string.h>

#include "harness/view/compare.h"
#include "harness/view/conditions.h"
#include "harness/view/shipped_shapes.h"

enum { kListed = 32 }; /* shapes that a command lists rather than to measure others with them */

static bool is_of(const report_model *m, const report_cell *c, int device) {
    return m->device_of[c->file] == device;
}

/* Whether a device cannot run a cell: its files have the cell as a skipped row. A row that a time
 * limit left out does not count, because a longer run measures it. */
static bool refuses(const report_model *m, int device, const report_cell *c) {
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *own = &m->cells[i];
        if (is_of(m, own, device) && strcmp(own->row->status, "skipped") == 0 &&
            !cell_is_left_out(own->row) && compare_same_cell(own, c))
            return true;
    }
    return false;
}

/* A result of another command, such as `fidelity`, lacks no cells. */
static bool has_cells(const report_model *m, int device) {
    for (size_t i = 0; i < m->n_cells; i++)
        if (is_of(m, &m->cells[i], device))
            return true;
    return false;
}

static const origin_record *origin_of(const report_model *m, int file) {
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].file == file)
            return m->sources[i].row;
    return NULL;
}

/* Whether a list such as "16/1/1/1024,1/1/8/8192" has a shape. */
static bool is_listed(const char *list, const cell_shape *s) {
    char text[96];
    size_t n = (size_t)snprintf(text, sizeof text, "%lld/%lld/%lld/%lld", (long long)s->heads,
                                (long long)s->s_q, (long long)s->batch, (long long)s->context);
    for (const char *at = list; (at = strstr(at, text)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

/* Whether a shape follows from the bandwidth and memory of the device that measured it
 * (bench --scaled). Other devices have scaled shapes of their own, so they do not lack it. */
static bool is_scaled(const report_model *m, const report_cell *c) {
    const origin_record *from = origin_of(m, c->file);
    const char *listed = from && from->config ? js_get_str(from->config, "shapes") : NULL;
    return listed && js_get_bool(from->config, "scaled", false) && !is_listed(listed, c->shape);
}

static bool lacks(const report_model *m, int device, const report_cell *c) {
    if (!compare_usable(c) || is_of(m, c, device) || is_scaled(m, c))
        return false;
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *own = &m->cells[i];
        if (is_of(m, own, device) && compare_usable(own) && compare_same_cell(own, c) &&
            compare_same_command(own, c))
            return false;
    }
    return !refuses(m, device, c);
}

/* Whether an earlier row of the model is the same cell, so that this one need not be counted. */
static bool is_repeated(const report_model *m, int device, size_t at) {
    const report_cell *c = &m->cells[at];
    for (size_t i = 0; i < at; i++) {
        const report_cell *other = &m->cells[i];
        if (!is_of(m, other, device) && compare_usable(other) && !is_scaled(m, other) &&
            compare_same_cell(other, c) && compare_same_command(other, c))
            return true;
    }
    return false;
}

/* ---- what one command can measure ----------------------------------------------------------- */

static bool same_lengths(const report_cell *a, const report_cell *b) {
    const cell_lengths *x = &a->row->lengths, *y = &b->row->lengths;
    if (x->exists != y->exists)
        return false;
    return !x->exists || (strcmp(x->distribution, y->distribution) == 0 && a->file == b->file &&
                          a->shape->s_q == b->shape->s_q && a->shape->batch == b->shape->batch);
}

static bool same_challenge(const report_cell *a, const report_cell *b) {
    const cell_challenge *x = &a->row->challenge, *y = &b->row->challenge;
    if (x->exists != y->exists)
        return false;
    return !x->exists || (strcmp(x->seed, y->seed) == 0 && x->tokens == y->tokens);
}

/* Whether one run of `bench` can have both cells. A run's arms are the two precisions, or the two
 * precisions and the ablation, or the named arms of one file. Named arms that need their file or
 * CUDA are in a separate run. */
static bool same_arms(const report_cell *a, const report_cell *b) {
    if (a->row->name[0] || b->row->name[0])
        return a->row->name[0] && b->row->name[0] && a->file == b->file &&
               gap_needs_file(a) == gap_needs_file(b) && gap_needs_cuda(a) == gap_needs_cuda(b);
    return report_is_ablated(a) == report_is_ablated(b);
}

static bool same_timing(const report_cell *a, const report_cell *b) {
    bool loops = strcmp(condition_value(a->row, CONDITION_MODE), "sustained") == 0;
    return !condition_differs(a->row, b->row, CONDITION_INPUT) &&
           !condition_differs(a->row, b->row, CONDITION_MODE) &&
           (loops || !condition_differs(a->row, b->row, CONDITION_COLD));
}

static bool same_gap(const report_cell *a, const report_cell *b) {
    return strcmp(a->row->scope, b->row->scope) == 0 && same_timing(a, b) && same_arms(a, b) &&
           (same_challenge(a, b) && (a->row->challenge.exists || same_lengths(a, b))) &&
           a->shape->d_c == b->shape->d_c && a->shape->d_r == b->shape->d_r;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Gaps in the order in which they were found. */
typedef struct {
    const report_model *m;
    arena *mem;
    gap *all;
    size_t n;
    bool failed; /* out of memory */
} gap_list;

/* Adds a gap with room for @room cells. NULL: out of memory. */
static gap *add_gap(gap_list *l, int device, const char *config, size_t room) {
    const report_cell **cells = arena_alloc(l->mem, room + 1, sizeof(report_cell *));
    l->failed |= !cells;
    if (!cells)
        return NULL;
    l->all[l->n] = (gap){.device = device, .config = config, .cells = cells};
    return &l->all[l->n++];
}

/* Groups the cells that a device lacks into gaps. One command could measure all cells of a gap,
 * if a command could list any number of shapes. */
static void collect(gap_list *l, int device) {
    const report_model *m = l->m;
    const size_t from = l->n;
    for (size_t i = 0; i < m->n_cells && !l->failed; i++) {
        const report_cell *c = &m->cells[i];
        size_t g = from;
        if (!lacks(m, device, c) || is_repeated(m, device, i))
            continue;
        while (g < l->n && !same_gap(l->all[g].cells[0], c))
            g++;
        if (g == l->n && !add_gap(l, device, NULL, m->n_cells))
            return;
        l->all[g].cells[l->all[g].n_cells++] = c;
    }
}

/* ---- gaps divided by the shapes that a command can name -------------------------------------- */

typedef struct {
    const shipped_shapes *at;
    size_t n;
} config_list;

static bool is_shape(const bench_shape *s, const report_cell *c) {
    return s->heads == c->shape->heads && s->s_q == c->shape->s_q && s->batch == c->shape->batch &&
           s->context == c->shape->context && s->d_c == c->shape->d_c && s->d_r == c->shape->d_r;
}

static bool has_shape(const shipped_shapes *config, const report_cell *c) {
    for (int i = 0; i < config->n; i++)
        if (is_shape(&config->shapes[i], c))
            return true;
    return false;
}

/* How many shapes of a configuration the cells of a gap have. */
static int count_shapes(const shipped_shapes *config, const gap *g) {
    int n = 0;
    for (int i = 0; i < config->n; i++) {
        bool found = false;
        for (size_t k = 0; k < g->n_cells && !found; k++)
            found = is_shape(&config->shapes[i], g->cells[k]);
        n += found;
    }
    return n;
}

/* Returns the configuration that measures the most shapes of a gap. It must measure at least two of
 * them. If it also measures shapes outside the gap, it must measure more than kListed of the gap's.
 * NULL if no configuration does. */
static const shipped_shapes *best_config(const config_list *configs, const gap *g) {
    const shipped_shapes *best = NULL;
    int most = 1;
    for (size_t i = 0; i < configs->n; i++) {
        int n = count_shapes(&configs->at[i], g);
        if (n <= most || (n < configs->at[i].n && n <= kListed))
            continue;
        most = n;
        best = &configs->at[i];
    }
    return best;
}

/* Moves the cells whose shapes a configuration has from a gap to a new one. */
static void divide_off(gap_list *l, gap *from, const shipped_shapes *config) {
    gap *to = add_gap(l, from->device, config->name, from->n_cells);
    size_t kept = 0;
    for (size_t i = 0; to && i < from->n_cells; i++)
        if (has_shape(config, from->cells[i]))
            to->cells[to->n_cells++] = from->cells[i];
        else
            from->cells[kept++] = from->cells[i];
    from->n_cells = kept;
}

/* Adds the cells of a gap as gaps of at most GRID_LIST shapes. */
static void add_listed(gap_list *l, const gap *from) {
    size_t *number = arena_alloc(l->mem, from->n_cells + 1, sizeof *number); /* each cell's shape */
    size_t shapes = 0;
    l->failed |= !number;
    for (size_t i = 0, k; number && i < from->n_cells; i++) {
        for (k = 0; k < i && !gap_same_shape(from->cells[k], from->cells[i]);)
            k++;
        number[i] = k < i ? number[k] : shapes++;
    }
    for (size_t first = 0; first < shapes && !l->failed; first += GRID_LIST) {
        gap *to = add_gap(l, from->device, NULL, from->n_cells);
        for (size_t i = 0; to && i < from->n_cells; i++)
            if (number[i] >= first && number[i] < first + GRID_LIST)
                to->cells[to->n_cells++] = from->cells[i];
    }
}

/* Adds a gap as one or several, so that one command can name the shapes of each. */
static void divide(gap_list *l, gap g, const config_list *configs) {
    const cell_record *r = g.cells[0]->row;
    const shipped_shapes *config;
    if (r->lengths.exists || r->challenge.exists || gap_obstacle(l->m, &g)) {
        l->all[l->n++] = g;
        return;
    }
    while (!l->failed && (config = best_config(configs, &g)))
        divide_off(l, &g, config);
    if (gap_is_grid(&g))
        l->all[l->n++] = g;
    else
        add_listed(l, &g);
}

gap *gaps_find(const report_model *m, arena *mem, size_t *n) {
    const size_t room = m->n_cells * (size_t)m->n_devices + 1; /* each gap has a cell of its own */
    gap_list whole = {.m = m, .mem = mem, .all = arena_alloc(mem, room, sizeof *whole.all)};
    gap_list out = {.m = m, .mem = mem, .all = arena_alloc(mem, room, sizeof *out.all)};
    shipped_shapes *at;
    config_list configs;
    *n = 0;
    if (!whole.all || !out.all || !shipped_shapes_list(mem, &at, &configs.n))
        return NULL;
    configs.at = at;
    for (int d = 0; d < m->n_devices && !whole.failed; d++)
        if (has_cells(m, d))
            collect(&whole, d);
    for (size_t i = 0; i < whole.n; i++)
        divide(&out, whole.all[i], &configs);
    *n = out.n;
    return whole.failed || out.failed ? NULL : out.all;
}
