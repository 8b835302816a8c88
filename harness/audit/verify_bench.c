/* verify_bench.c - checks bench rows: statistics against samples, the passed check of the output,
 * rates against time and shape, times against the ceilings, and equal conditions of rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/row.h"
#include "harness/measure/paired_ratio.h"
#include "harness/measure/stats.h"
#include "kernels/judge.h"

typedef struct {
    verify_findings *f;
    const cell_list *rows;
    const ceiling_list *ceilings;
    bool is_joined;
    arena *mem; /* memory for rows that are derived again */
} checker;

static bool is_passed(const cell_record *row) {
    return strcmp(row->status, "passed") == 0;
}

static bool is_measured(const cell_record *row) {
    return strcmp(row->origin, "measured") == 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- samples ---- */

static void check_figure(const checker *c, const cell_performance *perf, const char *key,
                         double want, const char *where) {
    double stored = record_number(&cell_performance_type, perf, key);
    if (isnan(stored)) /* older rows have fewer figures */
        return;
    c->f->checks++;
    if (!verify_is_near(stored, want))
        verify_add(c->f, VERIFY_FORM, where, "%s is %.10g, but the samples give %.10g", key, stored,
                   want);
}

static void check_samples(const checker *c, const cell_record *row, const char *where) {
    const cell_performance *perf = &row->performance;
    size_t n = perf->samples_ns.n;
    if (!n) {
        verify_add(c->f, VERIFY_FORM, where, "a time without samples");
        return;
    }
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted) {
        c->f->failed = true;
        return;
    }
    memcpy(sorted, perf->samples_ns.at, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    stats_summary s = stats_summarise(sorted, n);
    check_figure(c, perf, "min_ns", s.min, where);
    check_figure(c, perf, "q1_ns", s.q1, where);
    check_figure(c, perf, "median_ns", s.median, where);
    check_figure(c, perf, "q3_ns", s.q3, where);
    check_figure(c, perf, "max_ns", s.max, where);
    check_figure(c, perf, "mean_ns", s.mean, where);
    check_figure(c, perf, "p99_ns", s.p99, where);
    check_figure(c, perf, "count", (double)n, where);
    free(sorted);
}

/* ---- the cache format ---- */

static bool read_format(const checker *c, const cell_record *row, cache_format *out,
                        const char *where) {
    snap_err why = {0};
    snap_status st = arm_format_parse(out, row->format.descriptor, "format", (int)row->shape.d_c,
                                      (int)row->shape.d_r, &why);
    c->f->failed |= st == SNAP_E_NOMEM;
    if (st != SNAP_OK)
        verify_add(c->f, VERIFY_FORM, where, "its format cannot be read: %s", why.text);
    return st == SNAP_OK;
}

/* Name, hash, bytes per token, page size and arithmetic must be those of the descriptor. */
static void check_format(const checker *c, const cell_record *row, const char *where) {
    const cell_format *stored = &row->format;
    cache_format f;
    char hex[HASH_HEX];
    if (!stored->exists || !read_format(c, row, &f, where))
        return;
    if (hash_bytes(stored->descriptor, strlen(stored->descriptor), hex, NULL) != SNAP_OK) {
        c->f->failed = true;
        return;
    }
    const struct {
        const char *what;
        bool same;
    } checks[] = {
        {"name", strcmp(stored->name, f.name) == 0},
        {"sha256", strcmp(stored->sha256, hex) == 0},
        {"bytes_per_token", verify_is_near(stored->bytes_per_token, cache_format_token_bytes(&f))},
        {"page_tokens", stored->page_tokens == f.page_tokens},
        {"arm", strcmp(row->arm, bench_kind_name(arm_format_kind(&f))) == 0},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        c->f->checks++;
        if (!checks[i].same)
            verify_add(c->f, VERIFY_FORM, where, "%s is not that of the format's descriptor",
                       checks[i].what);
    }
}

/* ---- correctness ---- */

static void check_correctness(const checker *c, const cell_record *row, const char *where) {
    const cell_correctness *o = &row->correctness;
    bench_kind kind = BENCH_BF16;
    (void)bench_kind_parse(row->arm, &kind);
    /* the largest tolerance that this arm may have */
    judge_bound bound = bench_kind_bound(kind, REF_P_BF16);
    cache_format f;
    if (row->format.exists && read_format(c, row, &f, where))
        bound = arm_format_bound(&(arm_format){.format = f});
    double widest = judge_bound_rows(bound, o->rows_checked).out_rel;
    c->f->checks++;
    if (!o->exists || o->rows_checked < 1)
        verify_add(c->f, VERIFY_CORRECTNESS, where, "a speed whose output was not checked");
    else if (!(o->error <= o->tolerance) || o->lse_error > o->lse_tolerance)
        verify_add(c->f, VERIFY_CORRECTNESS, where,
                   "passed with an error of %.3g, its tolerance is %.3g", o->error, o->tolerance);
    else if (o->tolerance > widest)
        verify_add(c->f, VERIFY_CORRECTNESS, where,
                   "a tolerance of %.3g, but at most %.3g is allowed", o->tolerance, widest);
}

/* ---- physics ---- */

static void check_rate(const checker *c, const cell_record *stored, const cell_record *want,
                       const char *key, const char *where) {
    double a = record_number(&cell_performance_type, &stored->performance, key);
    double b = record_number(&cell_performance_type, &want->performance, key);
    c->f->checks++;
    if (!isnan(a) && !isnan(b) && !verify_is_near(a, b))
        verify_add(c->f, VERIFY_PHYSICS, where, "%s is %.6g; from shape and time it is %.6g", key,
                   a, b);
}

static void check_floor(const checker *c, const cell_record *row, const char *where) {
    bool cold = row->cold[0] && strcmp(row->cold, "none") != 0;
    double ns = row->performance.median_ns, floor_ns = row->performance.floor_ns;
    c->f->checks++;
    if (cell_has_flag(row, "below_floor") || (cold && ns < floor_ns * (1 - verify_rounding)))
        verify_add(c->f, VERIFY_PHYSICS, where, "a time of %.6g us, below the floor of %.6g us",
                   ns / 1e3, floor_ns / 1e3);
}

/* The value of a ceiling of an arm ("" = a run without named arms); 0 if the file has none. */
static double ceiling_of(const ceiling_list *all, const char *arm, const char *name) {
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].name, name) == 0 && strcmp(all->at[i].arm, arm) == 0)
            return all->at[i].value;
    return 0;
}

