#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/exchange_arguments.h"
#include "harness/cmd/print.h"
#include "harness/measure/gpu.h"
#include "harness/record/device_results.h"
#include "harness/view/bench_tables.h"

static snap_status write_facts(const exchange_bench_options *o, buf *facts, snap_err *err) {
    snap_status st = rank_program_facts(facts, err);
    if (st != SNAP_OK)
        return st;
    (void)buf_printf(facts, "operations=%.200s\nsizes=%.1000s\ntype=%.20s\nmin-time=%g\n",
                     o->operations, o->sizes, o->type, o->seconds);
    return buf_check(facts, "the facts to compare", err);
}

static snap_status save(const char *out, const opt_shared *shared, const exchange_bench *b,
                        results **r, snap_err *err) {
    snap_status st;
    char kernel[32];
    gpu *g = NULL;
    (void)snprintf(kernel, sizeof kernel, "nccl %d", b->info.nccl);
    TRY(results_new(r, "bench", shared->resolved, 0, err));
    TRY(results_set_backend(*r, "cuda", b->info.device, kernel, 0, err));
    g = gpu_open(b->info.pci);
    if (g)
        TRY(results_set_gpu(*r, gpu_json(g), err));
    for (int i = 0; i < b->n; i++)
        TRY(results_add(*r, "exchange", record_write(&exchange_type, &b->rows[i]), err));
    TRY(out ? results_save_run(*r, out, err) : SNAP_OK);
cleanup:
    gpu_close(g);
    return st;
}

/* Saves and prints the result. Only rank 0 calls it. */
static snap_status show(const exchange_arguments *a, opt_shared *shared, const exchange_bench *b,
                        snap_err *err) {
    results *r = NULL;
    table t = exchange_table(b->rows, b->n);
    snap_status st = save(a->out, shared, b, &r, err);
    if (st == SNAP_OK)
        st = print_results(r, shared, &t, err);
    if (st == SNAP_OK && b->info.one_shot_bytes == 0)
        term_warn("no exchanges over peer memory: %s", b->info.why_not);
    if (st == SNAP_OK && b->wrong)
        st = err_set(err, SNAP_E_WRONG, "%d of %d rows had a wrong result", b->wrong, b->n);
    table_release(&t);
    results_free(r);
    return st;
}

static snap_status choose_device(exchange_options *x, const rank_place *place,
                                 const exchange_arguments *a, snap_err *err) {
    x->device = -1;
    x->local_rank = place->local_rank;
    if (!a->devices.n)
        return SNAP_OK;
    if (place->local_rank < 0 || place->local_rank >= a->devices.n)
        return err_set(err, SNAP_E_USAGE,
                       "--devices lists %d GPUs, and the number of this rank on its machine is %d",
                       a->devices.n, place->local_rank);
    x->device = a->devices.of[place->local_rank];
    return SNAP_OK;
}

/* Joins the group, measures, and leaves the group. If it returns SNAP_OK, all ranks have ended
 * their work. */
static snap_status measure(const exchange_arguments *a, const rank_place *place, exchange_bench *b,
                           snap_err *err) {
    snap_status st;
    buf facts = {0};
    ranks *group = NULL;
    exchange *x = NULL;
    ranks_options how = rank_join_options();
    exchange_options of = {.most_bytes = exchange_bench_bytes(&a->plan)};
    TRY(write_facts(&a->options, &facts, err));
    TRY(ranks_join(&group, place, buf_str(&facts), &how, err));
    of.group = group;
    TRY(choose_device(&of, place, a, err));
    TRY(exchange_cuda_open(&x, &of, err));
    TRY(exchange_bench_run(&a->plan, x, group, &cmd_cancelled, b, err));
cleanup:
    if (st != SNAP_OK && group)
        ranks_fail(group, err);
    if (x)
        x->ops->close(x);
    if (group && st == SNAP_OK)
        st = ranks_close(group, err);
    else if (group && ranks_close(group, NULL) != SNAP_OK)
        st = err->code;
    buf_release(&facts);
    return st;
}

static snap_status measure_and_show(const exchange_arguments *a, opt_shared *shared,
                                    const rank_place *place, snap_err *err) {
    exchange_bench *b = calloc(1, sizeof *b);
    if (!b)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    snap_status st = measure(a, place, b, err);
    if (st == SNAP_OK && place->rank == 0)
        st = show(a, shared, b, err);
    free(b);
    return st;
}

snap_status exchange_rank(const exchange_arguments *a, opt_shared *shared, const rank_place *place,
                          snap_err *err) {
    snap_status st = measure_and_show(a, shared, place, err);
    st = fault_of_process(st, err);
    if (st != SNAP_OK)
        rank_leave_message(err);
    return st;
}
