/* model.h - the rows of several result files as the writers read them: sorted, paired, each with the
 * file it comes from.
 *
 * The rows themselves are the structs of harness/record. Their strings are borrowed from the result
 * files and never NULL: "" is null. Numbers that do not exist are NAN. */
#ifndef SNAPMLA_HARNESS_VIEW_MODEL_H
#define SNAPMLA_HARNESS_VIEW_MODEL_H

#include "base/arena.h"
#include "harness/record/run.h"
#include "harness/view/report.h"
#include "harness/view/samples.h"

typedef struct {
    int file;
    const ceiling_record *row;
    double lowest; /* of the samples, in the row's unit */
} report_ceiling;

/* One arm of one shape and scope. */
typedef struct {
    int file;
    const cell_record *row;
    const cell_shape *shape;      /* of the row */
    const cell_performance *perf; /* of the row; its numbers are NAN where it did not pass */
    const char *flags;            /* "noisy, throttled" */
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
    const fidelity_record *row;
} report_fidelity;

/* What a cache format does to a model. */
typedef struct {
    int file;
    const model_record *row;
    const char *name; /* the row's config, precision or part; "" where its kind has none of them */
} report_model_row;

typedef struct {
    int file;
    const eval_record *row;
    const char *sampling; /* "T 1, top_p 0.95, top_k 0, 32768 tokens" */
} report_eval;

/* Where rows come from: a result file, or a source of a joined one. */
typedef struct {
    int file;
    const origin_record *row;
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
