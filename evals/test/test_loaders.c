/* Tests reading the files of MATH-500, GSM8K, HMMT and GPQA: their layouts, the wording of prompts,
 * and the messages for malformed files. All items are invented. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/test/temp_folder.h"
#include "base/test/zip_maker.h"
#include "evals/task.h"
#include "evals/test/task_of.h"

static const char kPublished[] = "deserted-untie-orchid";
static char folder[TEMP_FOLDER];

static void folder_open(void) {
    temp_folder_open(folder, "loader");
}

static void folder_close(void) {
    temp_folder_remove(folder);
}

/* Writes folder/sub/name, sub "" for none. */
static void put(const char *sub, const char *name, const char *bytes, size_t n) {
    temp_folder_put(folder, sub, name, bytes, n);
}

static snap_status load(const task_spec *t, const task_options *o, task_set *set, snap_err *err) {
    return task_load(t, folder, 0, o, set, err);
}

/* Loads a set from the folder; the caller releases it. */
static task_set loaded(const task_spec *t, const task_options *o) {
    task_set set;
    snap_err err = {0};
    if (load(t, o, &set, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    return set;
}

static void expect(const task_spec *t, const task_options *o, snap_status status,
                   const char *message) {
    task_set set;
    snap_err err = {0};
    CU_ASSERT_EQUAL(load(t, o, &set, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    CU_ASSERT_PTR_NULL(strstr(err.text, "secret")); /* the word stands for confidential content in
                                                       these tests */
    task_set_release(&set);
}

static const char *prompt(const task_set *set, size_t i) {
    return set->problems[i].messages[0].content;
}

typedef struct {
    const char *text, *message;
} bad_file;

static void expect_all(const task_spec *t, const char *sub, const char *name, const bad_file *cases,
                       size_t n) {
    for (size_t i = 0; i < n; i++) {
        put(sub, name, cases[i].text, strlen(cases[i].text));
        expect(t, NULL, SNAP_E_INPUT, cases[i].message);
    }
}

/* ---- MATH-500 ---- */

static void test_math500(void) {
    static const char rows[] =
        "{\"problem\": \"Half of one?\", \"solution\": \"Halve.\", \"answer\": \"\\\\frac{1}{2}\", "
        "\"subject\": \"Algebra\", \"level\": 1, \"unique_id\": \"test/algebra/1.json\"}\n"
        "{\"problem\": \"Three?\", \"answer\": 3}\n";
    folder_open();
    put("math_500", "test.jsonl", rows, strlen(rows));
    task_set set = loaded(task_of("math500"), NULL);
    CU_ASSERT(set.n == 2 && set.grader == &grader_math_truth && task_of("math500")->samples == 1);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "test/algebra/1.json");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "\\frac{1}{2}");
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0),
                           "Half of one?\nPlease reason step by step, and put your final answer "
                           "within \\boxed{}.");
    CU_ASSERT_STRING_EQUAL(set.problems[1].gold, "3");
    task_set_release(&set);
    set = loaded(task_of("math500"), &(task_options){.policy = MATH_FIELD});
    CU_ASSERT_PTR_EQUAL(set.grader, &grader_math_field);
    task_set_release(&set);
    set = loaded(task_of("math500"), &(task_options){.policy = MATH_STRICT});
    CU_ASSERT_PTR_EQUAL(set.grader, &grader_math_strict);
    task_set_release(&set);
    static const bad_file cases[] = {
        {"{\"problem\": \"a\"}\n", "test.jsonl:1: needs a text or number 'answer'"},
        {"{\"problem\": \"a\", \"answer\": \" \"}\n", ":1: needs a text or number 'answer'"},
        {"{\"problem\": \"a\", \"answer\": \"1\"}\n{\"answer\": \"1\"}\n", ":2: needs a text"},
    };
    expect_all(task_of("math500"), "math_500", "test.jsonl", cases, sizeof cases / sizeof *cases);
    folder_close();
}

/* ---- GSM8K ---- */

