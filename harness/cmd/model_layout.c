#include "harness/cmd/model_layout.h"

#include "base/fault.h"
#include "harness/bench/model_config.h"
#include "harness/cmd/rank_process.h"

typedef struct {
    model_bench_options *o;
    opt_shared *shared;
    model_layout_measure *measure;
} job;

/* Adds what the file of --model-config says. Its path may differ from machine to machine. If it
 * cannot be read, the fact is the error: a rank that can read it differs, and if no rank can, the
 * measurement fails with it. */
static void add_shape(buf *facts, const model_bench_options *o) {
    model_shape s;
    snap_err err = {0};
    char hash[HASH_HEX];
    snap_status st = model_config_open(&s, o->model_config ? o->model_config : "", &err);
    if (st == SNAP_OK)
        st = model_shape_digest(&s, hash, &err);
    if (st == SNAP_OK)
        (void)buf_printf(facts, "model-config=%d layers, hidden_size %d, %d experts, hash %.16s\n",
                         s.num_hidden_layers, s.hidden_size, s.n_routed_experts, hash);
    else
        (void)buf_printf(facts, "model-config=%.300s\n", err.text);
}

static snap_status write_facts(buf *facts, const model_bench_options *o, snap_err *err) {
    snap_status st = rank_program_facts(facts, err);
    if (st != SNAP_OK)
        return st;
    add_shape(facts, o);
    (void)buf_printf(facts, "layout=%.40s\narms=%.40s\nbatch=%.300s\n", o->layout, o->arms,
                     o->batches);
    (void)buf_printf(facts, "context=%.300s\nmemory=%g\nprompt=%lld\none-shot-kib=%lld\n",
                     o->contexts, o->memory_gb, (long long)o->prompt, (long long)o->one_shot_kib);
    (void)buf_printf(facts, "min-time=%g\nparts=%d\nenergy=%g\n", o->seconds, o->parts,
                     o->energy_s);
    return buf_check(facts, "the facts to compare", err);
}

static snap_status join_and_measure(const job *j, const rank_place *place, const rank_devices *d,
                                    snap_err *err) {
    model_bench_options *o = j->o;
    snap_status st;
    buf facts = {0};
    ranks_options how = rank_join_options();
    TRY(write_facts(&facts, o, err));
    TRY(ranks_join(&o->group, place, buf_str(&facts), &how, err));
    TRY(rank_place_choose_device(place, d->of, d->n, err));
    TRY(j->measure(j->shared, place->rank == 0, err));
cleanup:
    if (st != SNAP_OK && o->group)
        ranks_fail(o->group, err);
    if (o->group && st == SNAP_OK)
        st = ranks_close(o->group, err);
    else if (o->group && ranks_close(o->group, NULL) != SNAP_OK)
        st = err->code;
    o->group = NULL;
    buf_release(&facts);
    return st;
}

static snap_status run_rank(const job *j, const rank_place *place, const rank_devices *d,
                            snap_err *err) {
    snap_status st = join_and_measure(j, place, d, err);
    st = fault_of_process(st, err);
    if (st != SNAP_OK)
        rank_leave_message(err);
    return st;
}

/* A launcher that has started several processes is refused: each of them would measure the whole
 * model, beside the others. */
static snap_status measure_alone(opt_shared *shared, model_layout_measure *measure, snap_err *err) {
    int size = rank_place_size();
    if (size > 1)
        return err_set(err, SNAP_E_USAGE,
                       "the launcher has started %d processes, and bench model needs only one "
                       "without a --layout of several GPUs",
                       size);
    return measure(shared, true, err);
}

snap_status model_layout_run(model_bench_options *o, const char *devices, const rank_layout *l,
                             opt_shared *shared, model_layout_measure *measure, snap_err *err) {
    snap_status st;
    rank_place place;
    rank_devices d;
    int size = rank_layout_size(l);
    if (size == 1)
        return measure_alone(shared, measure, err);
    TRY(rank_devices_read(&d, devices, err));
    TRY(rank_place_read(&place, err));
    if (size > E2E_RANKS)
        return err_set(err, SNAP_E_USAGE, "--layout %s has more than %d ranks", o->layout,
                       E2E_RANKS);
    if (place.size != 0 && place.size != size)
        return err_set(err, SNAP_E_USAGE,
                       "--layout %s has %d ranks, and the launcher has started %d", o->layout, size,
                       place.size);
    if (place.size == 0 && d.n != size)
        return err_set(err, SNAP_E_USAGE,
                       "--layout %s has %d ranks: --devices must list as many GPUs, not %d, unless "
                       "a launcher starts the ranks",
                       o->layout, size, d.n);
    st = place.size == 0 ? rank_processes_run(size, err)
                         : run_rank(&(job){o, shared, measure}, &place, &d, err);
cleanup:
    return st;
}
