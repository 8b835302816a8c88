#include "harness/view/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/conditions.h"

static const double kHour = 3600;

static int by_number(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* Returns 0 for two rows with the same work in one step, whatever their arms compute. */
static int by_step(const report_cell *a, const report_cell *b) {
    int d = strcmp(a->row->scope, b->row->scope);
    d = d ? d : by_number(a->shape->d_c, b->shape->d_c);
    d = d ? d : by_number(a->shape->d_r, b->shape->d_r);
    d = d ? d : by_number(a->shape->heads, b->shape->heads);
    d = d ? d : by_number(a->shape->s_q, b->shape->s_q);
    d = d ? d : by_number(a->shape->batch, b->shape->batch);
    d = d ? d : by_number(a->shape->context, b->shape->context);
    d = d ? d : strcmp(a->row->lengths.distribution, b->row->lengths.distribution);
    return d ? d : by_number(a->row->lengths.tokens, b->row->lengths.tokens);
}

/* Returns 0 for two rows of the same cell. */
static int by_cell(const report_cell *a, const report_cell *b) {
    int d = report_is_loop(a) - report_is_loop(b);
    d = d ? d : by_step(a, b);
    d = d ? d : strcmp(a->row->name, b->row->name);
    return d ? d : strcmp(a->row->arm, b->row->arm);
}

/* Whether rows must agree in a condition to be compared. In loops the state of the cache follows
 * from the shape and from the device, so it is no condition. */
static bool must_agree(const report_cell *a, condition c) {
    return !(report_is_loop(a) && c == CONDITION_COLD);
}

static int by_conditions(const report_cell *a, const report_cell *b) {
    int d = 0;
    for (condition c = 0; c < CONDITIONS && d == 0; c++)
        d = !must_agree(a, c) ? 0 : strcmp(condition_value(a->row, c), condition_value(b->row, c));
    return d;
}

static int by_row(const void *x, const void *y) {
    const report_cell *a = ((const compared *)x)->cell, *b = ((const compared *)y)->cell;
    int d = by_cell(a, b);
    d = d ? d : by_number(a->file, b->file);
    return d ? d : by_conditions(a, b);
}

bool compare_same_cell(const report_cell *a, const report_cell *b) {
    return by_cell(a, b) == 0;
}

bool compare_same_step(const report_cell *a, const report_cell *b) {
    return by_step(a, b) == 0;
}

bool compare_same_command(const report_cell *a, const report_cell *b) {
    for (condition c = 0; c < CONDITIONS; c++)
        if (condition_differs(a->row, b->row, c) && must_agree(a, c))
            return false;
    return true;
}

bool compare_doubtful(const report_cell *c) {
    const record_texts *flags = &c->row->flags;
    for (size_t i = 0; i < flags->n; i++)
        if (strcmp(flags->at[i], "weak_baseline") != 0)
            return true;
    return false;
}

bool compare_usable(const report_cell *c) {
    return strcmp(c->row->origin, "measured") == 0 && strcmp(c->row->status, "passed") == 0;
}

/* The conditions in which two rows differ: "input, mode". Allocated in @mem. "" if there are none,
 * and if memory is exhausted. */
static const char *differences(arena *mem, const report_cell *a, const report_cell *b) {
    buf text = {0};
    for (condition c = 0; c < CONDITIONS; c++)
        if (condition_differs(a->row, b->row, c) && must_agree(a, c))
            (void)buf_printf(&text, ", %s", condition_name(c));
    const char *s = text.len ? arena_strdup(mem, text.data + 2) : NULL;
    buf_release(&text);
    return s ? s : "";
}

/* The row to compare @c with, among the @n rows of its cell: the first row under the same
 * conditions if it is from an earlier device, else the first row of all. */
static const report_cell *first_like(const report_model *m, const compared *rows, size_t n,
                                     const report_cell *c) {
    for (size_t i = 0; i < n; i++)
        if (by_conditions(rows[i].cell, c) == 0)
            return m->device_of[rows[i].cell->file] < m->device_of[c->file] ? rows[i].cell
                                                                            : rows[0].cell;
    return rows[0].cell;
}

static void fill(report_model *m, compared *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        compared *r = &rows[i];
        int device = m->device_of[r->cell->file];
        double price = m->usd_per_hour ? m->usd_per_hour[device] : (double)NAN;
        r->first = first_like(m, rows, n, r->cell);
        r->differs = differences(&m->mem, r->first, r->cell);
        r->tok_usd = r->cell->perf->tok_s * kHour / price;
        r->ratio = r->differs[0] || m->device_of[r->first->file] == device
                       ? (double)NAN
                       : r->first->perf->median_ns / r->cell->perf->median_ns;
    }
}

