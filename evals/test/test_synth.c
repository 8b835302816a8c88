/* Tests generated problems. The splits are disjoint, and held-out problems are distinct. Solutions
 * have no false equation, have the intended lengths, and are accepted by the graders. Programs pass
 * their tests in Python. Training streams do not depend on how they are divided. Tasks read the
 * problems. */
#include <CUnit/CUnit.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "evals/code/grade_code.h"
#include "evals/synth/stream.h"
#include "evals/task.h"
#include "evals/test/task_of.h"
#include "generator/local/tokenizer/tokenizer.h"

static const synth_style styles[] = {SYNTH_AIME, SYNTH_MATH, SYNTH_GPQA, SYNTH_CODE};

static void make(synth_style style, int level, synth_split split, uint64_t seed, uint64_t i,
                 synth_problem *out) {
    CU_ASSERT_EQUAL_FATAL(synth_make(style, level, split, seed, i, out, NULL), SNAP_OK);
}

/* ---- held-out problems ---- */

typedef struct {
    uint64_t params, text; /* hashes */
} mark;

static int by_params(const void *a, const void *b) {
    const mark *x = a, *y = b;
    return (x->params > y->params) - (x->params < y->params);
}

static int by_text(const void *a, const void *b) {
    const mark *x = a, *y = b;
    return (x->text > y->text) - (x->text < y->text);
}

/* Hashes the parameters of the problem and, separately, its text. The text ends before what is
 * drawn in addition to the parameters: the options, or the example and what follows it. */
static mark mark_of(const synth_problem *p) {
    const char *text = buf_str(&p->problem), *options = strstr(text, "\n\nA) "),
               *example = strstr(text, "\nInput: "), *end = options ? options : example;
    char *stem = strndup(text, end ? (size_t)(end - text) : strlen(text));
    mark m = {rng_stream_of(buf_str(&p->params)), rng_stream_of(stem)};
    free(stem);
    return m;
}

enum { kHeldout = 50, kTrained = 1000, kSeeds = 3 };

/* For one style and level, compares held-out problems of one seed with training problems of three
 * seeds. */
static void check_splits(synth_style style, int level, synth_problem *p) {
    static mark asked[kHeldout], learned[kTrained];
    for (uint64_t i = 0; i < kHeldout; i++) {
        make(style, level, SYNTH_HELDOUT, 1, i, p);
        CU_ASSERT_EQUAL(synth_split_of(buf_str(&p->params)), SYNTH_HELDOUT);
        asked[i] = mark_of(p);
    }
    for (uint64_t i = 0; i < kTrained; i++) {
        make(style, level, SYNTH_TRAIN, 1 + i % kSeeds, i / kSeeds, p);
        CU_ASSERT_EQUAL(synth_split_of(buf_str(&p->params)), SYNTH_TRAIN);
        learned[i] = mark_of(p);
    }
    qsort(learned, kTrained, sizeof *learned, by_params);
    for (int i = 0; i < kHeldout; i++)
        CU_ASSERT_PTR_NULL(bsearch(&asked[i], learned, kTrained, sizeof *learned, by_params));
    for (int i = 1; i < kTrained; i++) /* equal params mean equal problems */
        if (learned[i].params == learned[i - 1].params)
            CU_ASSERT_EQUAL(learned[i].text, learned[i - 1].text);
    qsort(learned, kTrained, sizeof *learned, by_text);
    for (int i = 0; i < kHeldout; i++)
        CU_ASSERT_PTR_NULL(bsearch(&asked[i], learned, kTrained, sizeof *learned, by_text));
}

static void test_splits(void) {
    synth_problem p = {0};
    for (int s = 0; s < SYNTH_STYLES; s++)
        for (int level = 1; level <= SYNTH_LEVELS; level++)
            check_splits(styles[s], level, &p);
    synth_release(&p);
}

/* ---- equations ---- */

typedef struct {
    const char *s, *end;
    bool bad;
} reader;

static long sum(reader *r);

static long atom(reader *r) {
    char *next;
    if (r->s < r->end && *r->s == '(') {
        r->s++;
        long x = sum(r);
        r->bad = r->bad || r->s >= r->end || *r->s != ')';
        r->s++;
        return x;
    }
    if (r->s < r->end && *r->s == '-') {
        r->s++;
        return -atom(r);
    }
    if (r->s >= r->end || !isdigit((unsigned char)*r->s)) {
        r->bad = true;
        return 0;
    }
    long x = strtol(r->s, &next, 10);
    r->s = next;
    return x;
}