/* The ceilings that give the floor of a row. Returns false if one is missing. */
static bool ceilings_for(const checker *c, const cell_record *row, mla_ceilings *out) {
    *out = (mla_ceilings){.read.rate = ceiling_of(c->ceilings, row->ceilings, "read_bandwidth"),
                          .bf16.rate = ceiling_of(c->ceilings, row->ceilings, "bf16_mma"),
                          .fp8.rate = ceiling_of(c->ceilings, row->ceilings, "fp8_mma")};
    return out->read.rate > 0 && out->bf16.rate > 0 && out->fp8.rate > 0;
}

/* Derives the row again and compares. In a joined file the ceilings may be higher than those that
 * the row was derived from, so floors and percentages are not compared. */
static void check_physics(const checker *c, const cell_record *row, const char *where) {
    static const char *const rates[] = {"tflops", "gb_s", "tok_s"};
    static const char *const against[] = {"floor_ns", "roofline_pct"};
    cell_record again = *row;
    mla_ceilings ceilings;
    if (!ceilings_for(c, row, &ceilings)) {
        verify_add(c->f, VERIFY_NOTE, where,
                   "the file has no ceilings, so no floor can be computed");
    } else if (cell_derive(&again, &ceilings, c->mem, NULL) != SNAP_OK) {
        verify_add(c->f, VERIFY_FORM, where, "a shape that this program does not know");
    } else {
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            check_rate(c, row, &again, rates[i], where);
        for (size_t i = 0; i < sizeof against / sizeof *against && !c->is_joined; i++)
            check_rate(c, row, &again, against[i], where);
        check_floor(c, row, where);
    }
}

/* ---- lengths ---- */

/* The list of lengths must have one for each sequence, and the total and the longest must be those
 * of the list. */
