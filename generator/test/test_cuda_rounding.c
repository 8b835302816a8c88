/* Tests caches on a CUDA device whose rows are rounded through formats: their bits must be those
 * that the host's rounding gives, and the logits those of the CPU. Without a device nothing is
 * tested. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator/local/model/rounding.h"
#include "generator/test/cuda_subject.h"
#include "generator/test/random_model.h"

enum { kSequences = 3, kPages = 2, kMostTokens = kPages * MLA_PAGE, kDecodeSteps = 40 };

static runner *open_runner(const subject *s, const char *name, const char *device) {
    kv_format format;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(kv_format_parse(name, &format, &err), SNAP_OK);
    return subject_start(s, format, name, device);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* What is appended to the sequences: prompts in one step, then decode steps of all sequences
 * together, then a chunk of the first one. The positions reach the ends of groups and pages. */
typedef struct {
    int sequence, first, count;
} appended;

static const int32_t pages[kSequences][kPages] = {{7, 2}, {1, 9}, {4, 0}};
static const int kPrompt[kSequences] = {50, 5, 33};
enum { kLastChunk = 30 };

/* Runs these steps, and lists what each one appends. Returns the number of pieces. The decode steps
 * want all logits, so they are recorded as a CUDA graph and replayed. */
static int append_all(const subject *s, runner *r, appended *list) {
    int length[kSequences] = {0}, n = 0;
    float *logits = calloc((size_t)kSequences * (size_t)s->model.shape.vocab_size, sizeof *logits);
    for (int step = 0; step < kDecodeSteps + 2; step++) {
        bool prompts = step == 0, last = step == kDecodeSteps + 1;
        int sequences = last ? 1 : kSequences;
        model_piece p[kSequences];
        snap_err err = {0};
        for (int i = 0; i < sequences; i++) {
            int count = prompts ? kPrompt[i] : last ? kLastChunk : 1;
            p[i] = (model_piece){.tokens = s->tokens + 20 * i + length[i],
                                 .count = count,
                                 .position = length[i],
                                 .pages = pages[i],
                                 .logits = 1,
                                 .chunk = prompts || last};
            list[n++] = (appended){i, length[i], count};
            length[i] += count;
        }
        CU_ASSERT_EQUAL(runner_step(r, p, sequences, logits, &err), SNAP_OK);
    }
    free(logits);
    return n;
}

/* Reads the first layer of the sequences' pages, [kSequences][kMostTokens][width]. */
static void read_rows(runner *r, uint16_t *rows, int width) {
    kv_cache *cache = runner_cache(r);
    size_t bytes = (size_t)(MLA_PAGE * width) * sizeof *rows;
    char *page = malloc(kv_cache_page_bytes(cache));
    snap_err err = {0};
    for (int i = 0; i < kSequences * kPages; i++) {
        CU_ASSERT_EQUAL(kv_cache_read_page(cache, pages[i / kPages][i % kPages], page, &err),
                        SNAP_OK);
        memcpy(rows + (ptrdiff_t)i * MLA_PAGE * width, page, bytes);
    }
    free(page);
}

/* Rows of the first layer before any rounding, and what was appended when. */
typedef struct {
    const subject *s;
    uint16_t *rows;
    size_t numbers; /* of rows */
    appended list[(kDecodeSteps + 2) * kSequences];
    int width, pieces, formats; /* formats: compared so far */
} unrounded;

/* The rows of the first layer do not depend on the cache. So the unrounded ones come from a BF16
 * cache on the same device. Several sequences are decoded at a time, because a step of one row with
 * a BF16 cache uses other kernels, which may round the sums differently. */
static unrounded run_unrounded(const subject *s) {
    unrounded u = {.s = s};
    u.width = s->model.shape.kv_lora_rank + s->model.shape.qk_rope_head_dim;
    u.numbers = (size_t)kSequences * (size_t)kMostTokens * (size_t)u.width;
    u.rows = calloc(u.numbers, sizeof *u.rows);
    runner *plain = open_runner(s, "bf16", "cuda");
    u.pieces = append_all(s, plain, u.list);
    read_rows(plain, u.rows, u.width);
    runner_free(plain);
    return u;
}

static uint16_t *rows_of(const unrounded *u, uint16_t *rows, int sequence, int position) {
    return rows + ((ptrdiff_t)sequence * kMostTokens + position) * u->width;
}