static long product(reader *r) {
    long x = atom(r);
    while (!r->bad && r->s < r->end && strchr("*/%", *r->s)) {
        char op = *r->s++;
        long y = atom(r);
        if (op != '*' && (y == 0 || (op == '/' && x % y)))
            r->bad = true;
        else
            x = op == '*' ? x * y : op == '/' ? x / y : x % y;
    }
    return x;
}

static long sum(reader *r) {
    long x = product(r);
    while (!r->bad && r->s < r->end && strchr("+-", *r->s)) {
        char op = *r->s++;
        long y = product(r);
        x += op == '+' ? y : -y;
    }
    return x;
}

/* Checks a chain "a=b=c": false if two sides differ. Sides that are not arithmetic are ignored. */
static bool chain_holds(const char *s, const char *end, long *checked) {
    bool have = false;
    long value = 0;
    for (const char *side = s; side < end;) {
        const char *stop = memchr(side, '=', (size_t)(end - side));
        stop = stop ? stop : end;
        reader r = {side, stop, false};
        long x = sum(&r);
        if (!r.bad && r.s == stop) {
            if (have && x != value)
                return false;
            *checked += have;
            have = true;
            value = x;
        }
        side = stop + 1;
    }
    return true;
}

static void check_equations(const synth_problem *p, long *checked) {
    const char *text = buf_str(&p->solution), *end = strstr(text, "```");
    end = end ? end : text + strlen(text);
    for (const char *s = text; s < end;) {
        size_t n = strspn(s, "0123456789+-*/%()=");
        n = n < (size_t)(end - s) ? n : (size_t)(end - s);
        if (n && !chain_holds(s, s + n, checked)) {
            printf("\n%s %s: %.*s\n", p->id, p->family, (int)n, s);
            CU_FAIL("a false equation");
        }
        s += n + !n;
    }
}

static void test_equations(void) {
    synth_problem p = {0};
    for (int s = 0; s < SYNTH_STYLES; s++)
        for (int level = 1; level <= SYNTH_LEVELS; level++) {
            long checked = 0;
            for (uint64_t i = 0; i < 100; i++) {
                make(styles[s], level, SYNTH_TRAIN, 3, i, &p);
                check_equations(&p, &checked);
            }
            CU_ASSERT(checked >= (s == SYNTH_CODE && level < 3 ? 50 : 200));
        }
    synth_release(&p);
}

/* ---- graders ---- */

static grade_input response_of(const synth_problem *p) {
    return (grade_input){.response = {buf_str(&p->solution), p->solution.len}};
}

static void check_graded(const grader *g, const synth_problem *p) {
    const char *gold = buf_str(&p->answer);
    CU_ASSERT_EQUAL(g->check_gold(gold, NULL), SNAP_OK);
    grade_result r = g->grade(gold, response_of(p));
    if (r.verdict != GRADE_CORRECT)
        printf("\n%s: %s: %s\n", p->id, gold, r.reason);
    CU_ASSERT_EQUAL(r.verdict, GRADE_CORRECT);
}

static void test_graded(void) {
    static const grader *const graders[SYNTH_CODE][2] = {{&grader_aime, &grader_aime},
                                                         {&grader_math_truth, &grader_math_strict},
                                                         {&grader_letter, &grader_letter}};
    synth_problem p = {0};
    for (int s = 0; s < SYNTH_CODE; s++)
        for (int level = 1; level <= SYNTH_LEVELS; level++)
            for (uint64_t i = 0; i < 40; i++) {
                make(styles[s], level, SYNTH_HELDOUT, 2, i, &p);
                check_graded(graders[s][0], &p);
                check_graded(graders[s][1], &p);
            }
    synth_release(&p);
}

