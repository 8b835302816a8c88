/* gap_command.c - the command that measures the cells of a gap. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/bench/grid.h"
#include "harness/view/compare.h"
#include "harness/view/conditions.h"
#include "harness/view/gaps.h"

enum { kFew = 8 }; /* shapes that a command lists rather than to name four lists */

typedef bool (*same_fn)(const report_cell *a, const report_cell *b);
typedef void (*put_fn)(buf *out, const report_cell *c);

bool gap_same_shape(const report_cell *a, const report_cell *b) {
    return a->shape->heads == b->shape->heads && a->shape->s_q == b->shape->s_q &&
           a->shape->batch == b->shape->batch && a->shape->context == b->shape->context;
}

static void put_shape(buf *out, const report_cell *c) {
    (void)buf_printf(out, "%lld/%lld/%lld/%lld", (long long)c->shape->heads,
                     (long long)c->shape->s_q, (long long)c->shape->batch,
                     (long long)c->shape->context);
}

static bool same_heads(const report_cell *a, const report_cell *b) {
    return a->shape->heads == b->shape->heads;
}

static void put_heads(buf *out, const report_cell *c) {
    (void)buf_printf(out, "%lld", (long long)c->shape->heads);
}

static bool same_s_q(const report_cell *a, const report_cell *b) {
    return a->shape->s_q == b->shape->s_q;
}

static void put_s_q(buf *out, const report_cell *c) {
    (void)buf_printf(out, "%lld", (long long)c->shape->s_q);
}

static bool same_batch(const report_cell *a, const report_cell *b) {
    return a->shape->batch == b->shape->batch;
}

static void put_batch(buf *out, const report_cell *c) {
    (void)buf_printf(out, "%lld", (long long)c->shape->batch);
}

static bool same_context(const report_cell *a, const report_cell *b) {
    return a->shape->context == b->shape->context;
}

static void put_context(buf *out, const report_cell *c) {
    (void)buf_printf(out, "%lld", (long long)c->shape->context);
}

/* Whether cell @at of a gap is the first of its kind: no cell before it is the same. */
static bool is_new(const gap *g, same_fn same, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (same(g->cells[i], g->cells[at]))
            return false;
    return true;
}

static size_t count_new(const gap *g, same_fn same) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_cells; i++)
        n += is_new(g, same, i);
    return n;
}

/* Appends a list of what the cells of a gap have, each once. */
static void put_list(const gap *g, same_fn same, put_fn put, buf *out) {
    const char *before = "";
    for (size_t i = 0; i < g->n_cells; i++) {
        if (!is_new(g, same, i))
            continue;
        (void)buf_puts(out, before);
        put(out, g->cells[i]);
        before = ",";
    }
}

/* The lists of `bench` whose combinations are its shapes. */
static const struct {
    const char *option;
    same_fn same;
    put_fn put;
} kAxes[] = {{"heads", same_heads, put_heads},
             {"s-q", same_s_q, put_s_q},
             {"batch", same_batch, put_batch},
             {"context", same_context, put_context}};

bool gap_is_grid(const gap *g) {
    size_t product = 1, shapes = count_new(g, gap_same_shape);
    for (size_t i = 0; i < sizeof kAxes / sizeof *kAxes; i++) {
        size_t n = count_new(g, kAxes[i].same);
        if (n > GRID_AXIS)
            return false;
        product *= n;
    }
    return shapes > kFew && product == shapes;
}

static const origin_record *origin_of(const report_model *m, int file) {
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].file == file)
            return m->sources[i].row;
    return NULL;
}

/* An option of the run that made a file; NULL if it has the value "auto" or none. */
static const char *option_of(const origin_record *from, const char *key) {
    const char *text = from && from->config ? js_get_str(from->config, key) : NULL;
    return text && text[0] && strcmp(text, "auto") != 0 ? text : NULL;
}

/* The origin of a device's cells, or of its other rows. */
static const origin_record *origin_of_device(const report_model *m, int device) {
    for (size_t i = 0; i < m->n_cells; i++)
        if (m->device_of[m->cells[i].file] == device)
            return origin_of(m, m->cells[i].file);
    return compare_origin(m, device);
}