static void test_gsm8k(void) {
    static const char rows[] =
        "{\"question\": \"Eggs?\", \"answer\": \"3 + 4 = <<3+4=7>>7 eggs\\n#### 7\"}\n"
        "{\"question\": \"Coins?\", \"answer\": \"many\\n#### 1,250\"}\n";
    folder_open();
    put("gsm8k", "test.jsonl", rows, strlen(rows));
    task_set set = loaded(task_of("gsm8k"), NULL);
    static const struct {
        const char *answer;
        grade_verdict verdict;
    } answers[] = {{"1250", GRADE_CORRECT},       {"1,250", GRADE_CORRECT},
                   {"$1250.00", GRADE_CORRECT},   {"1250 coins", GRADE_CORRECT},
                   {"#### 1,250", GRADE_CORRECT}, {"1251", GRADE_WRONG},
                   {"1250.5", GRADE_WRONG},       {"", GRADE_UNPARSED}};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        grade_input in = {.response = {answers[i].answer, strlen(answers[i].answer)},
                          .extracted = true};
        CU_ASSERT_EQUAL(set.grader->grade(set.problems[1].gold, in).verdict, answers[i].verdict);
    }
    static const char *const responses[] = {"so\n#### 7", "so \\boxed{7}", "The answer is 7.",
                                            "#### 8\nno:\n#### 7\n"};
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++) {
        grade_input in = {.response = {responses[i], strlen(responses[i])}};
        CU_ASSERT_EQUAL(set.grader->grade(set.problems[0].gold, in).verdict, GRADE_CORRECT);
    }
    task_set_release(&set);
    static const bad_file cases[] = {
        {"{\"question\": \"a\", \"answer\": \"#### seven\"}\n",
         ":1: the gold answer must be an int"},
        {"{\"question\": \"a\", \"answer\": \"7 ####\"}\n", ":1: the gold answer must be an int"},
    };
    expect_all(task_of("gsm8k"), "gsm8k", "test.jsonl", cases, sizeof cases / sizeof *cases);
    folder_close();
}

/* ---- HMMT ---- */

static void put_text(const char *sub, const char *name, const char *text) {
    put(sub, name, text, strlen(text));
}

static void test_hmmt(void) {
    folder_open();
    put_text("hmmt_feb_2025", "answers.csv", "id,answer\n1,103\n2,\"\\frac{1}{2}, 3\"\n");
    put_text("hmmt_feb_2025/problems", "1.tex", "One,\nhow many?\n");
    put_text("hmmt_feb_2025/problems", "2.tex", "Two?");
    task_set set = loaded(task_of("hmmt_feb25"), NULL);
    CU_ASSERT(set.n == 2 && set.rows == 2 && task_of("hmmt_feb25")->samples == 32);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0),
                           "Put your final answer within \\boxed{}.\n\nOne,\nhow many?");
    CU_ASSERT_STRING_EQUAL(set.problems[1].id, "2");
    CU_ASSERT_STRING_EQUAL(set.problems[1].gold, "\\frac{1}{2}, 3");
    char whole[HASH_HEX];
    memcpy(whole, set.sha256, sizeof whole);
    task_set_release(&set);
    CU_ASSERT_EQUAL_FATAL(task_load(task_of("hmmt_feb25"), folder, 1, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 1 && set.rows == 2);
    CU_ASSERT_STRING_EQUAL(set.sha256, whole);
    task_set_release(&set);
    put_text("hmmt_feb_2025/problems", "2.tex", "Two!");
    set = loaded(task_of("hmmt_feb25"), NULL);
    CU_ASSERT_STRING_NOT_EQUAL(set.sha256, whole);
    task_set_release(&set);
    folder_close();
}

static void test_hmmt_json_lines(void) {
    folder_open();
    put_text("", "hmmt_feb_2025.jsonl",
             "{\"problem_idx\": 1, \"problem\": \"One?\", \"answer\": \"2^{25}\", "
             "\"problem_type\": [\"x\"]}\n");
    task_set set = loaded(task_of("hmmt_feb25"), NULL);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "1");
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "Put your final answer within \\boxed{}.\n\nOne?");
    task_set_release(&set);
    folder_close();
}

/* Rows with a prompt of their own, or with a question, need no file. */
static void test_hmmt_without_files(void) {
    folder_open();
    put_text("", "hmmt_feb_2025.jsonl",
             "{\"problem_idx\": 1, \"prompt\": \"P\", \"answer\": \"1\"}\n"
             "{\"problem_idx\": 2, \"question\": \"Q\", \"answer\": 2}\n");
    task_set set = loaded(task_of("hmmt_feb25"), NULL);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "P");
    CU_ASSERT_STRING_EQUAL(prompt(&set, 1), "Put your final answer within \\boxed{}.\n\nQ");
    task_set_release(&set);
    folder_close();
}

