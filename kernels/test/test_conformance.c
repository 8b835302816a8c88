/* Tests the conformance suite: correct backends pass it, and a backend with one fault fails the
 * check that is meant to find it. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "kernels/backend.h"
#include "kernels/conformance/check.h"
#include "kernels/cut_sums.h"
#include "kernels/formats.h"
#include "kernels/reference.h"
#include "kernels/test/plugins/wrong.h"

typedef struct {
    int rows, failed, skipped, exact;
    char first[64]; /* name of the first check that failed */
    int stop_after; /* the number of rows after which to stop; 0 = never */
} tally;

enum { kOrdinaryRows = 24 /* rows up to the last check of ordinary shapes */ };
static const char kFirstLong[] = "each page of a long context counts";

/* The number of result rows before those of the long checks, which come last. */
static int rows_before_long(void) {
    int rows = conformance_count();
    for (const check *k = checks_reach; k->name; k++)
        rows -= k->both_arms ? 2 : 1;
    return rows;
}

static bool count(void *ctx, const conformance_row *row) {
    tally *t = ctx;
    /* These are the rows at which some runs stop. If they are other checks, such a run would leave
     * out more than it should. */
    if (++t->rows == kOrdinaryRows)
        CU_ASSERT_STRING_EQUAL(row->check, "causal rows, s_q to 4");
    if (t->rows == rows_before_long() + 1)
        CU_ASSERT_STRING_EQUAL(row->check, checks_reach[0].name);
    if (row->verdict == CONFORMANCE_FAILED && !t->failed++)
        (void)snprintf(t->first, sizeof t->first, "%s", row->check);
    t->skipped += row->verdict == CONFORMANCE_SKIPPED;
    t->exact += row->exact;
    return t->rows != t->stop_after;
}

/* Runs all checks. The long checks are left out if @with_long is false. They are also left out
 * under a sanitizer, where they would take minutes. There, test_pages_missed() runs two of the
 * three long checks. With the thread sanitizer, the run ends after the checks of ordinary shapes.
 * Most of the others only have other numbers, which do not change how threads synchronise. */