static void check_lengths(const checker *c, const cell_record *row, const char *where) {
    const cell_lengths *l = &row->lengths;
    double sum = 0, longest = 0;
    if (!l->exists)
        return;
    for (size_t i = 0; i < l->each.n; i++) {
        sum += l->each.at[i];
        longest = fmax(longest, l->each.at[i]);
    }
    c->f->checks++;
    if (l->each.n != (size_t)row->shape.batch || sum != (double)l->tokens ||
        longest != (double)row->shape.context)
        verify_add(c->f, VERIFY_FORM, where,
                   "%zu lengths with %.10g tokens, the longest %.10g; the row states %lld "
                   "sequences, %lld tokens and %lld",
                   l->each.n, sum, longest, (long long)row->shape.batch, (long long)l->tokens,
                   (long long)row->shape.context);
}

/* ---- pairs ---- */

static bool is_pair(const cell_record *a, const cell_record *b) {
    return !a->name[0] && !b->name[0] && strcmp(a->arm, "bf16") == 0 &&
           strcmp(b->arm, "fp8") == 0 && cell_same_shape(a, b) && strcmp(a->scope, b->scope) == 0 &&
           is_passed(a) && is_passed(b);
}

/* Whether two rows have the same text in the field @key. */
static bool agree(const cell_record *a, const cell_record *b, const char *key) {
    return strcmp(record_text(&cell_type, a, key), record_text(&cell_type, b, key)) == 0;
}

static void check_pair(const checker *c, const cell_record *bf16, const cell_record *fp8,
                       const char *where) {
    static const char *const keys[] = {"distribution", "cold", "mode", "backend"};
    double times = cell_speedup(bf16, fp8);
    double floors = bf16->performance.floor_ns / fp8->performance.floor_ns;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        c->f->checks++;
        if (!agree(bf16, fp8, keys[i]))
            verify_add(c->f, VERIFY_MIXED, where, "the two arms differ in %s", keys[i]);
    }
    c->f->checks++;
    if (times > floors * (1 + verify_rounding) && !cell_has_flag(fp8, "weak_baseline"))
        verify_add(c->f, VERIFY_PHYSICS, where,
                   "a speed-up of %.3f, above the ratio %.3f of the floors, without the flag "
                   "weak_baseline",
                   times, floors);
}

/* ---- named arms ---- */

static bool same_cell(const cell_record *a, const cell_record *b) {
    return cell_same_shape(a, b) && strcmp(a->scope, b->scope) == 0;
}

/* The row for the same cell of the arm that @row names as its baseline; NULL if there is none. */
static const cell_record *baseline_of(const checker *c, const cell_record *row) {
    for (size_t i = 0; i < c->rows->n; i++) {
        const cell_record *other = &c->rows->at[i];
        if (strcmp(other->name, row->against.baseline) == 0 && same_cell(other, row))
            return other;
    }
    return NULL;
}

static void check_against(const checker *c, const cell_record *row, const char *where) {
    static const char *const keys[] = {"distribution", "cold", "mode"};
    const cell_against *a = &row->against;
    const cell_record *base = a->exists ? baseline_of(c, row) : NULL;
    if (!a->exists)
        return;
    c->f->checks++;
    if (!base || !is_passed(base)) {
        verify_add(c->f, VERIFY_FORM, where, "its baseline '%.40s' has no time for this cell",
                   a->baseline);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!agree(base, row, keys[i]))
            verify_add(c->f, VERIFY_MIXED, where, "the arm and its baseline differ in %s", keys[i]);
    record_numbers x = base->performance.samples_ns, y = row->performance.samples_ns;
    paired_ratio want;
    if (paired_ratio_of(x.at, x.n, y.at, y.n, &want, NULL) != SNAP_OK) {
        c->f->failed = true;
        return;
    }
    if (strcmp(row->mode, "sustained") == 0) /* loops run one after the other: their samples are no
                                                pairs */
        want = (paired_ratio){base->performance.median_ns / row->performance.median_ns, (double)NAN,
                              (double)NAN};
    bool same = verify_is_near(a->ratio, want.ratio) && isnan(a->interval[0]) == isnan(want.lo) &&
                (isnan(want.lo) || (verify_is_near(a->interval[0], want.lo) &&
                                    verify_is_near(a->interval[1], want.hi)));
    if (!same)
        verify_add(c->f, VERIFY_FORM, where,
                   "the ratio to '%.40s' is %.6g (%.6g to %.6g), but the samples give %.6g (%.6g "
                   "to %.6g)",
                   a->baseline, a->ratio, a->interval[0], a->interval[1], want.ratio, want.lo,
                   want.hi);
}