/* The backend of a device as an option names it; NULL if it is unknown. */
static const char *backend_of(const report_model *m, int device) {
    static const char *const kNames[] = {"cpu", "cuda", "opencl"};
    const origin_record *from = origin_of_device(m, device);
    const char *given = option_of(from, "backend");
    for (size_t k = 0; !given && k < sizeof kNames / sizeof *kNames; k++)
        if (from && from->backend.exists && strcmp(from->backend.name, kNames[k]) == 0)
            return kNames[k];
    return given;
}

/* Appends a word for a shell, in quotes if it needs them. */
static void put_word(buf *out, const char *text) {
    static const char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_-+=:,./@";
    if (text[0] && !text[strspn(text, kPlain)]) {
        (void)buf_puts(out, text);
        return;
    }
    (void)buf_puts(out, "'");
    for (; *text; text++)
        (void)buf_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
    (void)buf_puts(out, "'");
}

static void put_device(const report_model *m, int device, buf *out) {
    const origin_record *from = origin_of_device(m, device);
    const char *backend = backend_of(m, device), *isa = option_of(from, "isa");
    int64_t threads = from && from->config ? js_get_int(from->config, "threads", 0) : 0;
    if (backend) {
        (void)buf_puts(out, " --backend ");
        put_word(out, backend);
    }
    if (isa) {
        (void)buf_puts(out, " --isa ");
        put_word(out, isa);
    }
    if (threads > 0)
        (void)buf_printf(out, " --threads %lld", (long long)threads);
}

/* Appends the arm of a row, on the backend of the device that lacks it. Instruction set and threads
 * are those of another machine, so they are left out. */
static void put_arm(const report_model *m, int device, const cell_record *row, buf *out) {
    char options[512], *rest = NULL;
    buf arm = {0};
    (void)snprintf(options, sizeof options, "%s", row->options);
    (void)strtok_r(options, ",", &rest); /* the other machine's backend */
    (void)buf_printf(&arm, "%s=%s", row->name, backend_of(m, device));
    for (char *key; (key = strtok_r(NULL, ",", &rest));)
        if (!text_starts(key, "isa=") && !text_starts(key, "threads="))
            (void)buf_printf(&arm, ",%s", key);
    (void)buf_puts(out, " --arm ");
    put_word(out, buf_str(&arm));
    out->failed |= arm.failed;
    buf_release(&arm);
}

static bool same_name(const report_cell *a, const report_cell *b) {
    return strcmp(a->row->name, b->row->name) == 0;
}

static void put_arms(const report_model *m, const gap *g, buf *out) {
    if (!g->cells[0]->row->name[0]) {
        put_device(m, g->device, out);
        (void)buf_puts(out, report_is_ablated(g->cells[0]) ? " --ablation" : "");
        return;
    }
    for (size_t i = 0; i < g->n_cells; i++)
        if (is_new(g, same_name, i))
            put_arm(m, g->device, g->cells[i]->row, out);
}

/* Appends the shapes of a gap whose sequences have equal lengths. */
static void put_shapes(const gap *g, buf *out) {
    if (g->config) {
        (void)buf_printf(out, " --config %s", g->config);
    } else if (gap_is_grid(g)) {
        for (size_t i = 0; i < sizeof kAxes / sizeof *kAxes; i++) {
            (void)buf_printf(out, " --%s ", kAxes[i].option);
            put_list(g, kAxes[i].same, kAxes[i].put, out);
        }
    } else {
        (void)buf_puts(out, " --shapes ");
        put_list(g, gap_same_shape, put_shape, out);
    }
}