static tally run(mla_backend *be, bool with_long) {
    bool all = with_long && !kSanitized;
    int rows = all ? conformance_count() : kThreadSanitized ? kOrdinaryRows : rows_before_long();
    tally t = {.stop_after = all ? 0 : rows};
    CU_ASSERT_EQUAL(conformance_run(be, count, &t, NULL), all ? SNAP_OK : SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(t.rows, rows);
    return t;
}

static void expect_passed(const char *name, const char *isa, mla_scale scale, bool with_long) {
    mla_backend *be;
    mla_backend_options opt = {.isa = isa, .threads = 2, .scale = scale};
    if (mla_backend_open(&be, name, &opt, NULL) != SNAP_OK)
        return;
    tally t = run(be, with_long);
    if (t.failed)
        (void)fprintf(stderr, "\n    %s %s: %s\n", name, isa, t.first);
    CU_ASSERT_EQUAL(t.failed, 0);
    CU_ASSERT_EQUAL(t.skipped, 0);
    CU_ASSERT_EQUAL(t.exact, 0); /* these backends round P with one scale per page, as the
                                    paper does */
    mla_backend_close(be);
}

static void test_cpu(void) {
    expect_passed("cpu", "auto", MLA_SCALE_MAX, true);
    /* Under sanitizers, only one instruction set and one scale are tested here, to save time. The
     * suite `cpu` runs the other instruction sets (with the thread sanitizer only one), and the
     * suite `contract` quantises rows with the other scale. */
    if (kSanitized)
        return;
    expect_passed("cpu", "portable", MLA_SCALE_POW2, false);
    expect_passed("cpu", "amx-emulated", MLA_SCALE_MAX, false);
    expect_passed("cpu", "auto", MLA_SCALE_POW2, false);
}

/* Any OpenCL device will do; PoCL provides one that runs on the CPU. */
static void test_opencl(void) {
#ifdef __SANITIZE_THREAD__ /* the sanitizer can't see how a library's threads synchronise */
    (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: the thread sanitizer is on\n");
    return;
#endif
    mla_backend *be;
    snap_err err = {0};
    if (mla_backend_open(&be, "opencl", NULL, &err) != SNAP_OK) {
        (void)fprintf(stderr, "\n    SKIPPED, nothing was tested: %s\n", err.text);
        return;
    }
    mla_backend_close(be);
    expect_passed("opencl", "auto", MLA_SCALE_MAX, true);
    /* The kind of scale changes only a number that the device code reads. Sanitizers do not check
     * device code. */
    if (!kSanitized)
        expect_passed("opencl", "auto", MLA_SCALE_POW2, false);
    CU_ASSERT_EQUAL(mla_backend_open(&be, "opencl", &(mla_backend_options){.isa = "abacus"}, &err),
                    SNAP_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no usable OpenCL device matches 'abacus'"));
}

static tally run_plugin(const char *name, bool with_long) {
    mla_backend *be;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, name, NULL, NULL), SNAP_OK);
    tally t = run(be, with_long);
    CU_ASSERT_EQUAL(t.failed, 0);
    mla_backend_close(be);
    return t;
}

static void test_example(void) {
    CU_ASSERT_EQUAL(run_plugin("plugin:" PLUGINS "/plugins/example.so", true).skipped, 0);
}

/* The minimal plugin has no FP8: the checks of that arm and the quantisation of queries are
 * skipped. It is slow, so the long checks are left out. */
static void test_minimal(void) {
    const int skipped = kThreadSanitized ? 11 : 24;
    CU_ASSERT_EQUAL(run_plugin("plugin:" PLUGINS "/plugins/minimal.so", false).skipped, skipped);
}

/* ---- backends with one fault each ------------------------------------------------------------ */

static mla_backend *right; /* the correct backend; a faulty one calls its functions */
static int calls;

static void out_off(const mla_step *step, const mla_plan *plan, const mla_attn *attn) {
    uint16_t *out = attn->out;
    int64_t rows = (int64_t)step->batch * step->s_q * plan->cap.heads;
    for (int64_t i = 0; i < rows * plan->cap.d_c; i += 3)
        out[i] = (uint16_t)(out[i] ^ 4);
}

static snap_status run_inexact(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                               const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    out_off(step, plan, attn);
    return st;
}

static snap_status run_cut_off(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                               const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    if (plan->cap.splits != 1)
        out_off(step, plan, attn);
    return st;
}

static snap_status run_unsteady(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    *(uint16_t *)attn->out = (uint16_t)(*(uint16_t *)attn->out ^ (calls++ % 2));
    return st;
}

static snap_status run_without_lse(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                   const mla_attn *attn, snap_err *err) {
    mla_attn less = *attn;
    less.lse = NULL;
    return right->ops->run(plan, step, cache, &less, err);
}

/* Mistakes a row of NaN scores for a row without a visible token. */
static snap_status run_nan_unseen(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                  const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    uint16_t *out = attn->out;
    for (int64_t i = 0; i < (int64_t)step->batch * step->s_q * plan->cap.heads; i++)
        if (isnan(attn->lse[i])) {
            memset(out + i * plan->cap.d_c, 0, (size_t)plan->cap.d_c * sizeof *out);
            attn->lse[i] = -INFINITY;
        }
    return st;
}

/* A NaN of one row reaches its neighbour, as in a tile that is not cleared. */
static snap_status run_nan_spread(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                  const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    for (int64_t i = (int64_t)step->batch * step->s_q * plan->cap.heads - 1; i > 0; i--)
        if (isnan(attn->lse[i - 1]))
            ((uint16_t *)attn->out)[i * plan->cap.d_c] = 0x7fc0;
    return st;
}

static snap_status quant_nothing(mla_backend *be, int64_t rows, int d_c, int d_r, const void *q,
                                 void *q8, void *q_rope, float *q_scale, snap_err *err) {
    snap_status st = right->ops->quant_q(be, rows, d_c, d_r, q, q8, q_rope, q_scale, err);
    *q_scale *= 1.0000005f;
    (void)rows;
    return st;
}

/* FP8 attention with unrounded probabilities: another rule than the paper's, and correct. */
static void exact_row(const mla_plan *plan, const mla_step *step, const mla_cache *cache,
                      const mla_attn *attn, int b, int i) {
    const mla_capacity *cap = &plan->cap;
    ref_rows k = {0}, q = {0};
    double o[MLA_MAX_CONTENT], lse;
    int64_t length = step->seqlens[b], most = (int64_t)step->table_width * MLA_PAGE;
    int64_t row = (int64_t)b * step->s_q * cap->heads + i;
    length = length < 0 ? 0 : length > most ? most : length;
    int64_t seen = length - (step->s_q - 1 - i / cap->heads);
    CU_ASSERT(ref_rows_from_cache(&k, MLA_FP8, cap->d_c, cap->d_r, cache,
                                  step->block_table + (int64_t)b * step->table_width, length,
                                  NULL) == SNAP_OK &&
              ref_rows_from_queries(&q, MLA_FP8, cap->d_c, cap->d_r, attn, row, 1, NULL) ==
                  SNAP_OK);
    ref_attend(&q, 0, &k, seen < 0 ? 0 : seen, (double)attn->softmax_scale, REF_P_EXACT, o, &lse);
    for (int d = 0; d < cap->d_c; d++)
        ((uint16_t *)attn->out)[row * cap->d_c + d] = bf16_from_f32((float)o[d]);
    if (attn->lse)
        attn->lse[row] = (float)lse;
    ref_rows_release(&k);
    ref_rows_release(&q);
}

static snap_status run_exact(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                             const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    bool small = plan->cap.heads * step->s_q <= 5; /* the FP64 reference is slow */
    for (int b = 0; st == SNAP_OK && plan->cap.precision == MLA_FP8 && small && b < step->batch;
         b++)
        for (int i = 0; i < step->s_q * plan->cap.heads; i++)
            exact_row(plan, step, cache, attn, b, i);
    return st;
}

static snap_status run_exact_cut_off(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                                     const mla_attn *attn, snap_err *err) {
    snap_status st = run_exact(plan, step, cache, attn, err);
    if (plan->cap.splits != 1)
        for (int i = 0; i < plan->cap.d_c; i++) /* flips one bit of each element of row 0, which
                                                   changes it by a quarter at most */
            ((uint16_t *)attn->out)[i] = (uint16_t)(((uint16_t *)attn->out)[i] ^ 32);
    return st;
}

static const check *find_check(const char *name) {
    static const check *const lists[] = {checks_contract, checks_dataflow, checks_arms,
                                         checks_same,     checks_edges,    checks_not_finite,
                                         checks_reach};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const check *k = lists[i]; k->name; k++)
            if (strcmp(k->name, name) == 0)
                return k;
    CU_FAIL_FATAL("no such check");
    return NULL;
}

