#include "generator/test/cuda_subject.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "generator/test/random_model.h"

void subject_open(subject *s, const char *name, const char *config) {
    *s = (subject){.name = name};
    if (config) {
        random_open(&s->model, config, 0);
    } else {
        tiny_make(&s->model);
        tiny_write(s->model.dir, name, 0);
        tiny_read(&s->model);
    }
    s->n = s->model.shape.max_position_embeddings < SUBJECT_TOKENS ? 120 : SUBJECT_TOKENS;
    rng r = rng_make(7, 0);
    for (int i = 0; i < s->n; i++)
        s->tokens[i] = (int32_t)rng_below(&r, (uint32_t)s->model.shape.vocab_size);
    for (int i = 0; i < s->model.weights.blocks; i++)
        s->per_token += s->model.weights.block[i].moe ? s->model.shape.num_experts_per_tok : 0;
    CU_ASSERT_FATAL(s->per_token <= SUBJECT_PER_TOKEN);
}

void subject_close(subject *s) {
    tiny_close(&s->model);
}

runner *subject_start(const subject *s, kv_format format, const char *precision,
                      const char *device) {
    runner *r = NULL;
    snap_err err = {0};
    runner_options opt = {.format = format,
                          .precision = precision,
                          .pages = SUBJECT_PAGES,
                          .context = s->n + 1,
                          .max_rows = SUBJECT_TOKENS + SUBJECT_DECODE,
                          .max_decode = SUBJECT_DECODE,
                          .device = device,
                          .isa = device ? s->isa : NULL,
                          .threads = RUNNER_HOST_THREADS};
    if (runner_create(&r, &s->model.weights, &opt, &err) != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

void outcome_free(outcome *o) {
    free(o->logits);
    free(o->experts);
}

void subject_pages(int first, int32_t *pages, int n) {
    for (int i = 0; i < n; i++)
        pages[i] = first + (n - 1 - i);
}

outcome subject_run(const subject *s, runner *r, int piece) {
    int32_t pages[SUBJECT_PAGES];
    outcome o = {calloc((size_t)s->n * (size_t)s->model.shape.vocab_size, sizeof(float)),
                 calloc((size_t)s->n * SUBJECT_PER_TOKEN, sizeof(int32_t))};
    subject_pages(1, pages, (s->n - 1) / MLA_PAGE + 1);
    for (int at = 0; at < s->n; at += piece) {
        int n = s->n - at < piece ? s->n - at : piece;
        snap_err err = {0};
        model_piece p = {.tokens = s->tokens + at,
                         .count = n,
                         .position = at,
                         .pages = pages,
                         .logits = n,
                         .chunk = piece > 1};
        runner_watch_experts(r, o.experts + (int64_t)at * s->per_token);
        CU_ASSERT_EQUAL(
            runner_step(r, &p, 1, o.logits + (int64_t)at * s->model.shape.vocab_size, &err),
            SNAP_OK);
        if (err.code != SNAP_OK)
            (void)fprintf(stderr, "%s\n", err.text);
    }
    runner_watch_experts(r, NULL);
    return o;
}

double subject_distance(const float *a, const float *b, int n) {
    double diff = 0, size = 0;
    for (int i = 0; i < n; i++) {
        diff += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(diff / size);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

comparison subject_compare(const subject *s, const outcome *a, const outcome *b) {
    comparison c = {0};
    double all[SUBJECT_TOKENS];
    int vocab = s->model.shape.vocab_size;
    size_t bytes = (size_t)s->per_token * sizeof *a->experts;
    for (int i = 0; i < s->n; i++) {
        if (memcmp(a->experts + (int64_t)i * s->per_token, b->experts + (int64_t)i * s->per_token,
                   bytes) != 0)
            continue;
        double d =
            subject_distance(a->logits + (int64_t)i * vocab, b->logits + (int64_t)i * vocab, vocab);
        all[c.compared++] = isfinite(d) ? d : HUGE_VAL;
    }
    qsort(all, (size_t)c.compared, sizeof *all, by_size);
    c.median = c.compared ? all[c.compared / 2] : HUGE_VAL;
    c.worst = c.compared ? all[c.compared - 1] : HUGE_VAL;
    return c;
}

void subject_show(const subject *s, const char *what, comparison c) {
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | median %.1e, worst %.1e of %d of %d tokens |", s->name, what,
                     c.median, c.worst, c.compared, s->n);
}

void subject_check(const subject *s, const char *what, comparison c, double bound) {
    subject_show(s, what, c);
    CU_ASSERT(c.median <= bound);
    CU_ASSERT(c.compared * 10 >= s->n * 8);
}
