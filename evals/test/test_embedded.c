/* Tests that the shipped model answers held-out problems of the second level and finds codes in
 * short texts, with a BF16 and with an FP8 cache. Decoding is greedy, so the answers are the same
 * in each run. Under sanitizers, each cache has only one of the two kinds of question. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/test/sanitized.h"
#include "evals/longtext/longtext.h"
#include "evals/synth/synth.h"
#include "evals/task.h"
#include "generator/generator.h"

enum { kEach = kSanitized ? 1 : 2, kLevel = 2, kAsked = SYNTH_STYLES * kEach, kTokens = 400 };
enum { kTexts = kSanitized ? 2 : 6, kLength = 256, kTextTokens = 64 };

typedef struct {
    synth_problem problem[kAsked];
    gen_message message[kAsked];
    int next, answered, right;
} exam;

static bool ask(void *ctx, gen_request *out) {
    exam *e = ctx;
    if (e->next == kAsked)
        return false;
    int i = e->next++;
    e->message[i] = (gen_message){"user", buf_str(&e->problem[i].problem)};
    *out = (gen_request){.id = i,
                         .task = "synth",
                         .problem = e->problem[i].id,
                         .messages = &e->message[i],
                         .n_messages = 1,
                         .sampling = {.temperature = 0, .top_p = 1, .max_tokens = kTokens}};
    return true;
}

/* A response with a program must equal the solution; nothing is run. */
static bool is_right(const synth_problem *p, const char *text) {
    static const grader *const graders[SYNTH_CODE] = {&grader_aime, &grader_math_truth,
                                                      &grader_letter};
    const grade_input in = {.response = {text, strlen(text)}};
    if (p->style == SYNTH_CODE)
        return strcmp(text, buf_str(&p->solution)) == 0;
    return graders[p->style]->grade(buf_str(&p->answer), in).verdict == GRADE_CORRECT;
}

static snap_status mark(void *ctx, const gen_request *req, const gen_result *res, snap_err *err) {
    (void)err;
    exam *e = ctx;
    bool right = !res->failed && is_right(&e->problem[req->id], res->text);
    if (!right)
        printf("\n%s: %s\n", req->problem, res->failed ? res->error : res->text);
    e->answered++;
    e->right += right;
    return SNAP_OK;
}

/* ---- problems ---- */

static void check_problems(const char *precision) {
    exam e = {.next = 0};
    generator *g = NULL;
    const generator_options o = {
        .precision = precision, .threads = 1, .context = 1024, .in_flight = kAsked};
    for (int i = 0; i < kAsked; i++)
        CU_ASSERT_EQUAL_FATAL(synth_make((synth_style)(i % SYNTH_STYLES), kLevel, SYNTH_HELDOUT, 11,
                                         (uint64_t)i, &e.problem[i], NULL),
                              SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(generator_open(&g, "local:models/snapmla-10m", &o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(generator_run(g, ask, &e, mark, &e, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(e.answered, kAsked);
    CU_ASSERT_EQUAL(e.right, kAsked);
    generator_close(g);
    for (int i = 0; i < kAsked; i++)
        synth_release(&e.problem[i]);
}

static void test_problems(void) {
    if (!kSanitized)
        check_problems("bf16");
    check_problems("fp8");
}

/* ---- codes in texts ---- */

typedef struct {
    longtext text[kTexts];
    buf prompt[kTexts];
    gen_message message[kTexts];
    int next, right;
} search;

static bool ask_for_code(void *ctx, gen_request *out) {
    search *s = ctx;
    if (s->next == kTexts)
        return false;
    int i = s->next++;
    s->message[i] = (gen_message){"user", buf_str(&s->prompt[i])};
    *out = (gen_request){.id = i,
                         .task = "longtext",
                         .problem = "code",
                         .messages = &s->message[i],
                         .n_messages = 1,
                         .sampling = {.temperature = 0, .top_p = 1, .max_tokens = kTextTokens}};
    return true;
}

static snap_status mark_code(void *ctx, const gen_request *req, const gen_result *res,
                             snap_err *err) {
    (void)err;
    search *s = ctx;
    char line[80];
    (void)snprintf(line, sizeof line, "Answer: %s", buf_str(&s->text[req->id].answer));
    bool right = !res->failed && strstr(res->text, line);
    if (!right)
        printf("\n%s\n-> %s\n", buf_str(&s->prompt[req->id]), res->failed ? res->error : res->text);
    s->right += right;
    return SNAP_OK;
}

static void check_codes(const char *precision) {
    search s = {.next = 0};
    generator *g = NULL;
    const token_counter counter = {NULL, 3};
    const generator_options o = {
        .precision = precision, .threads = 1, .context = 1024, .in_flight = kTexts};
    for (int i = 0; i < kTexts; i++) {
        const longtext_options text = {.kind = i % 2 ? LONGTEXT_LOOKUP : LONGTEXT_NEEDLE,
                                       .length = kLength,
                                       .depth = (double)i / (kTexts - 1),
                                       .keys = 4,
                                       .values = 1,
                                       .queries = 1};
        CU_ASSERT_EQUAL_FATAL(longtext_make(&text, 11 + (uint64_t)i, i % 2 ? "lookup" : "needle",
                                            &counter, &s.text[i], NULL),
                              SNAP_OK);
        (void)buf_printf(&s.prompt[i], "%s\n\n%s", buf_str(&s.text[i].document),
                         buf_str(&s.text[i].question));
    }
    CU_ASSERT_EQUAL_FATAL(generator_open(&g, "local:models/snapmla-10m", &o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(generator_run(g, ask_for_code, &s, mark_code, &s, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(s.right, kTexts);
    generator_close(g);
    for (int i = 0; i < kTexts; i++) {
        longtext_release(&s.text[i]);
        buf_release(&s.prompt[i]);
    }
}

static void test_codes(void) {
    check_codes("bf16");
    if (!kSanitized)
        check_codes("fp8");
}

CU_TestInfo tests_embedded[] = {{"the shipped model answers problems", test_problems},
                                {"the shipped model finds codes in texts", test_codes},
                                CU_TEST_INFO_NULL};
