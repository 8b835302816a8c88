#include "harness/cmd/fidelity_random.h"

#include "base/term.h"
#include "harness/bench/fidelity.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/record/device_results.h"
#include "harness/view/fidelity_tables.h"

typedef struct {
    results *r;
    table *t;
    term_progress progress;
    int64_t done;
} sink;

static snap_status take_row(void *ctx, const fidelity_record *r, snap_err *err) {
    sink *s = ctx;
    js *row = record_write(&fidelity_type, r);
    if (row)
        fidelity_table_add(s->t, row);
    term_progress_update(&s->progress, ++s->done, r->config);
    return results_add(s->r, "fidelity", row, err);
}

snap_status fidelity_random_run(const fidelity_random_args *a, const opt_shared *shared,
                                snap_err *err) {
    mla_backend *be = NULL;
    results *r = NULL;
    table t = fidelity_table();
    fidelity_options what = {.heads = (int)a->heads,
                             .d_c = 512,
                             .d_r = 64,
                             .seed = (uint64_t)a->seed,
                             .threads = (int)a->device->threads,
                             .cancel = &cmd_cancelled};
    snap_status st = SNAP_OK;
    TRY(fidelity_parse(&what, a->formats, a->distributions, a->contexts, err));
    TRY(device_open(&be, a->device, err));
    what.backend = be;
    TRY(results_of_device(&r, be, a->device, "fidelity", shared->resolved, a->seed, err));
    sink s = {.r = r, .t = &t, .progress = term_progress_start("fidelity", fidelity_count(&what))};
    st = fidelity_run(&what, take_row, &s, err);
    term_progress_end(&s.progress);
    TRY(st);
    TRY(a->out ? results_save_run(r, a->out, err) : SNAP_OK);
    TRY(print_results(r, shared, &t, err));
cleanup:
    table_release(&t);
    fidelity_release(&what);
    results_free(r);
    mla_backend_close(be);
    return st;
}
