/* model.h - the rows of several result files in the form that the writers need: each with the
 * number of its file, cells also sorted and paired.
 *
 * The rows are the structs of harness/record. Their strings are borrowed from the result files and
 * are never NULL: "" stands for a missing string. Missing numbers are NAN, missing counts
 * RECORD_NO_COUNT. */
#ifndef SNAPMLA_HARNESS_VIEW_MODEL_H
#define SNAPMLA_HARNESS_VIEW_MODEL_H

#include "base/arena.h"
#include "harness/record/run.h"
#include "harness/view/report.h"
#include "harness/view/samples.h"

typedef struct {
    int file;
    const ceiling_record *row;
    double lowest; /* lowest sample, in the row's unit */
} report_ceiling;

/* One arm of one shape and scope. */
typedef struct {
    int file;
    const cell_record *row;
    const cell_shape *shape;      /* &row->shape */
    const cell_performance *perf; /* &row->performance; no values if the cell did not pass */
    const char *flags;            /* "noisy, throttled" */
} report_cell;

/* The two arms of a shape. One of them may be NULL. */
typedef struct {
    const report_cell *bf16, *fp8;
    const report_cell *any; /* an arm that is not NULL, for the fields of the shape */
    double speedup;         /* BF16 median over FP8 median; NAN unless both passed */
    const char *flags;      /* flags of both arms */
} report_speed;

typedef struct {
    int file;
    const fidelity_record *row;
} report_fidelity;

/* A row of the section model_fidelity: a model's predictions, layers or cached values. */
typedef struct {
    int file;
    const model_record *row;
    const char *name; /* the first that the row has of config, precision and part; else "" */
} report_model_row;

/* A row of the section exchange. */
typedef struct {
    int file;
    const exchange_record *row;
} report_exchange;

/* A row of the section predicted. */
typedef struct {
    int file;
    const prediction_record *row;
} report_predicted;

typedef struct {
    int file;
    const eval_record *row;
    const char *sampling; /* "T 1, top_p 0.95, top_k 0, 32768 tokens" */
} report_eval;

/* A row of the section pooled: two arms compared over all tasks of a run. */
typedef struct {
    int file;
    const pair_record *row;
} report_pooled;

/* A row of the section serving. */
typedef struct {
    int file;
    const serving_record *row;
} report_serving;

/* The origin of rows: a result file, or one of the sources of a joined file. */
typedef struct {
    int file;
    const origin_record *row;
} report_source;

/* The speed-up of FP8 over BF16 in one scope: over the shapes in which no arm has a flag. */
typedef struct {
    const char *scope;
    size_t n;
    size_t flagged;               /* shapes that are left out because an arm has a flag */
    double mean, lowest, highest; /* the mean is geometric; NAN for n = 0 */
} report_gain;

enum { REPORT_SCOPES = 2 };

/* Appends what the mean is over: "geometric mean of 5 shapes, 1.20× to 1.60×; 2 shapes with flags
 * are left out", or "no mean: every one of 4 shapes has a flag". */
void report_gain_text(const report_gain *g, buf *out);

struct compared;       /* compare.h */
struct report_quote;   /* paper.h */
struct report_step;    /* paper.h */
struct report_outline; /* outline.h */
struct named_arms;     /* named_arms.h */

struct report_model {
    arena mem;
    int n_devices;      /* n_files without report_group() */
    int *device_of;     /* [n_files] ascending */
    const char **given; /* [n_devices] how the user named the device's files */
    const char *
        *labels; /* [n_devices] different names for readers; NULL without report_compare() */
    double *usd_per_hour;            /* [n_devices], NAN = unknown; NULL without report_compare() */
    const struct compared *compared; /* rows of report_compare(); NULL, 0 without it */
    const char *price_note;          /* sentences with the prices, their dates and sources; NULL: no
                               comparison */
    size_t n_compared;
    const report_refused *refused; /* files that the comparison leaves out; NULL, 0 without any */
    size_t n_refused;
    const struct report_outline *outline; /* sections of the report, in order */
    const struct report_quote *quotes;    /* figures that others report; NULL, 0 without them */
    struct report_step *steps; /* measured decode speeds of whole models; NULL, 0 without */
    size_t n_quotes, n_steps;
    const char **files; /* names */
    int n_files;
    report_source *sources;
    report_ceiling *ceilings;
    report_cell *cells;       /* sorted: measured before reported, then by file and by by_shape()
                                 (model.c), then by arm */
    report_speed *speeds;     /* measured cells without the ablation and named arms, paired, in the
                                 order of the cells */
    struct named_arms *named; /* [n_named] one for each file that has named arms */
    size_t n_named;
    report_fidelity *fidelity;
    report_model_row *model_rows;
    report_exchange *exchanges;  /* in the order of the files */
    report_predicted *predicted; /* in the order of the files */
    report_eval *evals;
    report_pooled *pooled;
    report_serving *serving; /* in the order of the files */
    size_t n_sources, n_ceilings, n_cells, n_speeds, n_fidelity, n_model_rows, n_exchanges,
        n_predicted, n_evals, n_pooled, n_serving;
    size_t n_measured;                /* number of measured cells; reported ones follow them */
    report_samples *samples;          /* list of the runs with samples; NULL = none */
    report_gain gains[REPORT_SCOPES]; /* one for the scope kernel, one for served */
};

/* The name of a file, as the user gave it. In a comparison, the name of its device. */
const char *report_name_of(const report_model *m, int file);

/* The first ceiling with this name in a file; 0 if the file has none. With named arms a file may
 * have one for each arm. */
double report_ceiling_of(const report_model *m, int file, const char *name);

/* Whether the cell was measured in loops (mode "sustained"). Rows of older files have no mode: they
 * are single steps. */
bool report_is_loop(const report_cell *c);

/* Whether the cell is a variant of the FP8 arm that leaves out one technique ("fp8-..."). */
bool report_is_ablated(const report_cell *c);

/* The complete FP8 arm of the same file with the same shape, scope and conditions as the variant
 * @c; NULL if there is none. */
const report_cell *report_whole_of(const report_model *m, const report_cell *c);

/* Writes the name of a cell: "fp8 kernel H16 s1 b8 c8192". For a named arm, its name replaces
 * "fp8". */
void report_cell_name(const report_cell *c, char out[96]);

#endif
