/* predict_rules.h - the rules that turn the work of a decode step (predict_work.h) into a time.
 *
 * A step has the four parts that `bench model --parts` times on a GPU. The rules:
 *
 *   attention   time for each block + time for each query (row x head of the rank)
 *               + factor x cached tokens x the attention kernel's time for each cached token at the
 *                 rank's number of heads, from cells of `bench`
 *               + bytes of W_UK / read bandwidth
 *   experts     up to 64 rows: time for each layer with experts; with more rows: time for each
 *               expert that is read + time for each number moved to and from the experts
 *               + the longer of two times: bytes of weights, and arithmetic as in the rest
 *               + time of the rest for each launch that only ranks have
 *   rest        time for each launch + the longer of two times: bytes of weights at the experts'
 *               time for each byte, and floating-point operations x time for each of them
 *   exchange    exchange curves (predict_links.h); no rule
 *   waiting     with EP: time of the experts that the busiest rank reads in addition to those of
 *               the mean rank (predict_routing.h), in each layer
 *
 *   step        the sum of these - a time for each launch, because kernels overlap in a step
 *               without events. Steps of more than 64 rows have no such time.
 *
 * Two terms do not become shorter when ranks divide the work:
 *
 * - A factor of attention above 1 means that the clock of the GPU is lower in a step than in a
 *   benchmark of the kernel. It lengthens arithmetic, whose time is proportional to the number of
 *   heads, but not reads. So the kernel of a rank with fewer heads than the measured model takes
 *   the longer one of two times: that of `bench` at its number of heads, and its share of the
 *   lengthened time of the measured heads.
 * - Up to 8 rows, a byte of experts takes longer than from 9 to 64 rows. The difference is a time
 *   of each whole expert, also if a rank has only a part of its width.
 *
 * The number of rows decides which kernels compute the products of BF16 weights, so there are
 * rules for three ranges: at most 8 rows, at most 64, more (generator/local/cuda). Products of
 * e4m3 weights have the same ranges, although their kernels change at 8 and at 128 rows. For
 * experts, these are the rows of all replicas whose rows the rank gets. The rule of attention is
 * the same above 8 rows. That of the rest above 64 rows is fitted to all steps of more than 8 rows.
 * Up to 64 rows, memory is its limit. Some terms are taken from the range with fewer rows,
 * because they hardly show in the measured steps: the time for each block of attention above 8
 * rows, the time for each layer of experts from 9 to 64 rows, and the time for each byte of
 * experts above 64 rows, where a step reads nearly all experts. If all steps of a range have one
 * context, the factor of attention is 1, because the queries would explain the same time. A byte of
 * e4m3 weights has a time of its own, because other kernels read it. If steps with one of the two
 * formats were not measured, its time is that of the other.
 *
 * The parts are timed in fewer replays than the step. Above 64 rows, the limit of power lowers the
 * clock, and not equally in both. There, attention and the rest are fitted to their times x (step /
 * sum of its parts). Reads limit the experts, so their time stays as it is.
 *
 * The coefficients are fitted to measured steps of one GPU: least squares of the relative error, no
 * coefficient negative. The attention rules differ between the arms. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_RULES_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_RULES_H

#include "generator/local/model/runner.h"
#include "harness/bench/predict_work.h"

enum { PREDICT_TERMS = 4, PREDICT_RANGES = 3, PREDICT_ROWS = 512, PREDICT_SLOPES = 32 };

/* The time of the attention kernel for each cached token, by number of heads. */
typedef struct {
    int heads;
    double ns; /* median time / cached tokens, of the measured cell with most cached tokens */
    int64_t tokens;
} kernel_slope;

typedef struct {
    kernel_slope of[2][PREDICT_SLOPES]; /* [BF16, FP8], by ascending number of heads */
    int n[2];
} kernel_slopes;

/* The terms of the rules of experts and of the rest. */
enum {
    TERM_EACH, /* layer, expert or launch */
    TERM_BF16, /* byte of BF16 weights */
    TERM_E4M3, /* byte of e4m3 weights */
    TERM_MORE  /* number moved, or floating-point operation */
};

/* Nanoseconds for each cached token, interpolated between measured numbers of heads. Beyond the
 * smallest or the largest measured number, the time of that number. NAN if none was measured. */