static void put_work(const report_model *m, const gap *g, buf *out) {
    const cell_record *r = g->cells[0]->row;
    const origin_record *from = origin_of(m, g->cells[0]->file);
    if (r->challenge.exists) {
        (void)buf_printf(out, " --challenge-tokens %lld --challenge ",
                         (long long)r->challenge.tokens);
        put_word(out, r->challenge.seed);
        return;
    }
    (void)buf_printf(out, " --distribution %s", r->distribution);
    if (g->cells[0]->shape->d_c != 512 || g->cells[0]->shape->d_r != 64)
        (void)buf_printf(out, " --d-c %lld --d-r %lld", (long long)g->cells[0]->shape->d_c,
                         (long long)g->cells[0]->shape->d_r);
    if (!r->lengths.exists) {
        put_shapes(g, out);
        return;
    }
    (void)buf_puts(out, " --lengths ");
    put_word(out, r->lengths.distribution);
    (void)buf_printf(out, " --seed %lld --s-q %lld --batch %lld --heads ",
                     (long long)(from ? from->seed : 1), (long long)g->cells[0]->shape->s_q,
                     (long long)g->cells[0]->shape->batch);
    put_list(g, same_heads, put_heads, out);
}

bool gap_needs_file(const report_cell *c) {
    return c->row->format.exists || text_starts(c->row->options, "plugin:") ||
           text_starts(c->row->options, "python:");
}

bool gap_needs_cuda(const report_cell *c) {
    return report_is_ablated(c); /* a named arm, too, if its unit of P is that of a page */
}

static bool is_drawn(const cell_lengths *l) {
    static const char *const kKinds[] = {"uniform:", "lognormal:", "bimodal:"};
    for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; i++)
        if (text_starts(l->distribution, kKinds[i]))
            return true;
    return false;
}

const char *gap_obstacle(const report_model *m, const gap *g) {
    const cell_record *r = g->cells[0]->row;
    const char *backend = backend_of(m, g->device);
    bool loops = strcmp(condition_value(r, CONDITION_MODE), "sustained") == 0;
    if (!loops && strcmp(condition_value(r, CONDITION_COLD), "warm") == 0)
        return "the cache was warm, which no option sets";
    if (r->lengths.exists && !r->challenge.exists && !is_drawn(&r->lengths))
        return "the lengths are those of a file";
    if (gap_needs_file(g->cells[0]))
        return "the arm is a plugin or a Python file";
    if (gap_needs_cuda(g->cells[0]) && !(backend && strcmp(backend, "cuda") == 0))
        return "the arm runs on CUDA devices only";
    return r->name[0] && !backend ? "the backend of this device is not known" : NULL;
}

/* Appends the limit of time for a shape and scope, unless the configuration has it. */
static void put_timeout(const report_model *m, const gap *g, buf *out) {
    const origin_record *from = origin_of(m, g->cells[0]->file);
    double s = from && from->config ? js_get_num(from->config, "timeout", 0) : 0;
    if (s > 0 && !g->config)
        (void)buf_printf(out, " --timeout %g", s);
}

void gap_command(const report_model *m, const gap *g, size_t number, buf *out) {
    const cell_record *r = g->cells[0]->row;
    const char *why = gap_obstacle(m, g);
    if (why) {
        (void)buf_printf(out, "none: %s", why);
        return;
    }
    (void)buf_puts(out, "snapmla bench");
    put_arms(m, g, out);
    (void)buf_printf(out, " --scope %s", r->scope);
    if (strcmp(r->mode, "sustained") == 0)
        (void)buf_puts(out, " --sustained 2");
    put_work(m, g, out);
    put_timeout(m, g, out);
    (void)buf_printf(out, " --out missing-%d-%zu.json", g->device + 1, number);
}

void gap_fidelity_command(const report_model *m, int device, size_t number, buf *out) {
    const origin_record *from = NULL;
    for (size_t i = 0; i < m->n_fidelity && !from; i++)
        from = origin_of(m, m->fidelity[i].file);
    const char *contexts = option_of(from, "contexts");
    (void)buf_puts(out, "snapmla fidelity");
    put_device(m, device, out);
    if (contexts) {
        (void)buf_puts(out, " --contexts ");
        put_word(out, contexts);
    }
    (void)buf_printf(out, " --out missing-%d-%zu.json", device + 1, number);
}

void gap_accuracy_command(const report_model *m, int device, buf *out) {
    const char *backend = backend_of(m, device);
    (void)buf_puts(out, "sh ci/vendor.sh build/snapmla OUT ");
    put_word(out, backend ? backend : "BACKEND");
    (void)buf_puts(out, " # its last part");
}