/* Runs one check, and not those before it. Returns in how many arms it fails. */
static int failures_of(mla_backend *be, const char *name) {
    const check *k = find_check(name);
    int failed = 0;
    for (int arm = MLA_BF16; arm <= (k->both_arms ? MLA_FP8 : MLA_BF16); arm++) {
        conformance_row row = {.worst = (double)NAN};
        check_context c = {be, (mla_precision)arm, &row};
        failed += k->run(&c, NULL) != SNAP_OK;
    }
    return failed;
}

/* Runs the check @name on the correct backend with the table @wrong; it must fail. */
static void expect_found(mla_backend_ops wrong, const char *name) {
    const mla_backend_ops *ops = right->ops;
    mla_backend_ops *table = &wrong;
    mla_backend self = {ops};
    mla_backend *was = right;
    right = &self;
    was->ops = table;
    bool found = failures_of(was, name) > 0;
    was->ops = ops;
    right = was;
    if (!found)
        (void)fprintf(stderr, "\n    '%s' did not fail\n", name);
    CU_ASSERT(found);
}

static void test_faults(void) {
    if (kSanitized) /* too slow under sanitizers; the tests above run the same code */
        return;
    CU_ASSERT_EQUAL_FATAL(
        mla_backend_open(&right, "cpu", &(mla_backend_options){.threads = 1}, NULL), SNAP_OK);
    mla_backend_ops wrong = *right->ops;
    wrong.run = run_inexact;
    expect_found(wrong, "1 to 128 heads");
    wrong.run = run_unsteady;
    expect_found(wrong, "reruns are identical");
    wrong.run = run_without_lse;
    expect_found(wrong, "1 to 128 heads");
    wrong.run = run_cut_off;
    expect_found(wrong, "splits agree within rounding");
    wrong.run = run_nan_unseen;
    expect_found(wrong, "a NaN score gives a NaN row");
    wrong.run = run_nan_spread;
    expect_found(wrong, "a NaN score gives a NaN row");
    wrong = *right->ops;
    wrong.quant_q = quant_nothing;
    expect_found(wrong, "quantising queries, bit for bit");
    mla_backend_close(right);
}