/* The programs in the solutions print the expected outputs. */
static void test_programs(void) {
    code_judge *j = NULL;
    const judge_options o = {.kind = JUDGE_REAL};
    synth_problem p = {0};
    snap_err err = {0};
    if (judge_open(&j, &o, &err) != SNAP_OK) {
        CU_ASSERT_EQUAL(err.code, SNAP_E_ENV);
        printf("\nskipped: %s\n", err.text);
        return;
    }
    for (uint64_t i = 0; i < 12; i++) {
        code_test test[SYNTH_TESTS];
        code_tests tests = {.tests = test, .n = SYNTH_TESTS};
        code_grade g;
        make(SYNTH_CODE, 1 + (int)i % SYNTH_LEVELS, SYNTH_HELDOUT, 4, i, &p);
        CU_ASSERT_EQUAL_FATAL(p.n_tests, SYNTH_TESTS);
        for (int k = 0; k < SYNTH_TESTS; k++)
            test[k] = (code_test){{buf_str(&p.input[k]), p.input[k].len},
                                  {buf_str(&p.output[k]), p.output[k].len}};
        CU_ASSERT_EQUAL(
            code_grade_response(j, &grader_code_real, response_of(&p), &tests, &g, NULL), SNAP_OK);
        if (g.grade.verdict != GRADE_CORRECT)
            printf("\n%s %s: %s\n%s\n", p.id, p.family, g.grade.reason, buf_str(&p.solution));
        CU_ASSERT_EQUAL(g.grade.verdict, GRADE_CORRECT);
    }
    synth_release(&p);
    judge_close(j);
}

/* ---- lengths, in tokens of the model's own tokenizer ---- */

static void test_lengths(void) {
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    tok_ids ids = {0};
    synth_problem p = {0};
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, "training/tokenizer", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    for (int s = 0; s < SYNTH_STYLES; s++) {
        size_t before = 0;
        for (int level = 1; level <= SYNTH_LEVELS; level++) {
            size_t sum = 0;
            for (uint64_t i = 0; i < 30; i++) {
                make(styles[s], level, SYNTH_TRAIN, 8, i, &p);
                ids.n = 0;
                CU_ASSERT_EQUAL(tok_encode(e, buf_str(&p.solution), p.solution.len, 0, &ids, NULL),
                                SNAP_OK);
                CU_ASSERT(ids.n <= 8000 && (level < SYNTH_LONG || ids.n >= 1000));
                sum += ids.n;
            }
            CU_ASSERT(sum > before); /* higher levels have longer solutions */
            before = sum;
        }
    }
    tok_ids_release(&ids);
    tok_encoder_free(e);
    tokenizer_free(t);
    synth_release(&p);
}

/* ---- streams ---- */

static snap_status append(void *ctx, const char *lines, size_t n, snap_err *err) {
    (void)buf_append(ctx, lines, n);
    return buf_check(ctx, "lines", err);
}

static buf stream_of(const synth_plan *plan, int threads) {
    parallel *pool = NULL;
    buf out = {0};
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, threads, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(synth_stream(plan, pool, append, &out, NULL), SNAP_OK);
    parallel_free(pool);
    return out;
}

/* A training stream made in parts and by more threads is the same. */
static void test_stream_is_a_function(void) {
    synth_plan plan = {.style = {SYNTH_AIME, SYNTH_CODE},
                       .styles = 2,
                       .level = {1, 4, 2},
                       .levels = 3,
                       .seed = 9,
                       .start = 0,
                       .count = 700,
                       .solutions = true};
    buf whole = stream_of(&plan, 1), parts = {0};
    for (plan.start = 0; plan.start < 700; plan.start += 100) {
        plan.count = 100;
        buf part = stream_of(&plan, 3);
        (void)buf_append(&parts, part.data, part.len);
        buf_release(&part);
    }
    CU_ASSERT_STRING_EQUAL(buf_str(&whole), buf_str(&parts));
    plan = (synth_plan){.style = {SYNTH_AIME, SYNTH_CODE},
                        .styles = 2,
                        .level = {1, 4, 2},
                        .levels = 3,
                        .seed = 10,
                        .count = 700,
                        .solutions = true};
    buf other = stream_of(&plan, 1);
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&whole), buf_str(&other));
    buf_release(&whole);
    buf_release(&parts);
    buf_release(&other);
}

