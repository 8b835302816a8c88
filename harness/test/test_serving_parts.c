/* Tests the parts of a serving benchmark that need no server: arrivals against renewal theory,
 * drawn numbers against their distributions, traces against their formats, prompts, lines. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/tokenizer/tokenizer.h"
#include "harness/serving/load_points.h"
#include "harness/serving/request_lines.h"
#include "harness/serving/work.h"

static bool is_near(double x, double wanted, double error) {
    if (fabs(x - wanted) > error)
        printf("\n%g is not within %g of %g\n", x, error, wanted);
    return fabs(x - wanted) <= error;
}

/* ---- arrivals ---- */

enum { kGaps = 200000 };

/* Mean and coefficient of variation of the gaps. */
static void gaps_of(const char *name, double rate, double *mean, double *cv) {
    arrival_pattern p;
    double last = 0, sum = 0, squares = 0;
    CU_ASSERT_EQUAL_FATAL(arrival_pattern_parse(name, &p, NULL), SNAP_OK);
    arrivals a = arrivals_make(p, rate, rate, 0, 7, 1);
    for (int i = 0; i < kGaps; i++) {
        double at = arrivals_next(&a), gap = at - last;
        CU_ASSERT(gap >= 0);
        sum += gap;
        squares += gap * gap;
        last = at;
    }
    *mean = sum / kGaps;
    *cv = sqrt(fmax(0, squares / kGaps - *mean * *mean)) / *mean;
}

/* The mean of n gaps has the standard error cv / (rate sqrt(n)); five of them are allowed. */
static void test_arrivals(void) {
    static const struct {
        const char *pattern;
        double cv;
    } cases[] = {{"constant", 0},  {"poisson", 1},      {"gamma:1", 1},    {"gamma:0.25", 2},
                 {"gamma:4", 0.5}, {"gamma:0.0625", 4}, {"gamma:100", 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean, cv, error = 5 * cases[i].cv / sqrt(kGaps);
        gaps_of(cases[i].pattern, 8, &mean, &cv);
        CU_ASSERT(is_near(8 * mean, 1, error + 1e-9));
        CU_ASSERT(is_near(cv, cases[i].cv, 0.05 * cases[i].cv + 1e-6));
    }
}

/* In a ramp from a to b within T, (a + b) / 2 * T arrivals are expected, and a + (b - a) t / T per
 * second near t. */
static void test_ramp(void) {
    arrivals a = arrivals_make((arrival_pattern){0}, 100, 300, 10, 1, 1);
    int n = 0, early = 0, middle = 0;
    double at, last = 0;
    while ((at = arrivals_next(&a)) < 10) {
        CU_ASSERT(at > last);
        last = at;
        n++;
        early += at < 1;
        middle += at >= 4.5 && at < 5.5;
    }
    CU_ASSERT(is_near(n, 2000, 1));
    CU_ASSERT(is_near(early, 110, 1));
    CU_ASSERT(is_near(middle, 200, 1));
    double next = arrivals_next(&a), after = arrivals_next(&a);
    CU_ASSERT(is_near(after - next, 1.0 / 300, 1e-9));           /* the rate stays the same then */
    a = arrivals_make((arrival_pattern){0}, 300, 100, 10, 1, 1); /* downwards */
    for (n = 0; arrivals_next(&a) < 5; n++) {
    }
    CU_ASSERT(is_near(n, 1250, 1));
}

static void test_arrivals_repeat(void) {
    arrival_pattern p = {.shape = 0.5};
    arrivals a = arrivals_make(p, 3, 3, 0, 11, 5), b = arrivals_make(p, 3, 3, 0, 11, 5),
             other = arrivals_make(p, 3, 3, 0, 12, 5);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        double x = arrivals_next(&a), y = arrivals_next(&b), z = arrivals_next(&other);
        CU_ASSERT(memcmp(&x, &y, sizeof x) == 0);
        equal += memcmp(&x, &z, sizeof x) == 0;
    }
    CU_ASSERT_EQUAL(equal, 0);
}