/* ---- pages that are not read ----------------------------------------------------------------- */

static void expect_page_missed(wrong_fault fault, const char *name) {
    mla_backend *be;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = 2}, NULL),
                          SNAP_OK);
    const mla_backend_ops *ops = be->ops;
    mla_backend_ops table = wrong_ops(ops, fault);
    be->ops = &table;
    /* Formats do not change how threads synchronise. */
    int last = kThreadSanitized ? MLA_BF16 : MLA_FP8;
    for (int arm = MLA_BF16; arm <= last; arm++) {
        conformance_row row = {.worst = (double)NAN};
        check_context c = {be, (mla_precision)arm, &row};
        CU_ASSERT_EQUAL(find_check(name)->run(&c, NULL), SNAP_E_WRONG);
    }
    be->ops = ops;
    wrong_release();
    mla_backend_close(be);
}

static void test_pages_missed(void) {
    expect_page_missed(WRONG_DROP_4096, kFirstLong);
    expect_page_missed(WRONG_DROP_40000, kFirstLong);
    expect_page_missed(WRONG_PAGE_64, "each page of 256 sequences counts");
}

static const mla_backend_ops *large_ops;

static void describe_small(const mla_backend *be, mla_backend_info *out) {
    large_ops->describe(be, out);
    out->memory_bytes = (size_t)64 << 20;
}

/* On a small device, the steps that do not fit are left out, and the row says so. */
static void test_small_device(void) {
    mla_backend *be;
    conformance_row row = {.worst = (double)NAN};
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", NULL, NULL), SNAP_OK);
    large_ops = be->ops;
    mla_backend_ops small = *large_ops;
    small.describe = describe_small;
    be->ops = &small;
    check_context c = {be, MLA_FP8, &row};
    CU_ASSERT_EQUAL(find_check(kFirstLong)->run(&c, &err), SNAP_OK);
    CU_ASSERT(row.cases > 0 && row.unsupported > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(row.reason, "the device has 64 MiB"));
    be->ops = large_ops;
    mla_backend_close(be);
}

static bool stop_after_heads(void *ctx, const conformance_row *row) {
    (void)count(ctx, row);
    return strcmp(row->check, "1 to 128 heads") != 0 || strcmp(row->arm, "fp8") != 0;
}

static bool stop_after_splits(void *ctx, const conformance_row *row) {
    (void)count(ctx, row);
    return strcmp(row->check, "splits agree within rounding") != 0 || strcmp(row->arm, "fp8") != 0;
}

static void test_other_rule(void) {
    mla_backend *be;
    tally t = {0};
    if (kSanitized)
        return;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = 1}, NULL),
                          SNAP_OK);
    const mla_backend_ops *ops = be->ops;
    mla_backend_ops table = *ops;
    mla_backend self = {ops};
    right = &self;
    table.run = run_exact;
    be->ops = &table;
    CU_ASSERT_EQUAL(conformance_run(be, stop_after_splits, &t, NULL), SNAP_E_CANCELLED);
    if (t.failed)
        (void)fprintf(stderr, "\n    %s\n", t.first);
    CU_ASSERT_EQUAL(t.failed, 0);
    CU_ASSERT(t.exact > 1);
    table.run = run_exact_cut_off;
    CU_ASSERT(failures_of(be, "splits agree within rounding") > 0);
    be->ops = ops;
    mla_backend_close(be);
}

/* ---- scores summed in few bits --------------------------------------------------------------- */

static const mla_cut_sums kFewBits = {.bits = 8, .products = 32};
static mla_cut_sums declared;
static float lse_off; /* the error of run_cut(), as a multiple of max(1, |lse|) */

/* Computes the lse of row @i (s * heads + h) of sequence @b again from the FP8 queries and cache,
 * with the products of the content summed as kFewBits says. Stores it less lse_off * max(1, |lse|),
 * or unchanged if it is infinite, as for a row that sees no token. */