static int by_string(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static snap_status keep_params(void *ctx, js *row, long line, snap_err *err) {
    char ***next = ctx;
    (void)line, (void)err;
    CU_ASSERT_PTR_NULL(js_get(row, "solution"));
    *(*next)++ = strdup(js_get_str(row, "params"));
    return SNAP_OK;
}

static void test_heldout_is_distinct(void) {
    enum { kCount = 60 };
    char *params[kCount], **next = params;
    synth_plan plan = {.style = {SYNTH_AIME},
                       .styles = 1,
                       .level = {1},
                       .levels = 1,
                       .split = SYNTH_HELDOUT,
                       .count = kCount};
    buf text = stream_of(&plan, 2), nothing = {0};
    CU_ASSERT_EQUAL(js_each_line(text.data, text.len, "text", keep_params, &next, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(next - params, kCount);
    qsort(params, kCount, sizeof *params, by_string);
    for (int i = 1; i < kCount; i++)
        CU_ASSERT_STRING_NOT_EQUAL(params[i - 1], params[i]);
    for (int i = 0; i < kCount; i++)
        free(params[i]);
    parallel *pool = NULL;
    snap_err err = {0};
    plan.style[0] = SYNTH_MATH;
    plan.count = 100000;
    CU_ASSERT_EQUAL(parallel_create(&pool, 2, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(synth_stream(&plan, pool, append, &nothing, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "style math has fewer held-out problems of level 1"));
    parallel_free(pool);
    buf_release(&nothing);
    buf_release(&text);
}

static void test_refused(void) {
    synth_problem p = {0};
    synth_style style;
    synth_split split;
    snap_err err = {0};
    CU_ASSERT_EQUAL(synth_make(SYNTH_AIME, 0, SYNTH_TRAIN, 1, 0, &p, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "level 0: must be 1 to 6");
    CU_ASSERT_EQUAL(synth_make(SYNTH_AIME, 7, SYNTH_TRAIN, 1, 0, &p, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(synth_style_parse("amie", &style, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(synth_split_parse("test", &split, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(synth_style_parse("gpqa", &style, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(style, SYNTH_GPQA);
    CU_ASSERT_EQUAL(synth_split_parse("train", &split, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(split, SYNTH_TRAIN);
    synth_release(&p);
}

/* ---- generated problems as tasks ---- */

static void test_tasks(void) {
    const task_spec *const tasks[] = {task_of("synth_aime"), task_of("synth_math"),
                                      task_of("synth_gpqa"), task_of("synth_code")};
    char path[] = "/tmp/snapmla-synth-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    for (int s = 0; s < SYNTH_STYLES; s++) {
        synth_plan plan = {.style = {styles[s]},
                           .styles = 1,
                           .level = {1, 2, 3, 4, 5},
                           .levels = 5,
                           .split = SYNTH_HELDOUT,
                           .count = 50};
        buf rows = stream_of(&plan, 1);
        task_set set;
        synth_problem p = {0};
        snap_err err = {0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, rows.data, rows.len, NULL), SNAP_OK);
        snap_status st = task_load(tasks[s], path, 0, NULL, &set, &err);
        if (st != SNAP_OK)
            printf("\n%s\n", err.text);
        CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
        CU_ASSERT_EQUAL(set.n, 50);
        make(styles[s], 1, SYNTH_HELDOUT, 0, 0, &p);
        CU_ASSERT_STRING_EQUAL(set.problems[0].id, p.id);
        CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].content, buf_str(&p.problem));
        if (s == SYNTH_CODE) {
            code_tests tests;
            CU_ASSERT_EQUAL(task_tests(&set, &set.problems[0], &tests, NULL), SNAP_OK);
            CU_ASSERT_EQUAL(tests.n, SYNTH_TESTS);
            tests_release(&tests);
        } else {
            CU_ASSERT_STRING_EQUAL(set.problems[0].gold, buf_str(&p.answer));
        }
        synth_release(&p);
        task_set_release(&set);
        buf_release(&rows);
    }
    (void)unlink(path);
}

CU_TestInfo tests_synth[] = {
    {"no problem is in both the training and the held-out set", test_splits},
    {"all equations in solutions are true", test_equations},
    {"graders accept the solutions", test_graded},
    {"programs pass in Python", test_programs},
    {"lengths of solutions", test_lengths},
    {"equal arguments give equal streams", test_stream_is_a_function},
    {"held-out problems differ", test_heldout_is_distinct},
    {"bad plans are refused", test_refused},
    {"problems as tasks of eval", test_tasks},
    CU_TEST_INFO_NULL};