static void test_hmmt_malformed(void) {
    static const bad_file cases[] = {
        {"id\n1\n", "answers.csv:2: needs a text or number 'answer'"},
        {"id,answer\n1,103\n1,104\n", "problem id '1' occurs twice"},
        {"id,answer\n../1,103\n", "answers.csv:2: 'problems/../1.tex' must be a relative path"},
        {"id,answer\n1,\n", ":2: needs a text or number 'answer'"},
        {"id,answer\n3,5\n", "problems/3.tex: the file must hold a text in UTF-8"},
        {"id,answer\n4,5\n", "problems/4.tex: the file must hold a text in UTF-8"},
        {"id,answer\n", "no problems"},
    };
    folder_open();
    put_text("hmmt_feb_2025/problems", "1.tex", "One?");
    put_text("hmmt_feb_2025/problems", "3.tex", " \n");
    put_text("hmmt_feb_2025/problems", "4.tex", "\xFF");
    expect_all(task_of("hmmt_feb25"), "hmmt_feb_2025", "answers.csv", cases,
               sizeof cases / sizeof *cases);
    put_text("hmmt_feb_2025", "answers.csv", "id,answer\n2,5\n");
    expect(task_of("hmmt_feb25"), NULL, SNAP_E_IO, "problems/2.tex'");
    folder_close();
}

/* ---- GPQA ---- */

enum { RECORDS = 400 };

/* Writes a table with the official columns, further columns, and newlines inside quotes. */
static void make_table(buf *out) {
    (void)buf_puts(out, "Canary String,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer "
                        "2,Incorrect Answer 3,Explanation,Record ID\n");
    for (int i = 0; i < RECORDS; i++)
        (void)buf_printf(out,
                         "c,\"secret %d,\nwhich \"\"one\"\"?\n\",\" right %d\n\",wrong1,wrong2,"
                         "wrong1,\"x, y\",rec%d\n",
                         i, i, i);
}

static void put_archive(const char *member, const char *text, size_t n, const char *password) {
    buf zip = {0};
    make_zip(&zip, member, text, n, password);
    put("gpqa_diamond", "dataset.zip", zip.data, zip.len);
    buf_release(&zip);
}

static void test_gpqa(void) {
    buf table = {0};
    folder_open();
    make_table(&table);
    put_archive("dataset/gpqa_diamond.csv", table.data, table.len, kPublished);
    task_set set = loaded(&task_gpqa_diamond, NULL);
    CU_ASSERT(set.n == RECORDS && task_gpqa_diamond.samples == 16 && !set.keep_prompts);
    int places[4] = {0};
    for (size_t i = 0; i < set.n; i++) {
        char right[40];
        (void)snprintf(right, sizeof right, "\n%s) right %zu", set.problems[i].gold, i);
        CU_ASSERT_PTR_NOT_NULL(strstr(prompt(&set, i), right));
        places[set.problems[i].gold[0] - 'A']++;
    }
    for (int i = 0; i < 4; i++) /* expected: 100, standard deviation 8.7 */
        CU_ASSERT(places[i] > 60 && places[i] < 140);
    CU_ASSERT_STRING_EQUAL(set.problems[7].id, "rec7");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(prompt(&set, 7), "where LETTER is one of ABCD. Think step by step before answering."
                                "\n\nsecret 7,\nwhich \"one\"?\n\nA) "));
    task_set_release(&set);
    buf_release(&table);
    folder_close();
}

/* All 24 orders occur, each about equally often, and a seed always gives the same order. */
static void test_gpqa_orders(void) {
    static const char *const options[] = {"alpha", "beta", "gamma", "delta"};
    int seen[256] = {0}, orders = 0;
    buf table = {0};
    (void)buf_puts(&table, "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,"
                           "Incorrect Answer 3,Record ID\n");
    for (int i = 0; i < RECORDS; i++)
        (void)buf_printf(&table, "q,alpha,beta,gamma,delta,rec%d\n", i);
    folder_open();
    put("", "gpqa_diamond.csv", table.data, table.len);
    for (uint64_t seed = 0; seed < 6; seed++) {
        task_options o = {.seed = seed};
        task_set set = loaded(&task_gpqa_diamond, &o), again = loaded(&task_gpqa_diamond, &o);
        CU_ASSERT_STRING_EQUAL(set.prompt_sha256, again.prompt_sha256);
        for (size_t i = 0; i < set.n; i++) {
            const char *list = strstr(prompt(&set, i), "\n\nA) ");
            CU_ASSERT_PTR_NOT_NULL_FATAL(list);
            int code = 0;
            for (int k = 0; k < 4; k++) {
                const char *at = strstr(list, options[k]);
                CU_ASSERT_PTR_NOT_NULL_FATAL(at);
                code = 4 * code + at[-3] - 'A';
            }
            CU_ASSERT_EQUAL(set.problems[i].gold[0] - 'A', code >> 6);
            seen[code]++;
        }
        task_set_release(&set);
        task_set_release(&again);
    }
    for (int i = 0; i < 256; i++) {
        orders += seen[i] > 0;
        if (seen[i]) /* expected: 100 of 2400 */
            CU_ASSERT(seen[i] > 60 && seen[i] < 140);
    }
    CU_ASSERT_EQUAL(orders, 24);
    buf_release(&table);
    folder_close();
}