double kernel_slope_at(const kernel_slopes *k, kv_format arm, double heads);

/* A measured decode step of one GPU. */
typedef struct {
    kv_format arm;
    int64_t batch, context;
    double part_ns[STEP_PARTS], step_ns;
    predict_work work;
} measured_step;

typedef struct {
    double of[PREDICT_TERMS];
} predict_terms;

typedef struct {
    predict_terms per; /* 0 = the term is not used */
    int n;             /* number of steps that it was fitted to; 0 = there is no rule */
} rule;

typedef struct {
    rule attention[2];  /* [BF16, FP8]; ns for each block and query; factor of the kernel */
    rule experts, rest; /* coefficients by term: TERM_EACH and the terms after it */
    double overlap[2];  /* ns for each launch: [one row, more rows] */
    /* The largest relative errors for measured steps that were left out of the fit (left_out_of());
     * 0 if there are no such steps. */
    double error[STEP_PARTS]; /* of the rules */
    double sum_error;         /* error of rules_step() with the measured parts */
    double step_error;        /* error of rules_step() with the predicted parts */
} rules;

typedef struct {
    rules range[PREDICT_RANGES]; /* rules for steps of at most 8 rows, of at most 64, and of more */
    kernel_slopes slopes;
    int heads; /* heads of the measured steps; the largest number if they differ */
    double read_rate, product_rate; /* measured ceilings: bytes/s; FLOP/s in BF16 */
    double ratio_error; /* the largest relative error of FP8 over BF16 (rules_compared()) for
                           measured steps that were left out of the fit; NAN without such pairs */
    bool single; /* on one GPU, a step of one row has kernels of its own, whose parts cannot be
                    timed (generator/local/cuda/single.cu) */
} rule_book;

static inline int predict_range(double rows) {
    return rows <= 8 ? 0 : rows <= 64 ? 1 : 2;
}

/* Steps that are left out of a fit: those of this batch and context. Batch 0 = none, context 0 =
 * those of all contexts. */
typedef struct {
    int64_t batch, context;
} left_out_cell;

/* Fits all rules to @n steps. book->slopes, the rates and single must be set. Steps of another
 * range or arm do not matter to a rule. */
void rules_fit(rule_book *book, const measured_step *steps, int n, left_out_cell without);

/* The steps that are left out to find the error of the rules for step @m: those of its batch. Their
 * experts and their rest have the same work at each context, so a step of another context would
 * give away the time. If fewer than two batches of the range remained, only the steps of the same
 * context are left out, because two terms cannot be fitted to one batch. */
left_out_cell left_out_of(const measured_step *steps, int n, const measured_step *m);

/* Whether the tokens/s of these steps of two arms are compared: they have the same context and
 * batch, or the batches of both are the largest of their arm at this context. */
typedef struct {
    int64_t context, batch;
    bool largest;
} compared_step;

static inline bool rules_compared(compared_step a, compared_step b) {
    return a.context == b.context && (a.batch == b.batch || (a.largest && b.largest));
}

/* Fits the rules as rules_fit() does, and computes their errors. */
void rules_fit_and_check(rule_book *book, const measured_step *steps, int n);

/* How long a rank of EP waits for the rank that reads the most experts in each layer. */
double rules_waiting(const rule_book *book, const predict_work *w);

/* Times of attention, experts and rest in @ns; ns[STEP_EXCHANGE] is not changed. A part without a
 * rule is NAN. */
void rules_apply(const rule_book *book, kv_format arm, const predict_work *w,
                 double ns[STEP_PARTS]);

/* The time of a step with these parts. @split: it is a step of several GPUs with sums. */
double rules_step(const rule_book *book, const predict_work *w, const double ns[STEP_PARTS],
                  bool split);

/**
 * fit_nonnegative - least squares without negative coefficients
 *
 * @x:    [n]; y is about the sum of x.of[t] * out->of[t]
 * @y:    [n]
 * @size: [n], above 0; the errors relative to these numbers are minimised
 * @out:  coefficients; 0 for terms that are not used
 *
 * Returns false if n is 0.
 */
bool fit_nonnegative(const predict_terms *x, const double *y, const double *size, int n,
                     predict_terms *out);

#endif
