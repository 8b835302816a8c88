/* Tests that a failed allocation never becomes a verdict. Each of the first allocations of a case
 * fails in turn, and so do some of the later ones.
 *
 * Each failure occurs in a process of its own, because a pattern is compiled at its first use only
 * (test_filter() needs no pattern and fails allocations in this process).
 * This suite must run before others have used the patterns, so its file is the first by name. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/test/failing_alloc.h"
#include "base/test/sanitized.h"
#include "evals/arena.h"
#include "evals/code/compare.h"
#include "evals/code/seccomp.h"
#include "evals/code/tests.h"
#include "evals/ifeval/punkt.h"
#include "evals/sample_index.h"
#include "evals/task.h"

enum { kText = 700 };

/* One pass over the allocations of a case. Each of the first `each` allocations fails in turn.
 * After that, the next one to fail after allocation n is n + n / 8. */
typedef struct {
    size_t each;
    bool all;      /* all later allocations fail, too */
    bool compiled; /* this process has compiled the case's patterns before */
} pass;
/* A process that must compile the patterns takes 100 times as long as one that has compiled them
 * before. So the pass of such processes has fewer allocations that fail. */
static const pass kPasses[] = {{40, false, false}, {250, false, true}, {250, true, true}};

/* The result of a case, in memory that both processes share. */
typedef struct {
    snap_status st;
    snap_err err;
    char text[kText]; /* everything that the operation has found out */
    size_t allocations;
} outcome;

typedef void (*operation)(const void *what, outcome *out);

/* Runs an operation in a new process in which the n-th allocation fails (0: none), and with @all
 * each later one. False if the process crashed. */
