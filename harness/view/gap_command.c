/* gap_command.c - the command that measures the cells of a gap. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/view/conditions.h"
#include "harness/view/gaps.h"

typedef bool (*same_fn)(const report_cell *a, const report_cell *b);
typedef void (*put_fn)(buf *out, const report_cell *c);

static bool same_shape(const report_cell *a, const report_cell *b) {
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

/* Whether cell @at is in the gap, and none before it is the same. */
static bool is_new(const report_model *m, const gap *g, same_fn same, size_t at) {
    bool found = gap_has(m, g, &m->cells[at]);
    for (size_t i = 0; found && i < at; i++)
        found = !(same(&m->cells[i], &m->cells[at]) && gap_has(m, g, &m->cells[i]));
    return found;
}

/* Appends a list of what the cells of a gap have, each once. */
static void put_list(const report_model *m, const gap *g, same_fn same, put_fn put, buf *out) {
    const char *before = "";
    for (size_t i = 0; i < m->n_cells; i++) {
        if (!is_new(m, g, same, i))
            continue;
        (void)buf_puts(out, before);
        put(out, &m->cells[i]);
        before = ",";
    }
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

/* The backend of a file as an option names it; NULL if it is unknown. */
static const char *backend_of(const report_model *m, int file) {
    static const char *const kNames[] = {"cpu", "cuda", "opencl"};
    const origin_record *from = origin_of(m, file);
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

static void put_device(const report_model *m, int file, buf *out) {
    const origin_record *from = origin_of(m, file);
    const char *backend = backend_of(m, file), *isa = option_of(from, "isa");
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

/* Appends the arm of a row, on the backend of the file that lacks it. Instruction set and threads
 * are those of another machine, so they are left out. */
static void put_arm(const report_model *m, int file, const cell_record *row, buf *out) {
    char options[512], *rest = NULL;
    buf arm = {0};
    (void)snprintf(options, sizeof options, "%s", row->options);
    (void)strtok_r(options, ",", &rest); /* the other machine's backend */
    (void)buf_printf(&arm, "%s=%s", row->name, backend_of(m, file));
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
    if (!g->first->row->name[0]) {
        put_device(m, g->file, out);
        (void)buf_puts(out, report_is_ablated(g->first) ? " --ablation" : "");
        return;
    }
    for (size_t i = 0; i < m->n_cells; i++)
        if (is_new(m, g, same_name, i))
            put_arm(m, g->file, m->cells[i].row, out);
}

static void put_work(const report_model *m, const gap *g, buf *out) {
    const cell_record *r = g->first->row;
    const origin_record *from = origin_of(m, g->first->file);
    if (r->challenge.exists) {
        (void)buf_printf(out, " --challenge-tokens %lld --challenge ",
                         (long long)r->challenge.tokens);
        put_word(out, r->challenge.seed);
        return;
    }
    (void)buf_printf(out, " --distribution %s", r->distribution);
    if (g->first->shape->d_c != 512 || g->first->shape->d_r != 64)
        (void)buf_printf(out, " --d-c %lld --d-r %lld", (long long)g->first->shape->d_c,
                         (long long)g->first->shape->d_r);
    if (!r->lengths.exists) {
        (void)buf_puts(out, " --shapes ");
        put_list(m, g, same_shape, put_shape, out);
        return;
    }
    (void)buf_puts(out, " --lengths ");
    put_word(out, r->lengths.distribution);
    (void)buf_printf(out, " --seed %lld --s-q %lld --batch %lld --heads ",
                     (long long)(from ? from->seed : 1), (long long)g->first->shape->s_q,
                     (long long)g->first->shape->batch);
    put_list(m, g, same_heads, put_heads, out);
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

/* Why no command measures the cells of a gap; NULL if one does. */
static const char *obstacle(const report_model *m, const gap *g) {
    const cell_record *r = g->first->row;
    const char *backend = backend_of(m, g->file);
    if (strcmp(condition_value(r, CONDITION_COLD), "warm") == 0)
        return "the cache was warm, which no option sets";
    if (r->lengths.exists && !r->challenge.exists && !is_drawn(&r->lengths))
        return "the lengths are those of a file";
    if (gap_needs_file(g->first))
        return "the arm is a plugin or a Python file";
    if (gap_needs_cuda(g->first) && !(backend && strcmp(backend, "cuda") == 0))
        return "the arm runs on CUDA devices only";
    return r->name[0] && !backend ? "the backend of this file is not known" : NULL;
}

void gap_command(const report_model *m, const gap *g, buf *out) {
    const cell_record *r = g->first->row;
    const char *why = obstacle(m, g);
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
}
