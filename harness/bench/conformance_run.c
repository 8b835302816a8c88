#include "harness/bench/conformance_run.h"

#include "base/term.h"
#include "base/text.h"

typedef struct {
    conformance_result *out;
    const volatile sig_atomic_t *cancel;
    conformance_backend *now; /* the backend that is being checked */
    term_progress progress;
} checking;

static bool on_row(void *ctx, const conformance_row *row) {
    checking *c = ctx;
    conformance_backend *b = c->now;
    b->rows[b->n++] = *row;
    b->failed += row->verdict == CONFORMANCE_FAILED;
    b->skipped += row->verdict == CONFORMANCE_SKIPPED;
    term_progress_update(&c->progress, b->n, row->check);
    return !c->cancel || !*c->cancel;
}

static snap_status check(checking *c, mla_backend *be, snap_err *err) {
    if (c->out->n == CONFORMANCE_BACKENDS)
        return err_set(err, SNAP_E_USAGE, "more than %d backends", CONFORMANCE_BACKENDS);
    conformance_row *rows = arena_alloc(&c->out->mem, (size_t)conformance_count(), sizeof *rows);
    if (!rows)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the rows");
    conformance_backend *b = &c->out->backends[c->out->n++];
    b->rows = rows;
    c->now = b;
    mla_backend_describe(be, &b->info);
    c->progress = term_progress_start(b->info.kernel, conformance_count());
    snap_status st = conformance_run(be, on_row, c, err);
    term_progress_end(&c->progress);
    return st;
}

static snap_status check_named(checking *c, const device_options *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->isa, .threads = (int)d->threads};
    mla_backend *be = NULL;
    snap_status st = device_scale(&wanted.scale, d->scale, err);
    if (st == SNAP_OK)
        st = mla_backend_open(&be, d->backend, &wanted, err);
    if (st == SNAP_OK)
        st = check(c, be, err);
    mla_backend_close(be);
    return st;
}

/* A backend that does not open on this machine is skipped. */
static snap_status check_if_present(checking *c, const device_options *d, snap_err *err) {
    mla_backend_options wanted = {.isa = d->isa};
    mla_backend *be = NULL;
    snap_err absent = {0};
    snap_status st = mla_backend_open(&be, d->backend, &wanted, &absent);
    mla_backend_close(be);
    return st == SNAP_OK ? check_named(c, d, err) : SNAP_OK;
}

static snap_status check_all(checking *c, const device_options *d, snap_err *err) {
    static const char *const kIsas[] = {"amx", "avx512", "avx512f", "avx2", "portable", NULL};
    snap_status st = SNAP_OK;
    for (const char *const *isa = kIsas; *isa && st == SNAP_OK; isa++)
        st = check_if_present(
            c,
            &(device_options){
                .backend = "cpu", .isa = *isa, .threads = d->threads, .scale = d->scale},
            err);
    for (const char *const *name = mla_backend_list(); *name && st == SNAP_OK; name++)
        if (!text_equal(*name, "cpu"))
            st = check_if_present(
                c,
                &(device_options){
                    .backend = *name, .isa = "auto", .threads = d->threads, .scale = d->scale},
                err);
    return st;
}

snap_status conformance_run_on(conformance_result *out, const device_options *d,
                               const volatile sig_atomic_t *cancel, snap_err *err) {
    *out = (conformance_result){0};
    checking c = {.out = out, .cancel = cancel};
    return text_equal(d->backend, "all") ? check_all(&c, d, err) : check_named(&c, d, err);
}

void conformance_release(conformance_result *r) {
    arena_release(&r->mem);
    *r = (conformance_result){0};
}

snap_status conformance_status(const conformance_result *r, snap_err *err) {
    int failed = 0;
    for (int i = 0; i < r->n; i++)
        failed += r->backends[i].failed;
    return failed ? err_set(err, SNAP_E_WRONG, "%d check%s failed", failed, failed == 1 ? "" : "s")
                  : SNAP_OK;
}