static bool run_in_process(operation run, const void *what, size_t n, bool all, outcome *out) {
    int status;
    memset(out, 0, sizeof *out);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        failing_alloc_arm(n, all);
        run(what, out);
        out->allocations = failing_alloc_disarm();
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static bool is_clear(const outcome *o) {
    return o->st != SNAP_OK && o->err.code == o->st && strstr(o->err.text, "memory");
}

/* Runs one pass. @want: the outcome without a failure. */
static void fail_in_pass(const char *name, operation run, const void *what, const pass *p,
                         const outcome *want, outcome *shared) {
    for (size_t n = 1; n <= want->allocations; n += n < p->each ? 1 : n / 8) {
        bool ended = run_in_process(run, what, n, p->all, shared);
        bool same = ended && shared->st == SNAP_OK && strcmp(shared->text, want->text) == 0;
        bool ok = same || (ended && is_clear(shared));
        if (!ok)
            printf("\n    %s, allocation %zu%s: %s, status %d, '%s'\n      %s\n      not %s\n",
                   name, n, p->all ? " and all later ones" : "", ended ? "ended" : "CRASHED",
                   (int)shared->st, shared->err.text, shared->text, want->text);
        CU_ASSERT(ok);
    }
}

/* Fails allocations of a case in each of the passes. */
static void fail_each(const char *name, operation run, const void *what) {
    outcome *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_NOT_EQUAL_FATAL(shared, MAP_FAILED);
    for (size_t i = 0; i < sizeof kPasses / sizeof *kPasses; i++) {
        if (kPasses[i].compiled) {
            memset(shared, 0, sizeof *shared);
            run(what, shared);
        }
        bool ran = run_in_process(run, what, 0, false, shared);
        const outcome want = *shared;
        if (!ran || want.st != SNAP_OK)
            printf("\n    %s: %s\n", name, ran ? want.err.text : "crashed without a failure");
        CU_ASSERT(ran && want.st == SNAP_OK);
        if (ran)
            fail_in_pass(name, run, what, &kPasses[i], &want, shared);
    }
    (void)munmap(shared, sizeof *shared);
}

/* ---- answers ---- */

typedef struct {
    const char *name;
    const grader *grader;
    const char *gold, *response;
} answer;

static void grade(const void *what, outcome *out) {
    const answer *a = what;
    grade_result r;
    out->st = grade_check_gold(a->grader, a->gold, &out->err);
    if (out->st == SNAP_OK)
        out->st = grade_response(a->grader, a->gold,
                                 (grade_input){.response = {a->response, strlen(a->response)}}, &r,
                                 &out->err);
    if (out->st == SNAP_OK)
        (void)snprintf(out->text, kText, "%s '%s' by %s: %s; %g %g %g",
                       grade_verdict_name(r.verdict), r.extracted, r.rule ? r.rule : "none",
                       r.reason, r.also[0].value, r.also[1].value, r.also[2].value);
}

#define IFEVAL(id, kwargs) "{\"instruction_id_list\": [\"" id "\"], \"kwargs\": [" kwargs "]}"
#define GRID                                                                                       \
    "{\"header\": [\"House\", \"Name\"], "                                                         \
    "\"rows\": [[\"1\", \"Ann\"], [\"2\", \"Bob\"]]}"

static const answer answers[] = {
    {"integer in a box", &grader_aime, "204", "We find $\\boxed{204}$."},
    {"two boxes", &grader_aime, "204", "$\\boxed{204}$ and $\\boxed{205}$"},
    {"stated integer", &grader_aime, "204", "The final answer is **204**. I hope this helps."},
    {"last number", &grader_aime, "204", "So $x = 3$ and we get 204"},
    {"gsm8k", &grader_gsm8k, "2 + 16\n#### 18", "She pays $18.\n#### 18"},
    {"root", &grader_math_field, "\\frac{\\sqrt{2}}{2}", "Thus $\\boxed{\\frac{1}{\\sqrt2}}$."},
    {"sine", &grader_math_field, "\\sin(\\frac{\\pi}{5}) + e^{2}", "\\boxed{e^2+\\sin(\\pi/5)}"},
    {"list", &grader_math_strict, "1,\\sqrt3", "\\boxed{1} and \\boxed{\\sqrt{3}}"},
    {"stated formula", &grader_math_field, "x^2+1", "The answer is $x^2 + 1$, as was to be shown."},
    {"guessed formula", &grader_math_field, "\\ln 7", "This gives \\[ \\ln 7 \\] at the end"},
    {"typed root", &grader_math_truth, "2\\sqrt3", "The answer is 2\u221a3, not 3."},
    {"letter", &grader_letter, "C", "Therefore the correct option is **(C)**."},
    {"letter in bold", &grader_letter, "C", "Hm. **C** it is\n\nindeed"},
    {"ten letters", &grader_ten_letters, "H", "The answer is (H)."},
    {"letter in a field", &grader_letter_field, "B", "{\"reasoning\": \"...\", \"answer\": \"B\"}"},
    {"grid", &grader_zebra, GRID,
     "Well, {no}: {\"solution\": {\"House 1\": {\"Name\": \"Ann\"}, \"House 2\": {\"Name\": "
     "\"Eve\"}}}"},
    {"keywords", &grader_ifeval_plain,
     IFEVAL("keywords:existence", "{\"keywords\": [\"rain\", \"s[ou]n\"]}"), "Rain and sun."},
    {"forbidden words", &grader_ifeval_plain,
     IFEVAL("keywords:forbidden_words", "{\"forbidden_words\": [\"rain\"]}"), "Rain and *sun*."},
    {"sentences", &grader_ifeval_plain,
     IFEVAL("length_constraints:number_sentences",
            "{\"num_sentences\": 3, \"relation\": \"at least\"}"),
     "This is Mr. Jones. He came at 3 p.m. from the U.S. \"Why?\" she asked."},
    {"capital words", &grader_ifeval_plain,
     IFEVAL("change_case:capital_word_frequency",
            "{\"capital_frequency\": 2, \"capital_relation\": \"at least\"}"),
     "NASA can't say what the USA wants. \"GO,\" they said."},
    {"paragraphs", &grader_ifeval_plain,
     IFEVAL("length_constraints:nth_paragraph_first_word",
            "{\"num_paragraphs\": 2, \"nth_paragraph\": 2, \"first_word\": \"then\"}"),
     "First.\n\nThen second."},
    {"format", &grader_ifeval_plain,
     "{\"instruction_id_list\": [\"detectable_format:title\", "
     "\"detectable_format:number_highlighted_sections\", \"startend:end_checker\", "
     "\"detectable_content:postscript\", \"detectable_format:number_bullet_lists\"], \"kwargs\": "
     "[{}, {\"num_highlights\": 1}, {\"end_phrase\": \"the end\"}, {\"postscript_marker\": "
     "\"P.S.\"}, {\"num_bullets\": 2}]}",
     "<<Title>>\n* one\n* two *three*\nP.S. this is The end"},
    {"small letters", &grader_ifeval_plain, IFEVAL("change_case:english_lowercase", "{}"),
     "this is a text in the english language, and it has no capitals."},
    {"language", &grader_ifeval, IFEVAL("language:response_language", "{\"language\": \"de\"}"),
     "Das ist ein deutscher Satz, und er ist nicht besonders lang."},
};

static void test_answers(void) {
    if (!failing_alloc_works())
        return;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        fail_each(answers[i].name, grade, &answers[i]);
}

/* ---- limits of the regular expressions ---- */

/* A pattern of a data file that needs exponential time does not make an answer wrong. */
static void test_match_limit(void) {
    static const char gold[] = IFEVAL("keywords:existence", "{\"keywords\": [\"(a+)+[bd]\"]}");
    const char *text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    const grade_input in = {.response = {text, strlen(text)}};
    grade_result r;
    snap_err err = {0};
    CU_ASSERT_EQUAL(grade_check_gold(&grader_ifeval_plain, gold, &err), SNAP_OK);
    CU_ASSERT_EQUAL(grade_response(&grader_ifeval_plain, gold, in, &r, &err), SNAP_E_NOMEM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "(a+)+[bd]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "match limit"));
    fault_forget();
}

/* No answer reaches a limit of the program's own patterns. Each answer repeats one piece until it
 * has 64 or 256 KiB. Under a sanitizer, the answers are a quarter as long: they take the same
 * paths, and the ordinary build tests the limits. */
static void test_hostile_answers(void) {
    static const char *const pieces[] = {"a",
                                         "A ",
                                         "(",
                                         "[",
                                         "{",
                                         "\"",
                                         "'",
                                         "*",
                                         "**",
                                         "_",
                                         "$",
                                         "\\",
                                         " ",
                                         "\n",
                                         "\t\n",
                                         ",",
                                         ".",
                                         "-",
                                         "1,",
                                         "...",
                                         "``",
                                         "<<",
                                         ">>",
                                         "- a\n",
                                         "* a\n",
                                         "answer is ",
                                         "final answer: ",
                                         "option ",
                                         "(A) ",
                                         "**A** ",
                                         "\"answer\": \"",
                                         "\\text{",
                                         "\\boxed{1}, ",
                                         "can not ",
                                         "'t is ",
                                         "don't ",
                                         "Mr. ",
                                         "U.S. ",
                                         "A.B",
                                         "x? ",
                                         "[a]",
                                         "*a*",
                                         "P.S. ",
                                         "\xc3\xa9",
                                         "\xe2\x80\x9c",
                                         "\xff"};
    enum { kBytes = kSanitized ? 1 << 18 : 1 << 20 };
    static char text[kBytes];
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        for (size_t i = 0; i < kBytes; i++)
            text[i] = pieces[p][i % strlen(pieces[p])];
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
            const grade_input in = {.response = {text, i % 2 ? kBytes / 16 : kBytes / 4}};
            grade_result r;
            snap_err err = {0};
            snap_status st = grade_response(answers[i].grader, answers[i].gold, in, &r, &err);
            if (st != SNAP_OK)
                printf("\n    '%s' and %s: %s\n", pieces[p], answers[i].name, err.text);
            CU_ASSERT_EQUAL(st, SNAP_OK);
        }
    }
}