static bool several_devices(const report_model *m, const compared *rows, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (m->device_of[rows[i].cell->file] != m->device_of[rows[0].cell->file])
            return true;
    return false;
}

/* Returns all measured, passed rows whose cell was measured on at least two devices, ordered by
 * cell, then by file. The arena of the model owns them. NULL: out of memory. */
static const compared *compare_cells(report_model *m, size_t *n) {
    compared *rows = arena_alloc(&m->mem, m->n_cells + 1, sizeof *rows);
    size_t all = 0;
    *n = 0;
    for (size_t i = 0; rows && i < m->n_cells; i++)
        if (compare_usable(&m->cells[i]))
            rows[all++] = (compared){.cell = &m->cells[i]};
    if (!rows)
        return NULL;
    qsort(rows, all, sizeof *rows, by_row);
    for (size_t from = 0, to; from < all; from = to) {
        for (to = from + 1; to < all && by_cell(rows[from].cell, rows[to].cell) == 0;)
            to++;
        if (!several_devices(m, rows + from, to - from))
            continue;
        memmove(rows + *n, rows + from, (to - from) * sizeof *rows);
        fill(m, rows + *n, to - from);
        *n += to - from;
    }
    return compare_find_sets(m, rows, *n) ? rows : NULL;
}

/* ---- files that are refused ---- */

static bool same_precision(const report_cell *a, const report_cell *b) {
    return (strcmp(a->row->arm, "bf16") == 0) == (strcmp(b->row->arm, "bf16") == 0);
}

static int count_work(const report_cell *a, const report_cell *b) {
    int n = 0;
    for (condition c = 0; c < CONDITIONS_OF_WORK; c++)
        n += condition_differs(a->row, b->row, c);
    return n;
}

/* Two rows of one step, of @file and of an earlier file that is kept. */
typedef struct {
    const report_cell *earlier, *own;
    int differences; /* conditions of work in which they differ */
} row_pair;

/* Returns the pair with the fewest differences; no rows if there is no pair. */
static row_pair closest(const report_model *m, int file, const bool *refused) {
    row_pair best = {NULL, NULL, CONDITIONS};
    for (size_t i = 0; i < m->n_cells && best.differences; i++) {
        const report_cell *own = &m->cells[i];
        for (size_t k = 0; own->file == file && compare_usable(own) && k < m->n_cells; k++) {
            const report_cell *other = &m->cells[k];
            if (other->file >= file || refused[other->file] || !compare_usable(other) ||
                by_step(own, other) != 0 || !same_precision(own, other) ||
                count_work(own, other) >= best.differences)
                continue;
            best = (row_pair){other, own, count_work(own, other)};
        }
    }
    return best;
}

static const char *or_none(const char *text) {
    return text[0] ? text : "none";
}

bool report_unlike(const report_model *m, int file, const bool *refused, buf *why) {
    row_pair p = closest(m, file, refused);
    if (!p.own || !p.differences)
        return false;
    (void)buf_printf(why,
                     "'%s' cannot be compared with '%s': in all cells of the same scope and "
                     "shape they differ, at least in",
                     m->files[file], m->files[p.earlier->file]);
    const char *before = " ";
    for (condition c = 0; c < CONDITIONS_OF_WORK; c++)
        if (condition_differs(p.own->row, p.earlier->row, c)) {
            (void)buf_printf(why, "%s%s (%.64s instead of %.64s)", before, condition_name(c),
                             or_none(condition_value(p.own->row, c)),
                             or_none(condition_value(p.earlier->row, c)));
            before = ", ";
        }
    return true;
}