static void test_gpqa_archives(void) {
    static const task_options wrong = {.gpqa_password = "guess"}, own = {.gpqa_password = "own"};
    buf table = {0};
    folder_open();
    make_table(&table);
    put_archive("dataset/gpqa_diamond.csv", table.data, table.len, kPublished);
    expect(&task_gpqa_diamond, &wrong, SNAP_E_INPUT, "password");
    put_archive("dataset/gpqa_main.csv", table.data, table.len, kPublished);
    expect(&task_gpqa_diamond, NULL, SNAP_E_INPUT, "dataset.zip: no member 'gpqa_diamond.csv'");
    put("gpqa_diamond", "dataset.zip", "PK\3\4 cut", 8);
    expect(&task_gpqa_diamond, NULL, SNAP_E_INPUT, "not a zip archive, or truncated");
    put_archive("gpqa_diamond.csv", table.data, table.len, "own");
    task_set set = loaded(&task_gpqa_diamond, &own);
    CU_ASSERT_EQUAL(set.n, RECORDS);
    task_set_release(&set);
    put_archive("gpqa_diamond.csv", table.data, table.len, NULL);
    set = loaded(&task_gpqa_diamond, &(task_options){.keep_text = true});
    CU_ASSERT_TRUE(set.keep_prompts);
    task_set_release(&set);
    buf_release(&table);
    folder_close();
}

/* Messages name the file, the line if one is at fault, and the reason. They may quote a record id,
 * but not a question or an answer. */
static void test_gpqa_malformed(void) {
#define HEADER                                                                                     \
    "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Record ID\n"
    static const bad_file cases[] = {
        {"Question,Record ID\nsecret,1\n", "gpqa_diamond.csv:1: no column 'Correct Answer'"},
        {HEADER "secret,a,b,c,d,1\nsecret,a,b,c,d,1\n", "problem id '1' occurs twice"},
        {HEADER "secret,a,b,c,d,1\nsecret,a,,c,d,2\n", ":3: 'Incorrect Answer 1' must be text"},
        {HEADER " ,a,b,c,d,1\n", ":2: 'Question' must be text"},
        {HEADER "secret \xFF,a,b,c,d,1\n", ":2: 'Question' must be text"},
        {HEADER "secret,a,b,c,d\n", ":2: 5 fields, the first row has 6"},
        {HEADER "\"secret\n\n,a,b,c,d,1\n", ":2: a quote is never closed"},
        {HEADER "secret \"quoted\",a,b,c,d,1\n", ":2: a quote inside an unquoted field"},
        {HEADER, "no problems"},
        {"", "no problems"},
    };
#undef HEADER
    folder_open();
    expect_all(&task_gpqa_diamond, "", "gpqa_diamond.csv", cases, sizeof cases / sizeof *cases);
    folder_close();
}

static void test_gpqa_json_lines(void) {
    folder_open();
    put_text("", "gpqa_diamond.jsonl",
             "{\"Record ID\": \"r\", \"Question\": \"q\", \"Correct Answer\": \"right\", "
             "\"Incorrect Answer 1\": \"a\", \"Incorrect Answer 2\": \"b\", "
             "\"Incorrect Answer 3\": \"c\"}\n");
    task_set set = loaded(&task_gpqa_diamond, NULL);
    char right[16];
    (void)snprintf(right, sizeof right, "%s) right", set.problems[0].gold);
    CU_ASSERT_PTR_NOT_NULL(strstr(prompt(&set, 0), right));
    task_set_release(&set);
    put_text("", "gpqa_diamond.jsonl", "{\"Record ID\": \"r\", \"Question\": \"secret\"}\n");
    expect(&task_gpqa_diamond, NULL, SNAP_E_INPUT, ":1: 'Correct Answer' must be text");
    folder_close();
}