/* ---- judges of games, programs and values ---- */

static void set_games(const void *what, outcome *out) {
    static const arena_game games[ARENA_GAMES] = {{.judgment = "My final verdict is: [[B>>A]]"},
                                                  {.judgment = "Tie: [A=B]"}};
    js *row = js_new_object();
    buf text = {0};
    (void)what;
    out->st =
        row ? arena_set_games(row, &grader_arena, "judge", (span){"reference", 9}, games, &out->err)
            : err_set(&out->err, SNAP_E_NOMEM, "out of memory");
    if (out->st == SNAP_OK)
        out->st = js_write(row, JS_COMPACT, &text, &out->err);
    (void)snprintf(out->text, kText, "%s", buf_str(&text));
    buf_release(&text);
    js_free(row);
}

static const char *const values[][2] = {
    {"[1, {\"k\": \"v\\u00e9\", \"a\": 2.5}, (true)]",
     "[1.0, {\"a\": 2.5, \"k\": \"v\xc3\xa9\"}, (1)]"},
    {"{\"a\": [[1, 2], [3]]}", "{\"a\": [[1, 2], [4]]}"},
};

static void compare(const void *what, outcome *out) {
    const char *const *v = what;
    fault_mark before = fault_begin();
    value_verdict verdict = compare_value((span){v[0], strlen(v[0])}, (span){v[1], strlen(v[1])});
    out->st = fault_result(before, SNAP_OK, &out->err);
    (void)snprintf(out->text, kText, "%d", (int)verdict);
}

