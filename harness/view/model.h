/* model.h - result files as the writers read them: plain structs, sorted, paired.
 *
 * Strings are borrowed from the result files and never NULL: "" is null. Numbers that do not exist
 * are NAN. */
#ifndef SNAPMLA_HARNESS_VIEW_MODEL_H
#define SNAPMLA_HARNESS_VIEW_MODEL_H

#include "base/arena.h"
#include "harness/view/report.h"
#include "harness/view/samples.h"

typedef struct {
    const char *name, *method, *unit, *origin;
    double value;  /* in `unit`: B/s or FLOP/s */
    double lowest; /* of the samples */
    size_t samples;
    int file;
} report_ceiling;

/* One arm of one shape and scope: a row of `bench`. */
typedef struct {
    int file;
    const char *arm, *backend, *kernel, *kernel_hash, *scope, *distribution, *cold, *origin;
    const char *source, *status, *reason, *bound, *stop_reason, *mode;
    int64_t heads, s_q, batch, context, d_c, d_r;
    double error, tolerance, lse_error, lse_tolerance, rows_checked;
    double min_ns, q1_ns, median_ns, q3_ns, max_ns, count;
    double tflops, gb_s, tok_s, floor_ns, roofline_pct, paired_pct, mhz_before, mhz_during, power_w,
        energy_j, tok_j;
    const char *flags; /* "noisy, throttled" */
} report_cell;

/* The two arms of a shape side by side; one may be NULL. */
typedef struct {
    const report_cell *bf16, *fp8;
    const report_cell *any; /* the one that is there: the shape's fields */
    double speedup;         /* BF16 median over FP8 median; NAN unless both passed */
    const char *flags;      /* of both */
} report_speed;

typedef struct {
    int file;
    const char *kind, *config, *source, *distribution, *origin;
    int64_t context, heads, rows;
    double seed, rmse, cosine_diff, rel_l2, lse_error, max_abs;
} report_fidelity;

/* A row of `model_fidelity`: what a cache format does to a model. */
typedef struct {
    int file;
    const char *kind, *model;
    const char *name; /* config, precision or part; "" where a kind has none of them */
    int64_t context, layer;
    const js *row; /* its numbers, borrowed */
} report_model_row;

typedef struct {
    const char *name, *generator, *endpoint, *model, *origin;
    double samples, scored, failed, accuracy, se, ci95[2];            /* percent */
    double truncated, empty, unparsed, failed_pct, identical_samples; /* percent, but the last */
    double tokens_mean, ttft_ms, itl_ms, tok_s;
    double lag_ms;        /* the client's own, 99th percentile; NAN where none was measured */
    double pass_k, maj_k; /* percent; pass@K of all samples; NAN for one sample a problem */
} report_arm;

typedef struct {
    const char *baseline, *arm, *verdict, *refused;
    const char *control;     /* "seeds", "damaged"; "" for an arm that is to be compared */
    const char *sensitivity; /* "sees damage", "blind"; "" for any but a damaged arm */
    double problems, delta, se, ci90[2], ci95[2], margin; /* percentage points */
    double p_tost, p_holm, p_sign_flip, p_mcnemar;
    double baseline_only, arm_only; /* discordant problems */
    double length_ratio, length_delta, length_ci95[2];
} report_pair;

typedef struct {
    int file;
    const char *task, *dataset, *dataset_sha256, *manifest, *grader;
    const char *prompt_sha256, *sampling; /* "T 1, top_p 0.95, top_k 0, 32768 tokens" */
    double problems, samples_per_problem;
    const report_arm *arms;
    const report_pair *pairs;
    size_t n_arms, n_pairs;
} report_eval;

/* Where rows come from: a result file, or a source of a joined one. */
typedef struct {
    int file;
    js *provenance; /* borrowed */
} report_source;

/* FP8 against BF16 over the cells of one scope. */
typedef struct {
    const char *scope;
    size_t n;
    double mean, lowest, highest; /* geometric mean */
} report_gain;

enum { REPORT_SCOPES = 2 };

struct compared;       /* compare.h */
struct report_quote;   /* paper.h */
struct report_step;    /* paper.h */
struct report_outline; /* outline.h */

struct report_model {
    arena mem;
    double *usd_per_hour;            /* [n_files], NAN = unknown; NULL where nobody compares */
    const struct compared *compared; /* rows of report_compare(); NULL, 0 without it */
    size_t n_compared;
    const struct report_outline *outline; /* what the writers show, and in which order */
    const struct report_quote *quotes;    /* what others report; NULL, 0 without it */
    struct report_step *steps;            /* of whole models; NULL, 0 without them */
    size_t n_quotes, n_steps;
    const char **files; /* names */
    int n_files;
    report_source *sources;
    report_ceiling *ceilings;
    report_cell *cells;   /* sorted: measured before reported, then by what the arms share */
    report_speed *speeds; /* measured ones, in the cells' order */
    report_fidelity *fidelity;
    report_model_row *model_rows;
    report_eval *evals;
    size_t n_sources, n_ceilings, n_cells, n_speeds, n_fidelity, n_model_rows, n_evals;
    size_t n_measured;                /* cells before the reported ones */
    report_samples *samples;          /* of the runs that have some, a list; NULL */
    report_gain gains[REPORT_SCOPES]; /* kernel, served; n = 0 where there is none */
};

/* The ceiling of a file by name; 0 when it has none. */
double report_ceiling_of(const report_model *m, int file, const char *name);

/* Is it an arm of the ablation? */
bool report_is_ablated(const report_cell *c);

/* The FP8 cell of the same shape and scope as a cell of the ablation; NULL when there is none. */
const report_cell *report_whole_of(const report_model *m, const report_cell *c);

/* "fp8 kernel H16 s1 b8 c8192". */
void report_cell_name(const report_cell *c, char out[96]);

#endif