/* ---- all rows together ---- */

/* All measured rows of one run must agree in these fields. A joined file has several runs. Named
 * arms may have different backends. */
static void check_mixture(const checker *c) {
    static const char *const keys[] = {"distribution", "mode", "backend"};
    const cell_record *first = NULL;
    for (size_t i = 0; i < c->rows->n && !c->is_joined; i++) {
        const cell_record *row = &c->rows->at[i];
        if (!is_measured(row))
            continue;
        first = first ? first : row;
        for (size_t k = 0; k < sizeof keys / sizeof *keys - (row->name[0] != '\0'); k++) {
            char where[32];
            (void)snprintf(where, sizeof where, "bench[%zu]", i);
            c->f->checks++;
            if (!agree(first, row, keys[k]))
                verify_add(c->f, VERIFY_MIXED, where, "%s is '%s', but '%s' in an earlier row",
                           keys[k], record_text(&cell_type, row, keys[k]),
                           record_text(&cell_type, first, keys[k]));
        }
    }
}

/* The row that row @i is compared with: the row before it or, for a named arm, the last earlier row
 * of that arm with a hash. NULL if there is none. */
static const cell_record *before_of(const checker *c, size_t i) {
    const cell_record *row = &c->rows->at[i];
    if (!row->name[0])
        return i ? row - 1 : NULL;
    while (i-- > 0)
        if (strcmp(c->rows->at[i].name, row->name) == 0 && c->rows->at[i].kernel_hash[0])
            return &c->rows->at[i];
    return NULL;
}

/* Measured rows with the same kernel must have the same machine code. Each row is compared with
 * before_of() only. A joined file is not checked, because it has several runs. */
static void check_code(const checker *c) {
    for (size_t i = 1; i < c->rows->n && !c->is_joined; i++) {
        const cell_record *row = &c->rows->at[i], *before = before_of(c, i);
        bool hashed = before && row->kernel_hash[0] && before->kernel_hash[0];
        char where[32];
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        if (hashed && agree(row, before, "kernel") && is_measured(row) && is_measured(before) &&
            !agree(row, before, "kernel_hash"))
            verify_add(c->f, VERIFY_MIXED, where, "kernel %s with two machine codes", row->kernel);
    }
}

static void check_flags(const checker *c) {
    static const char *const flags[] = {"throttled", "shared"};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        size_t n = 0;
        for (size_t i = 0; i < c->rows->n; i++)
            n += cell_has_flag(&c->rows->at[i], flags[k]);
        if (n)
            verify_add(c->f, VERIFY_NOTE, "bench", "%zu of %zu rows are flagged %s", n, c->rows->n,
                       flags[k]);
    }
}

void verify_bench(const run_record *r, verify_findings *f) {
    arena mem = {0};
    checker c = {.f = f,
                 .rows = &r->bench,
                 .ceilings = &r->ceilings,
                 .is_joined = r->sources.at != NULL,
                 .mem = &mem};
    for (size_t i = 0; i < c.rows->n; i++) {
        const cell_record *row = &c.rows->at[i];
        char where[32];
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        if (!is_measured(row) || !is_passed(row))
            continue;
        check_samples(&c, row, where);
        check_format(&c, row, where);
        check_correctness(&c, row, where);
        check_lengths(&c, row, where);
        check_physics(&c, row, where);
        check_against(&c, row, where);
        if (i && is_pair(row - 1, row))
            check_pair(&c, row - 1, row, where);
    }
    check_mixture(&c);
    check_code(&c);
    check_flags(&c);
    arena_release(&mem);
}
