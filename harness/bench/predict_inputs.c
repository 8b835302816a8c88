#include "harness/bench/predict_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "base/text.h"
#include "harness/bench/model_config.h"
#include "harness/record/run.h"

enum { kLinksLimit = 1 << 20 };
static const char kLinks[] = "configs/links.json";

/* ---- result files ---- */

typedef snap_status (*run_fn)(void *ctx, const run_record *run, const char *file, snap_err *err);

typedef struct {
    run_fn fn;
    void *ctx;
} visit;

static snap_status visit_file(void *ctx, const char *name, snap_err *err) {
    snap_status st;
    const visit *v = ctx;
    results *r = NULL;
    run_record run;
    arena mem = {0};
    char *path = results_file_of(name);
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    TRY(results_load(&r, path, err));
    TRY(run_read(&run, r, &mem, err));
    TRY(v->fn(v->ctx, &run, name, err));
cleanup:
    arena_release(&mem);
    results_free(r);
    free(path);
    return st;
}

static snap_status each_file(const char *files, const char *option, run_fn fn, void *ctx,
                             snap_err *err) {
    visit v = {fn, ctx};
    return text_split(files, ',', option, visit_file, &v, err);
}

/* ---- rows ---- */

static bool is_timed(const step_record *s) {
    return strcmp(s->step, "decode") == 0 && s->parts & STEP_TIMED && s->batch > 0;
}

/* The shape of a row's model. A row has the name of the configuration, with or without ".json". */
static snap_status shape_of(const step_record *s, const char *file, model_shape *out,
                            snap_err *err) {
    char name[128];
    size_t n = strlen(s->model_config);
    n -= text_ends(s->model_config, ".json") ? strlen(".json") : 0;
    if (n == 0 || n >= sizeof name)
        return err_set(err, SNAP_E_INPUT, "%s: a step without the name of its model", file);
    memcpy(name, s->model_config, n);
    name[n] = '\0';
    snap_err why = {0};
    if (model_config_open(out, name, &why) == SNAP_OK)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "%s: its model '%s' is not in configs/models: %s", file, name,
                   why.text);
}

/* Whether a decode step of one row is made of other kernels, whose parts cannot be timed
 * (single_supports_all() in generator/local/cuda/single.cu). */
static bool has_single_step(const model_shape *s) {
    return s->q_lora_rank == 0 && s->arch != ARCH_LONGCAT_FLASH && s->n_routed_experts > 0 &&
           s->n_routed_experts <= 64 && s->n_group <= 1;
}

static snap_status add_step(predict_inputs *in, const step_record *s, const char *file,
                            snap_err *err) {
    const predict_layout one = {.ranks = {1, 1, false}};
    measured_step *m = &in->steps[in->n];
    model_shape shape = {0};
    if (!is_timed(s) || s->layout[0] || !isfinite(s->attention_ns))
        return SNAP_OK;
    if (in->n == PREDICT_ROWS)
        return err_set(err, SNAP_E_USAGE, "--measured: more than %d steps", PREDICT_ROWS);
    snap_status st = shape_of(s, file, &shape, err);
    if (st == SNAP_OK)
        st = kv_format_parse(s->arm, &m->arm, err);
    if (st != SNAP_OK)
        return st;
    bool e4m3 = shape.fp8_block == 128; /* as in step_work_bytes() of step_work.h */
    /* The parts are timed in another step than the one whose experts were counted, so the work has
     * the expected number of experts. */
    *m = (measured_step){
        .arm = m->arm,
        .batch = s->batch,
        .context = s->context,
        .part_ns = {s->attention_ns, s->exchange_ns, s->experts_ns, s->rest_ns},
        .step_ns = s->median_ns,
        .work = predict_work_of(&shape, &one, e4m3, (double)s->batch, s->context, (double)NAN)};
    in->book.single |= has_single_step(&shape);
    in->n++;
    return SNAP_OK;
}

/* Keeps the cell with most cached tokens of each number of heads. */
static void add_cell(kernel_slopes *k, const cell_record *c) {
    int a = strcmp(c->arm, "fp8") == 0;
    int64_t tokens = c->shape.batch * c->shape.context;
    bool usable = (a || strcmp(c->arm, "bf16") == 0) && strcmp(c->status, "passed") == 0 &&
                  strcmp(c->scope, "kernel") == 0 && strcmp(c->mode, "burst") == 0 &&
                  strcmp(c->cold, "none") != 0 && c->shape.s_q == 1 && !c->lengths.exists &&
                  !c->name[0] && c->performance.median_ns > 0 && tokens > 0;
    kernel_slope *s = k->of[a],
                 new = {(int)c->shape.heads, c->performance.median_ns / (double)tokens, tokens};
    int at = 0;
    if (!usable)
        return;
    while (at < k->n[a] && s[at].heads < new.heads)
        at++;
    if (at < k->n[a] && s[at].heads == new.heads) {
        if (s[at].tokens < tokens)
            s[at] = new;
    } else if (k->n[a] < PREDICT_SLOPES) {
        memmove(&s[at + 1], &s[at], (size_t)(k->n[a]++ - at) * sizeof *s);
        s[at] = new;
    }
}