/* ---- prices ---- */

static double dollars_of(const js *price) {
    return js_get_num(price, "usd_per_hour", (double)NAN);
}

static bool has_text(const js *price, const char *key) {
    const char *text = js_get_str(price, key);
    return text && text[0];
}

/* Whether @text has the form "2026-01-31". */
static bool is_date(const char *text) {
    static const char form[] = "0000-00-00";
    if (strlen(text) != strlen(form))
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

/* As in other configurations, the key "why" is a comment and not a device. */
static bool is_device(const char *key) {
    return strcmp(key, "why") != 0;
}

/* The entry with the longest key that occurs in the device's name; NULL if there is none. */
static void *entry_of(js *prices, const char *device) {
    size_t longest = 0;
    void *found = NULL;
    for (void *it = prices ? js_first(prices) : NULL; it; it = js_next(prices, it)) {
        size_t n = strlen(js_key(it));
        if (n <= longest || !is_device(js_key(it)) || !strstr(device, js_key(it)))
            continue;
        longest = n;
        found = it;
    }
    return found;
}

static snap_status check_prices(js *prices, snap_err *err) {
    for (void *it = prices ? js_first(prices) : NULL; it; it = js_next(prices, it)) {
        const js *price = js_value(it);
        if (!is_device(js_key(it)))
            continue;
        if (!js_is_object(price) || !has_text(price, "date") || !has_text(price, "source"))
            return err_set(err, SNAP_E_USAGE,
                           "the price of '%s' must be an object with usd_per_hour, date and source",
                           js_key(it));
        if (!is_date(js_get_str(price, "date")))
            return err_set(err, SNAP_E_USAGE,
                           "the price of '%s' must have a date such as 2026-01-31", js_key(it));
        if (!(dollars_of(price) > 0))
            return err_set(err, SNAP_E_USAGE, "the price of '%s' must have a positive usd_per_hour",
                           js_key(it));
    }
    return SNAP_OK;
}

static const char *device_name(const report_model *m, int device) {
    const origin_record *from = compare_origin(m, device);
    return from && from->backend.exists ? from->backend.device : "";
}

/* Sets the price of each device, and a sentence for each price that is used. */
static bool set_prices(report_model *m, js *prices) {
    buf note = {0};
    m->usd_per_hour = arena_alloc(&m->mem, (size_t)m->n_devices + 1, sizeof *m->usd_per_hour);
    for (int i = 0; m->usd_per_hour && i < m->n_devices; i++) {
        void *entry = entry_of(prices, device_name(m, i));
        m->usd_per_hour[i] = entry ? dollars_of(js_value(entry)) : (double)NAN;
        bool listed = false;
        for (int k = 0; k < i && entry; k++)
            listed |= entry_of(prices, device_name(m, k)) == entry;
        if (!entry || listed)
            continue;
        const js *price = js_value(entry);
        (void)buf_printf(&note, " Price of '%s': %g $/h on %s, source: %s.", js_key(entry),
                         m->usd_per_hour[i], js_get_str(price, "date"),
                         js_get_str(price, "source"));
    }
    m->price_note = m->usd_per_hour && !note.failed ? arena_strdup(&m->mem, buf_str(&note)) : NULL;
    buf_release(&note);
    return m->price_note != NULL;
}

snap_status report_compare(report_model *m, js *prices, const report_refused *refused,
                           size_t n_refused, snap_err *err) {
    snap_status st = check_prices(prices, err);
    m->refused = refused;
    m->n_refused = n_refused;
    if (st != SNAP_OK)
        return st;
    if (compare_name_devices(m) && set_prices(m, prices))
        m->compared = compare_cells(m, &m->n_compared);
    if (!m->compared)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a comparison");
    if (!m->n_compared)
        return err_set(
            err, SNAP_E_ENV,
            "nothing to compare: no two devices have a measured row with the same mode, scope and "
            "shape");
    return SNAP_OK;
}
