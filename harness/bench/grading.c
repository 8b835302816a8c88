#include "harness/bench/grading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "harness/measure/stats.h"

enum { kPairs = 1200, kPasses = 7, kResponse = 2048 };

typedef struct {
    const char *gold;
    span input;
    bool right;
} pair;

typedef struct {
    pair pairs[kPairs];
    arena mem;
    bool failed;
} pair_set;

/* The numbers from which one pair is made: a reference answer and an answer to judge. */
typedef struct {
    int a, b, c; /* 2..60 */
    int off;     /* added to a number of the answer: 0 = right answer, 1 = wrong answer */
} recipe;

static const char *keep(pair_set *s, const char *text) {
    const char *kept = arena_strdup(&s->mem, text);
    s->failed = s->failed || !kept;
    return kept ? kept : "";
}

typedef void (*pair_fn)(recipe r, char *gold, char *answer, size_t cap);

static void make_integer(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "%d", r.a * r.b);
    (void)snprintf(answer, cap, "x = %d", r.a * r.b + r.off);
}

static void make_fraction(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "\\frac{%d}{%d}", r.a, r.b);
    (void)snprintf(answer, cap, "\\dfrac{%d}{%d}", r.c * r.a + r.off, r.c * r.b);
}

static void make_decimal(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "\\frac%d{100}", r.a % 8 + 1);
    (void)snprintf(answer, cap, "0.0%d", r.a % 8 + 1 + r.off);
}

static void make_root(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "%d\\sqrt{%d}", r.a, r.b);
    (void)snprintf(answer, cap, "\\sqrt{%d}", r.a * r.a * r.b + r.off);
}

static void make_polynomial(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "(x+%d)(x-%d)", r.a, r.b);
    (void)snprintf(answer, cap, "x^2 + (%d)x - %d", r.a - r.b, r.a * r.b + r.off);
}

static void make_tuple(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "\\left( %d, \\frac{\\pi}{%d} \\right)", r.a, r.b);
    (void)snprintf(answer, cap, "(%d, \\pi/%d)", r.a + r.off, r.b);
}

static void make_interval(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "(-\\infty, %d) \\cup [%d, %d]", r.a, r.a + r.b, r.a + r.b + r.c);
    (void)snprintf(answer, cap, "(-\\infty,%d)\\cup[%d,%d]", r.a, r.a + r.b + r.off,
                   r.a + r.b + r.c);
}

static void make_matrix(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "\\begin{pmatrix} %d & -%d \\\\ 1/2 & %d \\end{pmatrix}", r.a, r.b,
                   r.c);
    (void)snprintf(answer, cap, "\\begin{bmatrix}%d&-%d\\\\0.5&%d\\end{bmatrix}", r.a, r.b,
                   r.c + r.off);
}

static void make_money(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "\\$%d,%03d", r.a, r.b);
    (void)snprintf(answer, cap, "%d%03d\\text{ dollars}", r.a, r.b + r.off);
}

static void make_list(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "%d, -%d, %d\\pi", r.a, r.b, r.c);
    (void)snprintf(answer, cap, "-%d,%d\\pi,%d", r.b, r.c, r.a + r.off);
}

static void make_power(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "2^{%d} \\cdot %d!", r.a, r.b);
    (void)snprintf(answer, cap, "%d! \\times 2^{%d}", r.b, r.a + r.off);
}

static void make_letter(recipe r, char *gold, char *answer, size_t cap) {
    (void)snprintf(gold, cap, "%c", 'A' + r.a % 4);
    (void)snprintf(answer, cap, "\\text{(%c)}", 'A' + (r.a + r.off) % 4);
}

static recipe draw(rng *r) {
    return (recipe){.a = 2 + (int)rng_below(r, 59),
                    .b = 2 + (int)rng_below(r, 59),
                    .c = 2 + (int)rng_below(r, 59),
                    .off = (int)rng_below(r, 2)};
}