static void test_load_points(void) {
    load_points p;
    snap_err err = {0};
    CU_ASSERT_EQUAL(load_points_parse("1,16", "0.5", "1-8", "2", "gamma:0.5", &p, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(p.n, 5);
    CU_ASSERT(p.at[1].load.users == 16 && p.at[2].load.users == 0);
    CU_ASSERT(is_near(p.at[2].load.rate, 0.5, 0) && is_near(p.at[3].load.from_rate, 1, 0));
    CU_ASSERT(is_near(p.at[3].load.rate, 8, 0) && is_near(p.at[4].load.speed, 2, 0));
    CU_ASSERT_STRING_EQUAL(p.at[3].name, "ramp 1-8");
    static const char *const bad[][4] = {{"0", NULL, NULL, NULL},     {"1,,2", NULL, NULL, NULL},
                                         {"99999", NULL, NULL, NULL}, {NULL, "0", NULL, NULL},
                                         {NULL, "nan", NULL, NULL},   {NULL, "1e9", NULL, NULL},
                                         {NULL, NULL, "5", NULL},     {NULL, NULL, "1-", NULL},
                                         {NULL, NULL, NULL, "x"},     {NULL, NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_EQUAL(
            load_points_parse(bad[i][0], bad[i][1], bad[i][2], bad[i][3], NULL, &p, NULL),
            SNAP_E_USAGE);
    static const char *const patterns[] = {"",       "Poisson", "gamma",
                                           "gamma:", "gamma:0", "gamma:1e9"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        err = (snap_err){0};
        CU_ASSERT_EQUAL(load_points_parse("1", NULL, NULL, NULL, patterns[i], &p, &err),
                        SNAP_E_USAGE);
        CU_ASSERT(err.text[0] != '\0');
    }
}

/* ---- drawn numbers ---- */

static void moments(const draw *d, double *mean, double *sd, double *median_share, double median) {
    double sum = 0, squares = 0, below = 0;
    for (uint64_t i = 0; i < 50000; i++) {
        double x = draw_at(d, 3, 9, i);
        sum += x;
        squares += x * x;
        below += x < median;
    }
    *mean = sum / 50000;
    *sd = sqrt(squares / 50000 - *mean * *mean);
    *median_share = below / 50000;
}

static void test_draw(void) {
    arena mem = {0};
    draw d;
    double mean, sd, share;
    CU_ASSERT_EQUAL(draw_parse("--x", "uniform:10-30", 1, 1e6, &mem, &d, NULL), SNAP_OK);
    moments(&d, &mean, &sd, &share, 20);
    CU_ASSERT(is_near(mean, 20, 0.15) && is_near(sd, 20 / sqrt(12), 0.1));
    int64_t counts[31] = {0};
    for (uint64_t i = 0; i < 42000; i++)
        counts[draw_length(&d, 3, 9, i)]++;
    for (int i = 10; i <= 30; i++) /* 2000 each; the ends are as frequent as the others */
        CU_ASSERT(is_near((double)counts[i], 2000, 250));
    CU_ASSERT_EQUAL(draw_parse("--x", "lognormal:100:0.5", 1, 1e6, &mem, &d, NULL), SNAP_OK);
    moments(&d, &mean, &sd, &share, 100);
    CU_ASSERT(is_near(share, 0.5, 0.012) && is_near(mean, 100 * exp(0.125), 1.5));
    CU_ASSERT_EQUAL(draw_parse("--x", "exponential:2", 0, 1e6, &mem, &d, NULL), SNAP_OK);
    moments(&d, &mean, &sd, &share, 2 * log(2));
    CU_ASSERT(is_near(share, 0.5, 0.012) && is_near(mean, 2, 0.05) && is_near(sd, 2, 0.06));
    CU_ASSERT_EQUAL(draw_parse("--x", "512", 1, 1e6, &mem, &d, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(draw_length(&d, 1, 1, 12345), 512);
    arena_release(&mem);
}

static void test_draw_refused(void) {
    static const char *const bad[] = {"",
                                      "x",
                                      "0",
                                      "uniform:5",
                                      "nan",
                                      "uniform:9-5",
                                      "uniform:1-2000000",
                                      "lognormal:5",
                                      "-1",
                                      "lognormal:0:1",
                                      "lognormal:5:-1",
                                      "uniform:-",
                                      "file:/nonexistent"};
    arena mem = {0};
    draw d;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_NOT_EQUAL(draw_parse("--input", bad[i], 1, 1e6, &mem, &d, &err), SNAP_OK);
        CU_ASSERT(err.text[0] != '\0');
    }
    arena_release(&mem);
}

static void test_draw_file(void) {
    char path[] = "/tmp/snapmla-draw-XXXXXX", option[64];
    arena mem = {0};
    draw d;
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    (void)snprintf(option, sizeof option, "file:%s", path);
    CU_ASSERT_EQUAL(fs_write_atomic(path, "7\r\n\n9\n7", 7, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(draw_parse("--input", option, 1, 100, &mem, &d, NULL), SNAP_OK);
    int sevens = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        int64_t x = draw_length(&d, 1, 2, i);
        CU_ASSERT(x == 7 || x == 9);
        sevens += x == 7;
    }
    CU_ASSERT(is_near(sevens, 2000, 150));
    static const char *const bad[] = {"7\n0\n", "7 8\n", "\n", "x", "101\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(fs_write_atomic(path, bad[i], strlen(bad[i]), NULL), SNAP_OK);
        CU_ASSERT_EQUAL(draw_parse("--input", option, 1, 100, &mem, &d, NULL), SNAP_E_INPUT);
    }
    (void)unlink(path);
    arena_release(&mem);
}

/* ---- traces ---- */

static snap_status parse(const char *text, trace *t, snap_err *err) {
    return trace_parse(text, strlen(text), "t", t, err);
}

static void test_trace_own(void) {
    trace t;
    CU_ASSERT_EQUAL(parse("{\"time\":2.5,\"input_length\":10,\"output_length\":4,\"prefix\":3,"
                          "\"prefix_length\":6}\n\n{\"time\":1,\"input_length\":7,"
                          "\"output_length\":2}\n{\"time\":9,\"input_length\":7,"
                          "\"output_length\":0}\n",
                          &t, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    CU_ASSERT_EQUAL(t.unanswered, 1);
    CU_ASSERT(is_near(t.rows[0].time_s, 0, 0) && is_near(t.rows[1].time_s, 1.5, 1e-12));
    CU_ASSERT(t.rows[0].prefix == -1 && t.rows[0].prefix_length == -1);
    CU_ASSERT(t.rows[1].prefix == 3 && t.rows[1].prefix_length == 6);
    CU_ASSERT(t.rows[1].input_length == 10 && t.rows[1].output_length == 4);
    trace_release(&t);
}

static void test_trace_mooncake(void) {
    trace t;
    CU_ASSERT_EQUAL(
        parse(
            "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": "
            "[46, 47, 48]}\n{\"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26, "
            "\"hash_ids\": [46, 2353]}\n",
            &t, NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    CU_ASSERT(is_near(t.rows[1].time_s, 3.053, 1e-9));
    CU_ASSERT(t.rows[0].n_hash_ids == 3 && t.rows[0].hash_ids[2] == 48);
    CU_ASSERT(t.rows[1].n_hash_ids == 2 && t.rows[1].hash_ids[1] == 2353);
    trace_release(&t);
}

static void test_trace_csv(void) {
    trace t;
    CU_ASSERT_EQUAL(
        parse("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
              "5,ChatGPT,472,18,490,Conversation log\n45.0,GPT-4,1087,230,1317,API log\n"
              "118,ChatGPT,417,0,417,Conversation log\n",
              &t, NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    CU_ASSERT(is_near(t.rows[1].time_s, 40, 0) && t.rows[1].input_length == 1087);
    CU_ASSERT(t.rows[1].output_length == 230 && t.unanswered == 1);
    trace_release(&t);
    CU_ASSERT_EQUAL(parse("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                          "2023-11-16 18:17:03.9799600,4808,10\r\n"
                          "2023-11-16 18:17:04.0319600,3180,8\r\n",
                          &t, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    CU_ASSERT(is_near(t.rows[1].time_s, 0.052, 1e-6) && t.rows[0].output_length == 10);
    trace_release(&t);
    /* across a leap day, with the zone of the later traces */
    CU_ASSERT_EQUAL(parse("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-02-28 23:59:59.5+00:00,1,1\n2024-03-01T00:00:00+00:00,1,1\n",
                          &t, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    CU_ASSERT(is_near(t.rows[1].time_s, 86400.5, 1e-6));
    trace_release(&t);
}

static void test_trace_refused(void) {
    static const char *const bad[] = {
        "",
        "\n",
        "[]",
        "time,input\n1,2\n",
        "{\"time\":1}",
        "{\"time\":\"1\",\"input_length\":1,\"output_length\":1}",
        "{\"time\":1,\"input_length\":-1,\"output_length\":1}",
        "{\"time\":1,\"input_length\":1.5,\"output_length\":1}",
        "{\"time\":1,\"input_length\":99999999999,\"output_length\":1}",
        "{\"time\":1e300,\"input_length\":1,\"output_length\":1}",
        "{\"time\":1,\"input_length\":1,\"output_length\":0}",
        "{\"time\":1,\"input_length\":4,\"output_length\":1,\"prefix\":-2}",
        "{\"time\":1,\"input_length\":4,\"output_length\":1,\"prefix_length\":5}",
        "{\"timestamp\":1,\"input_length\":4,\"output_length\":1,\"hash_ids\":[\"a\"]}",
        "{\"time\":1,\"input_length\":1,\"output_length\":1}\n[1]\n",
        "Timestamp,Request tokens,Response tokens\nx,1,1\n",
        "Timestamp,Request tokens,Response tokens\n1,-1,1\n",
        "Timestamp,Request tokens,Response tokens\n1,1.5,1\n",
        "Timestamp,Request tokens\n1,1\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03,1,1\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17,1,1\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.,1,1\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03x,1,1\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        trace t;
        snap_err err = {0};
        CU_ASSERT_EQUAL(parse(bad[i], &t, &err), SNAP_E_INPUT);
        CU_ASSERT(err.text[0] != '\0');
        trace_release(&t);
    }
}

/* ---- prompts ---- */

static int64_t spaces(const char *text) {
    int64_t n = 0;
    for (; *text; text++)
        n += *text == ' ';
    return n;
}

static size_t common_prefix(const buf *a, const buf *b) {
    size_t n = 0;
    while (n < a->len && n < b->len && a->data[n] == b->data[n])
        n++;
    return n;
}

static void test_segments(void) {
    prompt_maker m;
    CU_ASSERT_EQUAL_FATAL(prompts_open(&m, NULL, NULL), SNAP_OK);
    static const int64_t lengths[] = {1, 7, 8, 9, 500, 70000, 200000};
    buf longest = {0};
    prompt_segment(&m, 42, 200000, &longest);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        buf text = {0}, other = {0};
        prompt_segment(&m, 42, lengths[i], &text);
        prompt_segment(&m, 43, lengths[i], &other);
        CU_ASSERT_EQUAL(spaces(buf_str(&text)), lengths[i]);
        CU_ASSERT_EQUAL(common_prefix(&text, &longest), text.len); /* the longer one begins so */
        CU_ASSERT(lengths[i] < 8 || common_prefix(&text, &other) < 60);
        buf_release(&text);
        buf_release(&other);
    }
    buf_release(&longest);
    const int64_t words[2] = {16, 272}, tokens[2] = {30, 350}, less[2] = {30, 20};
    CU_ASSERT(prompt_fit(&m, words, tokens)); /* 10 + 1.25 tokens per word */
    CU_ASSERT(is_near(m.around, 10, 1e-9) && is_near(m.tokens_per_word, 1.25, 1e-9));
    CU_ASSERT(prompt_words(&m, 1010) == 800 && prompt_words(&m, 1) == 1);
    CU_ASSERT(!prompt_fit(&m, words, less));
    prompts_release(&m);
}

/* With a tokenizer whose vocabulary has words, the number of tokens is exact. */
static void test_exact_length(void) {
    prompt_maker m;
    tokenizer *t = NULL;
    tok_encoder *e = NULL;
    CU_ASSERT_EQUAL_FATAL(prompts_open(&m, "models/snapmla-10m", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&t, "models/snapmla-10m", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&e, t, NULL), SNAP_OK);
    CU_ASSERT(m.one_token && is_near(m.tokens_per_word, 1, 0));
    for (int64_t tokens = 10; tokens < 20000; tokens = tokens * 3 + 1) {
        buf text = {0};
        tok_ids ids = {0};
        prompt_begin(&text);
        int64_t words = prompt_words(&m, tokens);
        prompt_segment(&m, 1, words / 3, &text);
        prompt_segment(&m, (uint64_t)tokens, words - words / 3, &text);
        CU_ASSERT_EQUAL(tok_encode(e, buf_str(&text), text.len, TOK_SPECIALS, &ids, NULL), SNAP_OK);
        CU_ASSERT_EQUAL((int64_t)ids.n, tokens);
        tok_ids_release(&ids);
        buf_release(&text);
    }
    tok_encoder_free(e);
    tokenizer_free(t);
    prompts_release(&m);
}

/* The work of two requests that share a prefix, and of blocks. */
static void test_work(void) {
    prompt_maker m;
    arena mem = {0};
    CU_ASSERT_EQUAL_FATAL(prompts_open(&m, NULL, NULL), SNAP_OK);
    serving_work w = {
        .seed = 5, .turns = 1, .prefix_share = 0.5, .prefixes = 1, .maker = &m, .has_output = true};
    CU_ASSERT_EQUAL(draw_parse("", "401", 1, 1e6, &mem, &w.input, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(draw_parse("", "uniform:1-900", 1, 1e6, &mem, &w.output, NULL), SNAP_OK);
    work_block b = work_block_make(&w, 0, 0, 0), again = work_block_make(&w, 0, 0, 0),
               next = work_block_make(&w, 0, 1, 0);
    buf x = {0}, y = {0}, same = {0}, z = {0};
    work_text(&b, 3, &x);
    work_text(&again, 3, &same);
    work_text(&b, 4, &y);
    work_text(&next, 3, &z);
    CU_ASSERT_EQUAL(spaces(buf_str(&x)), 400); /* 401 tokens are wanted, of which "Text" is one */
    CU_ASSERT_STRING_EQUAL(buf_str(&x), buf_str(&same));
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&x), buf_str(&z));
    size_t shared = common_prefix(&x, &y);
    CU_ASSERT(shared > 0);
    x.data[shared] = '\0';
    CU_ASSERT(is_near((double)spaces(buf_str(&x)), 201, 2)); /* half of the words are shared, and
                                                                the next few may agree by chance */
    CU_ASSERT_EQUAL(work_output(&b, 3), work_output(&again, 3));
    CU_ASSERT_NOT_EQUAL(work_output(&b, 3), work_output(&next, 3));
    buf_release(&x);
    buf_release(&y);
    buf_release(&z);
    buf_release(&same);
    prompts_release(&m);
    arena_release(&mem);
}

/* With one prefix for each of N users, any N consecutive conversations have different prefixes. Two
 * blocks have the same prefixes. */
static void test_prefix_of_each_user(void) {
    enum { USERS = 5, TURNS = 2, CONVERSATIONS = 13 };
    prompt_maker m;
    arena mem = {0};
    CU_ASSERT_EQUAL_FATAL(prompts_open(&m, NULL, NULL), SNAP_OK);
    serving_work w = {.seed = 5, .turns = TURNS, .prefix_share = 1, .maker = &m};
    CU_ASSERT_EQUAL(draw_parse("", "60", 1, 1e6, &mem, &w.input, NULL), SNAP_OK);
    work_block first = work_block_make(&w, 0, 0, USERS), later = work_block_make(&w, 3, 1, USERS);
    buf text[CONVERSATIONS] = {{0}}, other = {0};
    for (int i = 0; i < CONVERSATIONS; i++) {
        work_text(&first, i * TURNS, &text[i]);
        buf_clear(&other);
        work_text(&later, i * TURNS, &other);
        CU_ASSERT_STRING_EQUAL(buf_str(&text[i]), buf_str(&other));
        for (int k = 0; k < i; k++)
            CU_ASSERT_EQUAL(strcmp(buf_str(&text[i]), buf_str(&text[k])) == 0,
                            (i - k) % USERS == 0);
    }
    for (int i = 0; i < CONVERSATIONS; i++)
        buf_release(&text[i]);
    buf_release(&other);
    prompts_release(&m);
    arena_release(&mem);
}

/* A block has all problems of a task in their order, and the blocks of a point begin at different
 * ones: with 100 problems, four blocks of 14 requests have no problem in common. */
static void test_problems_of_blocks(void) {
    static task_problem problems[100];
    task_set task = {.problems = problems, .n = 100};
    serving_work w = {.seed = 5, .turns = 1, .prefixes = 1, .task = &task};
    int used[100] = {0};
    for (int block = 0; block < 4; block++) {
        work_block b = work_block_make(&w, 1, block, 0);
        int64_t first = work_problem(&b, 0) - problems;
        for (int64_t i = 0; i < 250; i++)
            CU_ASSERT_EQUAL(work_problem(&b, i) - problems, (first + i) % 100);
        for (int64_t i = 0; i < 14; i++)
            CU_ASSERT_EQUAL(used[(first + i) % 100]++, 0);
    }
    work_block warm = work_block_make(&w, 0, -1, 0);
    CU_ASSERT(work_problem(&warm, 0) - problems == 38);
}

CU_TestInfo tests_serving_parts[] = {
    {"blocks begin at different problems", test_problems_of_blocks},
    {"prefix of each user", test_prefix_of_each_user},
    {"arrivals against renewal theory", test_arrivals},
    {"arrivals of a rising rate", test_ramp},
    {"arrivals repeat", test_arrivals_repeat},
    {"lists of loads are read", test_load_points},
    {"drawn numbers", test_draw},
    {"drawn numbers refused", test_draw_refused},
    {"drawn numbers of a file", test_draw_file},
    {"trace of our own form", test_trace_own},
    {"trace of Mooncake", test_trace_mooncake},
    {"traces of BurstGPT and Azure", test_trace_csv},
    {"traces refused", test_trace_refused},
    {"segments of prompts have the asked length", test_segments},
    {"prompts of exact length", test_exact_length},
    {"work of a block", test_work},
    CU_TEST_INFO_NULL,
};