/* The private tests are base64 of zlib of a pickle, as LiveCodeBench publishes them. */
static const char kTests[] =
    "{\"public_test_cases\": \"[{\\\"input\\\": \\\"1\\\", \\\"output\\\": \\\"2\\\", "
    "\\\"testtype\\\": \\\"stdin\\\"}]\", \"metadata\": \"{}\", \"private_test_cases\": "
    "\"eJxrYJlqwQABPSbR1UqZeQWlJUpWCkrGSjoKSvmlJVCuCYhbklpcUlJZkAoSKC5JycxTqo2dogcAOpMS"
    "rg=="
    "\"}";

static void read_tests(const void *what, outcome *out) {
    code_tests t = {0};
    (void)what;
    js *row = js_parse(kTests, strlen(kTests), "row", &out->err);
    out->st = row ? tests_read(row, &t, "row", &out->err) : out->err.code;
    if (out->st != SNAP_OK)
        out->st = out->err.code; /* the error that was recorded first has the cause */
    (void)snprintf(out->text, kText, "%zu", t.n);
    tests_release(&t);
    js_free(row);
}

static void test_judges(void) {
    if (!failing_alloc_works())
        return;
    fail_each("games", set_games, NULL);
    fail_each("tests", read_tests, NULL);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        fail_each("values", compare, values[i]);
}

/* ---- data files ---- */

typedef struct {
    const char *task;
    const char *rows;
} data_file;

static const data_file files[] = {
    {"aime24", "{\"id\": 60, \"problem\": \"2+2?\", \"answer\": \"4\"}\n"
               "{\"id\": 61, \"problem\": \"2+3?\", \"answer\": 5}\n"},
    {"math500", "{\"unique_id\": \"a\", \"problem\": \"Half?\", \"answer\": \"\\\\frac12\"}\n"},
    {"mmlu_pro",
     "{\"question_id\": 1, \"question\": \"Which?\", \"options\": [\"a\", \"b\", \"N/A\"], "
     "\"answer\": \"B\", \"category\": \"law\"}\n"},
    {"gsm8k", "{\"question\": \"2+16?\", \"answer\": \"It is\\n#### 18\"}\n"},
    {"ifeval", "{\"key\": 1, \"prompt\": \"Write.\", \"instruction_id_list\": "
               "[\"keywords:existence\"], \"kwargs\": [{\"keywords\": [\"a+\"], \"n\": null}]}\n"},
    {"mbpp", "{\"task_id\": 11, \"text\": \"Add.\", \"test_list\": [\"assert f(1) == 1\"], "
             "\"code\": \"def f(x): return x\"}\n"},
    {"humaneval", "{\"task_id\": \"HumanEval/0\", \"prompt\": \"def f(x):\\n\", \"entry_point\": "
                  "\"f\", \"test\": \"def check(f):\\n    assert f(1) == 1\\n\"}\n"},
};

static char file_path[80];

static void load(const void *what, outcome *out) {
    const data_file *f = what;
    task_set set = {0};
    const task_spec *t = NULL;
    out->st = task_find(f->task, &t, &out->err);
    if (out->st == SNAP_OK)
        out->st = task_load(t, file_path, 0, NULL, &set, &out->err);
    if (out->st == SNAP_OK)
        (void)snprintf(out->text, kText, "%zu %s %s %s", set.n, set.prompt_sha256, set.sha256,
                       set.problems[0].gold);
    task_set_release(&set);
}

