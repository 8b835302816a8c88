/* cuda_subject.h - a small model with tokens, for tests that run it on a CUDA device and on the
 * CPU and compare the logits. */
#ifndef SNAPMLA_GENERATOR_TEST_CUDA_SUBJECT_H
#define SNAPMLA_GENERATOR_TEST_CUDA_SUBJECT_H

#include "generator/local/model/runner.h"
#include "generator/test/tiny_model.h"

enum { SUBJECT_TOKENS = 300, SUBJECT_PAGES = 64, SUBJECT_DECODE = 16, SUBJECT_PER_TOKEN = 32 };

#define SUBJECT_ROUNDING 2e-2 /* median distance of logits between two orders of BF16 sums */

typedef struct {
    const char *name, *isa; /* isa: of the device; NULL = the best */
    tiny_model model;
    int32_t tokens[SUBJECT_TOKENS];
    int n, per_token; /* tokens; experts that a token chooses in all layers */
} subject;

/* Opens a fixture of tiny_model.h, or a random model of @config (random_model.h). */
void subject_open(subject *s, const char *name, const char *config);
void subject_close(subject *s);

/* @precision: as in runner_options. @device: NULL = the CPU. The caller frees the result. */
runner *subject_start(const subject *s, kv_format format, const char *precision,
                      const char *device);

/* Writes the pages first + n - 1, ..., first + 1, first. */
void subject_pages(int first, int32_t *pages, int n);

/* The results of a run over a subject's tokens. */
typedef struct {
    float *logits;    /* [n][vocab] */
    int32_t *experts; /* [n][per_token] */
} outcome;

/* Runs the tokens in pieces of @piece tokens; 1 decodes each token. Release with outcome_free(). */
outcome subject_run(const subject *s, runner *r, int piece);
void outcome_free(outcome *o);

/* |a - b| / |b| */
double subject_distance(const float *a, const float *b, int n);

/* Distances of the logits of the tokens that have the same experts in every layer. */
typedef struct {
    double median, worst;
    int compared;
} comparison;
comparison subject_compare(const subject *s, const outcome *a, const outcome *b);

/* Prints a comparison if SHOW_FIGURES is set. */
void subject_show(const subject *s, const char *what, comparison c);

/* Also fails the test if the median is above @bound, or if fewer than 80 % of the tokens have the
 * same experts. */
void subject_check(const subject *s, const char *what, comparison c, double bound);

#endif