/* Rounds the rows here, in the order in which they were appended, and compares with a device. */
static void check_bits(unrounded *u, const char *name) {
    uint16_t *want = calloc(u->numbers, sizeof *want), *got = calloc(u->numbers, sizeof *got);
    appended list[(kDecodeSteps + 2) * kSequences];
    runner *rounded = open_runner(u->s, name, "cuda");
    const row_format *format = kv_cache_row_format(runner_cache(rounded));
    int wrong = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(format);
    memcpy(want, u->rows, u->numbers * sizeof *want);
    CU_ASSERT_EQUAL(append_all(u->s, rounded, list), u->pieces);
    read_rows(rounded, got, u->width);
    for (int i = 0; i < u->pieces; i++) {
        appended a = list[i];
        rounding_apply(format, rows_of(u, want, a.sequence, a.first), a.count,
                       rows_of(u, want, a.sequence, a.first / MLA_PAGE * MLA_PAGE), a.first);
    }
    for (int i = 0; i < u->pieces; i++) { /* rows past the end of a sequence hold anything */
        const uint16_t *theirs = rows_of(u, got, list[i].sequence, list[i].first),
                       *ours = rows_of(u, want, list[i].sequence, list[i].first);
        for (int j = 0; j < list[i].count * u->width; j++)
            wrong += theirs[j] != ours[j];
    }
    if (wrong)
        (void)printf("%s, %s: %d numbers\n", u->s->name, name, wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    u->formats++;
    runner_free(rounded);
    free(want);
    free(got);
}

/* Checks a shipped format, unless it does not round or a growing cache cannot have it. */
static snap_status check_shipped(void *ctx, const char *name, snap_err *err) {
    (void)err;
    unrounded *u = ctx;
    cache_rounding r;
    const model_shape *m = &u->s->model.shape;
    if (strcmp(name, "bf16") != 0 &&
        rounding_load(&r, name, m->kv_lora_rank, m->qk_rope_head_dim, NULL) == SNAP_OK)
        check_bits(u, name);
    return SNAP_OK;
}

/* Checks all formats at a width that each of them has, and at one to which some pad the content. */
static void test_bits(void) {
    subject s;
    if (!tiny_on_cuda())
        return;
    subject_open(&s, "wide V2", random_wide_v2);
    unrounded u = run_unrounded(&s);
    CU_ASSERT_EQUAL(cache_format_each(check_shipped, &u, NULL), SNAP_OK);
    for (const coded_format *f = coded_formats(); f->name; f++)
        check_bits(&u, f->name);
    CU_ASSERT(u.formats >= 28);
    free(u.rows);
    subject_close(&s);
    subject_open(&s, "minicpm3", NULL);
    u = run_unrounded(&s);
    check_bits(&u, "D");
    check_bits(&u, "mxfp4-hadamard");
    check_bits(&u, "turboquant3");
    free(u.rows);
    subject_close(&s);
}

/* ---- logits ---------------------------------------------------------------------------------- */

static const double kNearer = 0.5; /* largest ratio of the two distances. Between two instruction
                                      sets of the CPU it is 0.04 (turboquant3) to 0.22 (noPV) */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median distance of all tokens' logits. Many tokens have other experts in another format. */
static double apart(const subject *s, const outcome *a, const outcome *b) {
    double all[SUBJECT_TOKENS];
    int vocab = s->model.shape.vocab_size;
    for (int i = 0; i < s->n; i++)
        all[i] =
            subject_distance(a->logits + (int64_t)i * vocab, b->logits + (int64_t)i * vocab, vocab);
    qsort(all, (size_t)s->n, sizeof *all, by_size);
    return all[s->n / 2];
}

/* Fails the test unless the logits of @device are much nearer to those of the CPU in the same
 * format than to those of BF16. Two devices do not give equal logits, because the sums of the
 * products are rounded in another order, and in a coarse format a number near the middle of two
 * codes can then get the other code. */
static void check_nearer(const subject *s, const char *name, const outcome *device,
                         const outcome *cpu, const outcome *bf16) {
    double own = apart(s, device, cpu), other = apart(s, device, bf16);
    if (getenv("SHOW_FIGURES"))
        (void)printf("\n| %s | %s | median %.1e, from BF16 %.1e |", s->name, name, own, other);
    CU_ASSERT(own < kNearer * other);
}

/* @bf16: the CPU's logits with a BF16 cache */
static void check_logits(const subject *s, const char *name, const outcome *bf16) {
    runner *cpu = open_runner(s, name, NULL), *cuda = open_runner(s, name, "cuda");
    outcome whole_cpu = subject_run(s, cpu, s->n), steps_cpu = subject_run(s, cpu, 1),
            whole = subject_run(s, cuda, s->n), steps = subject_run(s, cuda, 1);
    check_nearer(s, name, &whole, &whole_cpu, bf16);
    check_nearer(s, name, &steps, &steps_cpu, bf16);
    outcome_free(&whole_cpu);
    outcome_free(&steps_cpu);
    outcome_free(&whole);
    outcome_free(&steps);
    runner_free(cpu);
    runner_free(cuda);
}

/* One format of each kind: scales per token, page and tensor, a second level, rotations, coded
 * formats. */
static void test_logits(void) {
    static const char *const names[] = {"noPV",  "A",     "C",        "D",           "int4",
                                        "nvfp4", "kivi2", "kvquant3", "turboquant3", "fa3-fp8"};
    subject s;
    if (!tiny_on_cuda())
        return;
    subject_open(&s, "wide V2", random_wide_v2);
    runner *exact = open_runner(&s, "bf16", NULL);
    outcome bf16 = subject_run(&s, exact, s.n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_logits(&s, names[i], &bf16);
    outcome_free(&bf16);
    runner_free(exact);
    subject_close(&s);
}

CU_TestInfo tests_cuda_rounding[] = {
    {"rounded rows equal those of the host, bit for bit", test_bits},
    {"logits equal those of the CPU up to rounding", test_logits},
    CU_TEST_INFO_NULL,
};