/* Writes reasoning with formulas, then the answer in \boxed{}. */
static void write_response(char out[kResponse], const char *answer) {
    static const char thought[] = "We set $x = \\frac{a}{b}$ and look at both cases, because "
                                  "neither is excluded by (1). ";
    size_t n = 0;
    while (n + sizeof thought + 256 < kResponse)
        n += (size_t)snprintf(out + n, kResponse - n, "%s", thought);
    (void)snprintf(out + n, kResponse - n, "\n\nThe final answer is $\\boxed{%.200s}$.", answer);
}

static void make_pairs(pair_set *s, uint64_t seed, const pair_fn *makers, size_t n,
                       bool as_response) {
    rng r = rng_make(seed, rng_stream_of("grading"));
    char gold[256], answer[256], response[kResponse];
    for (size_t i = 0; i < kPairs; i++) {
        recipe parts = draw(&r);
        makers[i % n](parts, gold, answer, sizeof gold);
        if (as_response)
            write_response(response, answer);
        const char *input = keep(s, as_response ? response : answer);
        s->pairs[i] = (pair){keep(s, gold), {input, strlen(input)}, parts.off == 0};
    }
}

static snap_status judge_all(const pair_set *s, const grader *g, bool extracted, snap_err *err) {
    for (size_t i = 0; i < kPairs; i++) {
        const pair *p = &s->pairs[i];
        const grade_input in = {.response = p->input, .extracted = extracted};
        grade_result r;
        snap_status st = grade_response(g, p->gold, in, &r, err);
        if (st != SNAP_OK)
            return st;
        if ((r.verdict == GRADE_CORRECT) != p->right)
            return err_set(err, SNAP_E_WRONG, "%s: the answer '%s' to '%s' was graded %s (%s)",
                           g->id, r.extracted, p->gold, grade_verdict_name(r.verdict), r.reason);
    }
    return SNAP_OK;
}

/* Median rate of several passes. Each pass grades all pairs repeatedly for its share of @seconds.
 * One earlier pass warms up. Every verdict is checked. */
static snap_status measure(const pair_set *s, const grader *g, bool extracted, double seconds,
                           double *rate, snap_err *err) {
    double rates[kPasses];
    snap_status st = judge_all(s, g, extracted, err);
    for (int i = 0; i < kPasses && st == SNAP_OK; i++) {
        int64_t start = clock_now_ns(), end = start;
        size_t judged = 0;
        while (st == SNAP_OK && (double)(end - start) < seconds * 1e9 / kPasses) {
            st = judge_all(s, g, extracted, err);
            judged += kPairs;
            end = clock_now_ns();
        }
        stats_insert(rates, (size_t)i, (double)judged / ((double)(end - start) / 1e9));
    }
    if (st == SNAP_OK)
        *rate = stats_quantile(rates, kPasses, 0.5);
    return st;
}

snap_status grading_bench(uint64_t seed, double seconds, grading_row rows[GRADING_ROWS],
                          snap_err *err) {
    static const pair_fn integers[] = {make_integer}, letters[] = {make_letter};
    static const pair_fn objects[] = {make_integer,    make_fraction, make_decimal,  make_root,
                                      make_polynomial, make_tuple,    make_interval, make_matrix,
                                      make_money,      make_list,     make_power};
    static const struct {
        const grader *grader;
        bool response;
        const pair_fn *makers;
        size_t n;
    } plan[GRADING_ROWS] = {
        {&grader_math_truth, false, objects, sizeof objects / sizeof *objects},
        {&grader_math_truth, true, objects, sizeof objects / sizeof *objects},
        {&grader_aime, false, integers, 1},
        {&grader_aime, true, integers, 1},
        {&grader_letter, true, letters, 1},
    };
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < GRADING_ROWS && st == SNAP_OK; i++) {
        pair_set *s = calloc(1, sizeof *s);
        if (!s)
            return err_set(err, SNAP_E_NOMEM, "out of memory for the pairs");
        rows[i] =
            (grading_row){plan[i].grader->id, plan[i].response ? "response" : "answer", kPairs, 0};
        make_pairs(s, seed, plan[i].makers, plan[i].n, plan[i].response);
        st = s->failed ? err_set(err, SNAP_E_NOMEM, "out of memory for the pairs")
                       : measure(s, plan[i].grader, !plan[i].response, seconds, &rows[i].rate, err);
        arena_release(&s->mem);
        free(s);
    }
    return st;
}