/* A cell with few tokens takes mostly the fixed time of a launch, so its time for each token says
 * little. */
static void drop_short_cells(kernel_slopes *k) {
    const int64_t fewest = (int64_t)1 << 20;
    for (int a = 0; a < 2; a++) {
        int kept = 0;
        for (int i = 0; i < k->n[a]; i++)
            if (k->of[a][i].tokens >= fewest)
                k->of[a][kept++] = k->of[a][i];
        k->n[a] = kept;
    }
}

static snap_status add_run(void *ctx, const run_record *run, const char *file, snap_err *err) {
    snap_status st = SNAP_OK;
    predict_inputs *in = ctx;
    for (size_t i = 0; i < run->e2e.n; i++)
        TRY(add_step(in, &run->e2e.at[i], file, err));
    for (size_t i = 0; i < run->bench.n; i++)
        add_cell(&in->book.slopes, &run->bench.at[i]);
    for (size_t i = 0; i < run->exchange.n; i++)
        predict_links_add(&in->links, &run->exchange.at[i]);
    for (size_t i = 0; i < run->ceilings.n; i++) {
        const ceiling_record *c = &run->ceilings.at[i];
        bool read = strcmp(c->name, "read_bandwidth") == 0;
        double *rate = read ? &in->book.read_rate : &in->book.product_rate;
        if (strcmp(c->origin, "measured") == 0 && (read || strcmp(c->name, "bf16_mma") == 0))
            *rate = fmax(*rate, c->value);
    }
cleanup:
    return st;
}

/* ---- all inputs ---- */

static snap_status read_links(predict_inputs *in, const predict_sources *from, snap_err *err) {
    snap_status st;
    js *links = NULL;
    char *path = share_find(kLinks);
    if (!path)
        return err_set(err, SNAP_E_ENV, "%s is missing", kLinks);
    links = js_parse_file(path, kLinksLimit, err);
    free(path);
    if (!links)
        return err->code;
    TRY(predict_link_find(&in->links.network, from->network, links, err));
    in->links.has_link = from->link != NULL;
    in->links.all_to_all = from->all_to_all;
    if (from->link)
        TRY(predict_link_find(&in->links.link, from->link, links, err));
cleanup:
    js_free(links);
    return st;
}

snap_status predict_inputs_read(predict_inputs *out, const predict_sources *from, snap_err *err) {
    snap_status st;
    memset(out, 0, sizeof *out);
    if (!from->measured)
        return err_set(err, SNAP_E_USAGE,
                       "--predict needs --measured: result files of 'bench model --parts' and "
                       "'bench kernel' from one GPU, and of 'bench exchange'");
    TRY(read_links(out, from, err));
    TRY(each_file(from->measured, "--measured", add_run, out, err));
    drop_short_cells(&out->book.slopes);
    if (out->n == 0)
        return err_set(err, SNAP_E_USAGE,
                       "--measured: no decode step of one GPU with timed parts (bench model "
                       "--parts) in these files");
    if (!out->book.slopes.n[0] || !out->book.slopes.n[1])
        return err_set(err, SNAP_E_USAGE,
                       "--measured: no cell of the attention kernel in both precisions with at "
                       "least 1048576 cached tokens (bench kernel) in these files");
    if (!(out->book.read_rate > 0) || !(out->book.product_rate > 0))
        return err_set(err, SNAP_E_USAGE,
                       "--measured: no measured ceilings of reads and of BF16 products in these "
                       "files");
    out->links.read_rate = out->book.read_rate;
    rules_fit_and_check(&out->book, out->steps, out->n);
cleanup:
    return st;
}

typedef struct {
    predict_step_fn fn;
    void *ctx;
} step_visit;

static snap_status visit_steps(void *ctx, const run_record *run, const char *file, snap_err *err) {
    snap_status st = SNAP_OK;
    const step_visit *v = ctx;
    for (size_t i = 0; i < run->e2e.n && st == SNAP_OK; i++)
        if (is_timed(&run->e2e.at[i]))
            st = v->fn(v->ctx, &run->e2e.at[i], file, err);
    return st;
}

snap_status predict_each_step(const char *files, predict_step_fn fn, void *ctx, snap_err *err) {
    step_visit v = {fn, ctx};
    return each_file(files, "--against", visit_steps, &v, err);
}