/* Lines that break before, after and inside the secret. The JSON parser's own messages would quote
 * the text there. */
static void test_gpqa_broken_lines(void) {
    static const bad_file cases[] = {
        {"{\"Question\": secret}\n", ":1:"},
        {"{\"Question\": \"secret\" \"secret\"}\n", ":1:"},
        {"{\"Question\": \"secret\n", ":1:"},
        {"{\"Question\": \"\\secret\"}\n", ":1:"},
        {"{\"Question\": \"\\ud800secret\"}\n", ":1:"},
        {"{\"Question\": \"secret\xFF\"}\n", ":1:"},
        {"{\"secret\": 1, \"secret\": 2}\n", ":1:"},
        {"\"secret\"\n", ":1: a line must be an object"},
        {"{\"a\": 1} secret\n", ":1:"},
        {"secret\n", ":1:"},
        {"[\"secret\",\n", ":1:"},
    };
    folder_open();
    expect_all(&task_gpqa_diamond, "", "gpqa_diamond.jsonl", cases, sizeof cases / sizeof *cases);
    folder_close();
}

/* A server's message is kept unless it repeats a question that may not be stored. */
static void test_gpqa_messages(void) {
    static const char table[] =
        "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Record "
        "ID\nhow many secret strings has a zither?,a,b,c,d,r\n";
    static const char plain[] = "HTTP 400: prompt too long";
    static const char leak[] = "HTTP 400: bad 'how many secret strings has a zither?'";
    folder_open();
    put_text("", "gpqa_diamond.csv", table);
    task_set set = loaded(&task_gpqa_diamond, NULL);
    CU_ASSERT_PTR_EQUAL(task_public_message(&set, &set.problems[0], plain), plain);
    CU_ASSERT_STRING_EQUAL(task_public_message(&set, &set.problems[0], leak),
                           "(a message that repeats the question; not stored)");
    CU_ASSERT_PTR_NULL(task_public_message(&set, &set.problems[0], NULL));
    task_set_release(&set);
    set = loaded(&task_gpqa_diamond, &(task_options){.keep_text = true});
    CU_ASSERT_PTR_EQUAL(task_public_message(&set, &set.problems[0], leak), leak);
    task_set_release(&set);
    folder_close();
}

static void test_policies(void) {
    math_policy p;
    snap_err err = {0};
    CU_ASSERT(task_policy_parse(NULL, &p, NULL) == SNAP_OK && p == MATH_TRUTH);
    CU_ASSERT(task_policy_parse("field", &p, NULL) == SNAP_OK && p == MATH_FIELD);
    CU_ASSERT(task_policy_parse("truth", &p, NULL) == SNAP_OK && p == MATH_TRUTH);
    CU_ASSERT(task_policy_parse("strict", &p, NULL) == SNAP_OK && p == MATH_STRICT);
    CU_ASSERT_EQUAL(task_policy_parse("lax", &p, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "unknown --math-policy 'lax' (truth, field, strict)");
    for (const task_spec *const *t = task_table; *t; t++)
        CU_ASSERT_PTR_EQUAL(task_of((*t)->name), *t);
    for (const char *const *name = task_known; *name; name++)
        CU_ASSERT_STRING_EQUAL(task_of(*name)->name, *name);
}

CU_TestInfo tests_loaders[] = {
    {"MATH-500", test_math500},
    {"GSM8K", test_gsm8k},
    {"HMMT", test_hmmt},
    {"HMMT, JSON lines", test_hmmt_json_lines},
    {"HMMT, rows that need no file", test_hmmt_without_files},
    {"HMMT, malformed", test_hmmt_malformed},
    {"GPQA", test_gpqa},
    {"GPQA, order of options", test_gpqa_orders},
    {"GPQA, archives", test_gpqa_archives},
    {"GPQA, malformed", test_gpqa_malformed},
    {"GPQA, JSON lines", test_gpqa_json_lines},
    {"GPQA, broken lines", test_gpqa_broken_lines},
    {"GPQA, messages of servers", test_gpqa_messages},
    {"names of policies are read", test_policies},
    CU_TEST_INFO_NULL,
};