static void test_data_files(void) {
    snap_err err = {0};
    if (!failing_alloc_works())
        return;
    (void)snprintf(file_path, sizeof file_path, "/tmp/snapmla-alloc-%ld.jsonl", (long)getpid());
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CU_ASSERT_EQUAL(fs_write_atomic(file_path, files[i].rows, strlen(files[i].rows), &err),
                        SNAP_OK);
        fail_each(files[i].task, load, &files[i]);
    }
    (void)unlink(file_path);
}

/* ---- parameters of sentences ---- */

static void split(const void *what, outcome *out) {
    static const char text[] = "Mr. Green came at 5 a.m. The mill... Bright. South. St. J. Ilex.";
    punkt_params *p;
    fault_mark before = fault_begin();
    out->st = punkt_open(&p, what, &out->err);
    if (out->st == SNAP_OK)
        (void)snprintf(out->text, kText, "%zu", punkt_count(p, (span){text, sizeof text - 1}));
    out->st = fault_result(before, out->st, &out->err);
    punkt_close(p);
}

static void test_sentences(void) {
    if (failing_alloc_works())
        fail_each("sentences", split, "evals/test/fixtures/punkt");
}

/* ---- stored samples ---- */

static void index_samples(const void *what, outcome *out) {
    sample_index x;
    (void)what;
    out->st = sample_index_open(&x, file_path, &out->err);
    if (out->st == SNAP_OK)
        (void)snprintf(out->text, kText, "%zu %d %d %s %s", x.n_questions, x.n_tasks, x.n_arms,
                       x.tasks[0], x.questions[0].rows[0].problem);
    sample_index_close(&x);
}

static void test_sample_rows(void) {
    snap_err err = {0};
    buf rows = {0};
    if (!failing_alloc_works())
        return;
    for (int i = 0; i < 300; i++) /* more than the first allocations of the index hold */
        (void)buf_printf(&rows,
                         "{\"task\":\"t%d\",\"arm\":\"a%d\",\"problem\":\"p%d\",\"sample\":0}\n",
                         i % 3, i % 2, i);
    (void)snprintf(file_path, sizeof file_path, "/tmp/snapmla-alloc-%ld.jsonl", (long)getpid());
    CU_ASSERT_EQUAL(fs_write_atomic(file_path, buf_str(&rows), rows.len, &err), SNAP_OK);
    fail_each("samples", index_samples, NULL);
    (void)unlink(file_path);
    buf_release(&rows);
}

/* ---- the sandbox ---- */

/* Allocations of libseccomp also fail, in the process that makes the filter. */
static void test_filter(void) {
    enum { kFilter = 1500 };
    buf want = {0};
    snap_err err = {0};
    size_t clear = 0;
    if (!failing_alloc_works())
        return;
    CU_ASSERT_EQUAL_FATAL(seccomp_filter(&want, &err), SNAP_OK);
    for (size_t n = 1; n <= kFilter; n += 1 + n / 100) {
        buf got = {0};
        err = (snap_err){0};
        failing_alloc_arm(n, false);
        snap_status st = seccomp_filter(&got, &err);
        (void)failing_alloc_disarm();
        bool same =
            st == SNAP_OK && got.len == want.len && memcmp(got.data, want.data, got.len) == 0;
        bool told = st == SNAP_E_NOMEM && strstr(err.text, "memory");
        if (!same && !told)
            printf("\n    filter, allocation %zu: status %d, '%s'\n", n, (int)st, err.text);
        CU_ASSERT(same || told);
        clear += told;
        buf_release(&got);
    }
    CU_ASSERT(clear > 0);
    fault_forget();
    buf_release(&want);
}

CU_TestInfo tests_alloc[] = {{"grading answers", test_answers},
                             {"games, values and tests of programs", test_judges},
                             {"reading data files", test_data_files},
                             {"reading Punkt's parameters", test_sentences},
                             {"reading rows of samples", test_sample_rows},
                             {"the system call filter", test_filter},
                             {"a pattern that needs too many steps", test_match_limit},
                             {"hostile answers and the limits of patterns", test_hostile_answers},
                             CU_TEST_INFO_NULL};