static void cut_row(const mla_plan *plan, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, int b, int i) {
    const mla_capacity *cap = &plan->cap;
    ref_rows k = {0}, q = {0};
    int64_t length = step->seqlens[b], most = (int64_t)step->table_width * MLA_PAGE;
    int64_t row = (int64_t)b * step->s_q * cap->heads + i;
    length = length < 0 ? 0 : length > most ? most : length;
    CU_ASSERT(ref_rows_from_cache(&k, MLA_FP8, cap->d_c, cap->d_r, cache,
                                  step->block_table + (int64_t)b * step->table_width, length,
                                  NULL) == SNAP_OK &&
              ref_rows_from_queries(&q, MLA_FP8, cap->d_c, cap->d_r, attn, row, 1, NULL) ==
                  SNAP_OK);
    double lse = cut_sums_lse(kFewBits, &q, 0, &k, length - (step->s_q - 1 - i / cap->heads),
                              (double)attn->softmax_scale);
    attn->lse[row] = (float)(isinf(lse) ? lse : lse - (double)lse_off * fmax(1.0, fabs(lse)));
    ref_rows_release(&k);
    ref_rows_release(&q);
}

static snap_status run_cut(mla_plan *plan, const mla_step *step, const mla_cache *cache,
                           const mla_attn *attn, snap_err *err) {
    snap_status st = right->ops->run(plan, step, cache, attn, err);
    bool judged = plan->cap.precision == MLA_FP8 && attn->lse;
    for (int b = 0; judged && st == SNAP_OK && b < step->batch; b++)
        for (int i = 0; i < step->s_q * plan->cap.heads; i++)
            cut_row(plan, step, cache, attn, b, i);
    return st;
}

static void describe_cut_sums(const mla_backend *be, mla_backend_info *out) {
    right->ops->describe(be, out);
    out->fp8_sums = declared;
}

/* Sets lse_off to @off, runs the checks up to "1 to 128 heads", and returns how many fail. A check
 * counts once for each arm. Without @all, only failures of "1 to 128 heads" count. */
static int failures_with(mla_backend_ops table, float off, bool all) {
    mla_backend *be;
    tally t = {0};
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = 1}, NULL),
                          SNAP_OK);
    const mla_backend_ops *ops = be->ops;
    mla_backend self = {ops};
    right = &self;
    lse_off = off;
    be->ops = &table;
    if (all)
        CU_ASSERT_EQUAL(conformance_run(be, stop_after_heads, &t, NULL), SNAP_E_CANCELLED)
    else
        t.failed = failures_of(be, "1 to 128 heads");
    be->ops = ops;
    mla_backend_close(be);
    return t.failed;
}

/* Scores summed in few bits pass only if the backend declares them, and only without a further
 * error. */
static void test_cut_sums(void) {
    mla_backend *be;
    if (kThreadSanitized) /* the test has one thread, and its sums in FP64 take long */
        return;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", NULL, NULL), SNAP_OK);
    mla_backend_ops table = *be->ops;
    mla_backend_close(be);
    table.run = run_cut;
    CU_ASSERT_EQUAL(failures_with(table, 0, false), 1);
    table.describe = describe_cut_sums;
    declared = (mla_cut_sums){.bits = 8, .products = 0}; /* not a valid declaration */
    CU_ASSERT_EQUAL(failures_with(table, 0, false), 1);
    declared = kFewBits;
    CU_ASSERT_EQUAL(failures_with(table, 0, true), 0);
    CU_ASSERT_EQUAL(failures_with(table, 6e-4f, false), 1);
}

static void test_stop(void) {
    mla_backend *be;
    CU_ASSERT_EQUAL_FATAL(mla_backend_open(&be, "cpu", NULL, NULL), SNAP_OK);
    tally t = {.stop_after = 2};
    CU_ASSERT_EQUAL(conformance_run(be, count, &t, NULL), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(t.rows, 2);
    mla_backend_close(be);
}

CU_TestInfo tests_conformance[] = {
    {"the CPU passes", test_cpu},
    {"OpenCL passes", test_opencl},
    {"the example plugin passes", test_example},
    {"the minimal plugin passes", test_minimal},
    {"faults are found", test_faults},
    {"pages that are not read are found", test_pages_missed},
    {"a small device", test_small_device},
    {"P rounded by another rule", test_other_rule},
    {"sums of few bits", test_cut_sums},
    {"the suite can be stopped", test_stop},
    CU_TEST_INFO_NULL,
};
