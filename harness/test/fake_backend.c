#include "harness/test/fake_backend.h"

#include <CUnit/CUnit.h>
#include <string.h>

#include "kernels/formats.h"

struct fake_faults fake_faults;

static const mla_backend_ops *real;
static mla_backend_ops fake;

const mla_backend_ops *fake_ops(void) {
    return &fake;
}

static void fake_describe(const mla_backend *be, mla_backend_info *out) {
    real->describe(be, out);
    out->cache_bytes = 1 << 18; /* small, so that there are few sets */
    if (fake_faults.memory)
        out->memory_bytes = fake_faults.memory;
}

static snap_status fake_run(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                            const mla_attn *attn, snap_err *err) {
    fake_faults.runs++;
    if (fake_faults.fail_from && fake_faults.runs >= fake_faults.fail_from)
        return err_set(err, SNAP_E_DEVICE, "the device fell off the bus");
    snap_status st = real->run(plan, step, cache, attn, err);
    if (fake_faults.corrupt_from && fake_faults.runs >= fake_faults.corrupt_from)
        ((uint16_t *)attn->out)[3] ^= 0x8000; /* one sign of one element */
    return st;
}

static snap_status fake_append(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                               const void *kv, snap_err *err) {
    snap_status st = real->append_kv(plan, step, cache, kv, err);
    if (fake_faults.spoil_append)
        for (int b = 0; b < step->batch && plan->cap.precision == MLA_BF16; b++)
            if (step->seqlens[b] > 0) {
                int64_t slot = mla_slot(step->block_table + (int64_t)b * step->table_width,
                                        cache->pages, step->seqlens[b] - 1);
                uint16_t *row = (uint16_t *)cache->content + slot * (plan->cap.d_c + plan->cap.d_r);
                for (int d = 0; d < plan->cap.d_c; d++)
                    row[d] ^= 0x8000;
            }
    return st;
}

static snap_status fake_timer_stop(mla_backend *be, double *ns, snap_err *err) {
    snap_status st = real->timer_stop(be, ns, err);
    fake_faults.times++;
    if (fake_faults.clock_from && fake_faults.times >= fake_faults.clock_from)
        *ns = -*ns;
    if (fake_faults.reported_ns > 0)
        *ns = fake_faults.reported_ns;
    return st;
}

static snap_status fake_probe_once(mla_backend *be, mla_probe_rates *out, snap_err *err) {
    (void)be;
    (void)err;
    *out = (mla_probe_rates){.read = 1e9, .bf16 = 2e9, .fp8 = 3e9};
    return SNAP_OK;
}

mla_backend *fake_open(void) {
    mla_backend *be = NULL;
    mla_backend_options opt = {.isa = "auto", .threads = 2};
    memset(&fake_faults, 0, sizeof fake_faults);
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &opt, NULL) == SNAP_OK);
    real = be->ops;
    fake = *real;
    fake.describe = fake_describe;
    fake.run = fake_run;
    fake.append_kv = fake_append;
    fake.probe_once = fake_probe_once;
    fake.timer_stop = fake_timer_stop;
    be->ops = &fake;
    return be;
}

void fake_close(mla_backend *be) {
    be->ops = real;
    mla_backend_close(be);
}

/* ---- sweeps ---- */

const bench_grid_text fake_tiny = {.arms = "bf16,fp8",
                                   .scopes = "kernel,served",
                                   .heads = "2,5",
                                   .s_q = "1,2",
                                   .batch = "3",
                                   .context = "1,70",
                                   .d_c = 128,
                                   .d_r = 32};

bench_grid fake_grid(bench_grid_text text) {
    bench_grid g;
    CU_ASSERT_FATAL(bench_grid_parse(&g, &text, NULL) == SNAP_OK);
    return g;
}

bench_grid fake_one_shape(void) {
    bench_grid_text t = fake_tiny;
    t.heads = "5";
    t.s_q = "1";
    t.context = "70";
    return fake_grid(t);
}

sweep_options fake_options(mla_backend *be, const bench_grid *g) {
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    return (sweep_options){
        .backend = be,
        .grid = g,
        .distribution = NUMBERS_MLA,
        .seed = 7,
        .limits = {.noise = 1, .min_samples = 3, .max_samples = 8, .timeout_s = 1e9},
        .kernel_hash = hash};
}

const mla_ceilings fake_plenty = {
    .read = {.rate = 1e15}, .bf16 = {.rate = 1e18}, .fp8 = {.rate = 1e18}};

js *fake_sweep_rows(mla_backend *be, const bench_grid *g, snap_status expected) {
    js *rows = js_new_array();
    sweep_options opt = fake_options(be, g);
    snap_err err = {0};
    CU_ASSERT(sweep_run(&opt, rows, &err) == expected);
    CU_ASSERT(sweep_derive(rows, NULL, &fake_plenty, NULL) == SNAP_OK);
    return rows;
}
