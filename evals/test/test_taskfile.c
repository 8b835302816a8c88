/* Tests task files: the template language against Jinja2, the messages about malformed files, and
 * what each part of a file does. All items are invented. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/test/temp_folder.h"
#include "base/text.h"
#include "evals/arena.h"
#include "evals/taskfile/task_file.h"
#include "evals/taskfile/template.h"

static char folder[TEMP_FOLDER];

static void folder_open(void) {
    temp_folder_open(folder, "taskfile");
}

static void folder_close(void) {
    temp_folder_remove(folder);
}

static void put(const char *name, const char *text) {
    temp_folder_put(folder, "", name, text, strlen(text));
}

/* Parses a file whose lines are @members, between braces on lines of their own. */
static task_file *parse(const char *members, snap_err *err) {
    buf text = {0};
    task_file *f = NULL;
    (void)buf_printf(&text, "{\n%s\n}\n", members);
    snap_status st = task_file_parse(buf_str(&text), text.len, "my.json", folder, &f, err);
    CU_ASSERT_EQUAL(st == SNAP_OK, f != NULL);
    buf_release(&text);
    return f;
}

static task_file *parsed(const char *members) {
    snap_err err = {0};
    task_file *f = parse(members, &err);
    if (!f)
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    return f;
}

static task_set loaded(const task_file *f, uint64_t seed) {
    task_set set;
    snap_err err = {0};
    const task_options o = {.seed = seed};
    if (task_load(task_file_spec(f), folder, 0, &o, &set, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    return set;
}

static const char *prompt(const task_set *set, size_t i) {
    return set->problems[i].messages[set->problems[i].n_messages - 1].content;
}

static grade_result grade(const task_set *set, size_t i, const char *response) {
    grade_result r = {0};
    CU_ASSERT_EQUAL(grade_response(set->grader, set->problems[i].gold,
                                   (grade_input){.response = {response, strlen(response)}}, &r,
                                   NULL),
                    SNAP_OK);
    return r;
}

/* ---- templates ---- */

/* Renders the case of one line of the fixture, which make_templates.py wrote. */
static snap_status check_case(void *ctx, js *row, long line, snap_err *err) {
    const char *expected = js_get_str(row, "expected");
    const template_values values = {.row = js_get_object(row, "row")};
    arena mem = {0};
    template *t = NULL;
    buf text = {0};
    snap_err why = {0};
    (void)err;
    CU_ASSERT_EQUAL_FATAL(template_compile(js_get_str(row, "template"), &mem, &t, NULL), SNAP_OK);
    snap_status st = template_render(t, &values, &text, "row", &why);
    bool same =
        expected ? st == SNAP_OK && strcmp(buf_str(&text), expected) == 0 : st == SNAP_E_INPUT;
    if (!same)
        printf("\nline %ld: '%s' %s, not '%s'\n", line, buf_str(&text), why.text,
               expected ? expected : "(refused)");
    CU_ASSERT(same);
    CU_ASSERT_EQUAL(template_lacks(t, &values) == NULL, expected != NULL);
    ++*(size_t *)ctx;
    buf_release(&text);
    arena_release(&mem);
    return SNAP_OK;
}

static void test_templates_render_as_jinja(void) {
    buf text = {0};
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(fs_read("evals/test/fixtures/templates.jsonl", &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&text), text.len, "templates", check_case, &n, NULL),
                    SNAP_OK);
    CU_ASSERT_EQUAL(n, 60);
    buf_release(&text);
}

static void test_malformed_templates(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a {{question", "not closed by '}}' at '{{question'"},
        {"{{}}", "a name is missing"},
        {"{{a or }}", "a name is missing"},
        {"{{a | upper}}", "unknown filter"},
        {"{{a | after}}", "single quotes is missing"},
        {"{{a | after 'x}}", "a quoted text is not closed"},
        {"{{#a}}x", "the list '{{#a}}' is not closed"},
        {"{{/a}}", "was not begun"},
        {"{{#a}}{{/b}}", "the end of another list"},
        {"{{#a}}{{#b}}{{/b}}{{/a}}", "a list inside a list"},
        {"{{#a | trim}}{{/a}}", "no filter but 'optional'"},
        {"{{a{b}}", "not closed"},
        {"{{a or b or c or d or e or f or g or h or i}}", "too many alternatives"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena mem = {0};
        template *t;
        snap_err err = {0};
        CU_ASSERT_EQUAL(template_compile(cases[i].text, &mem, &t, &err), SNAP_E_INPUT);
        if (!strstr(err.text, cases[i].message))
            printf("\n%s: %s\n", cases[i].text, err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        arena_release(&mem);
    }
}

/* A list of many elements with a long text for each must end in an error and not in a huge text. */
static void test_huge_output(void) {
    enum { kElements = 100000 };
    arena mem = {0};
    template *t;
    buf text = {0}, out = {0};
    snap_err err = {0};
    (void)buf_puts(&text, "{{#l}}");
    for (int i = 0; i < 4000; i++)
        (void)buf_puts(&text, "abcdefgh");
    (void)buf_puts(&text, "{{/l}}");
    js *row = js_new_object(), *list = js_new_array();
    for (int i = 0; i < kElements; i++)
        CU_ASSERT(js_push_new(list, js_new_int(i)));
    CU_ASSERT(js_set_new(row, "l", list));
    CU_ASSERT_EQUAL_FATAL(template_compile(buf_str(&text), &mem, &t, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(template_render(t, &(template_values){.row = row}, &out, "x:1", &err),
                    SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x:1: a text of more than 32 MiB");
    js_free(row);
    buf_release(&out);
    buf_release(&text);
    arena_release(&mem);
}

/* ---- malformed files ---- */

#define GOOD                                                                                       \
    "\"task\": \"t\", \"data\": \"d.jsonl\",\n\"prompt\": \"{{q}}\", \"answer\": \"{{a}}\",\n"
#define NO_ANSWER "\"task\": \"t\", \"data\": \"d.jsonl\",\n\"prompt\": \"{{q}}\",\n"

static const struct {
    const char *members, *message;
} bad_files[] = {
    {"\"task\": 5", "my.json:2: 'task' must be text"},
    {"\"task\": \" \"", "my.json:2: 'task' must not be empty"},
    {"\"task\": \"a b\"", "my.json:2: 'task' must be a name"},
    {"\"task\": \"../x\"", "must be a name"},
    {"\"task\": \"t\"", "my.json:1: needs 'data'"},
    {"\"task\": \"t\",\n\"data\": \"/etc/passwd\"", "my.json:3: 'data' must be a relative path"},
    {"\"task\": \"t\",\n\"data\": [\"a\",\n\"b/../../c\"]", "relative path without '..'"},
    {"\"task\": \"t\", \"data\": \"a\", \"promt\": \"x\"", "(did you mean 'prompt'?)"},
    {"\"task\": \"t\", \"data\": \"a\",\n\"prompt\": \"{{x\"",
     "my.json:3: 'prompt' is not a templ"},
    {"\"task\": \"t\", \"data\": \"a\", \"prompt\": \"x\"", "needs a 'grader'"},
    {GOOD "\"grader\": \"intger\"", "my.json:4: 'grader' must be one of integer, mathematics"},
    {GOOD "\"grader\": \"intger\"", "(did you mean 'integer'?)"},
    {GOOD "\"grader\": {\"name\": \"integer\",\n\"from\": 1.5}", "my.json:5: 'grader.from' must"},
    {GOOD "\"grader\": {\"letters\": 4}", "'grader' needs a 'name'"},
    {GOOD "\"grader\": \"letter\"", "needs the number of letters"},
    {GOOD "\"grader\": \"exact\", \"samples\": 0", "'samples' must be an integer 1..100000"},
    {GOOD "\"grader\": \"exact\", \"margin_pp\": 0", "'margin_pp' must be a number"},
    {GOOD "\"grader\": \"exact\", \"extract\": \"letter\"", "does not go with the grader 'exact'"},
    {GOOD "\"grader\": \"exact\", \"extract\": \"hashes\"", "goes with the grader 'integer' only"},
    {GOOD "\"grader\": \"exact\", \"extract\": \"regex\"", "must be an object with a 'name' and"},
    {GOOD "\"grader\": \"exact\", \"extract\": {\"name\": \"regex\"}", "needs a 'regex'"},
    {GOOD "\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"(\"}",
     "'extract.regex' is not a regular expression"},
    {GOOD "\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"x\",\n"
          "\"group\": 1}",
     "my.json:5: 'extract.group' names a group that the regex does not have"},
    {GOOD "\"grader\": \"stdin\"", "'answer' has no use"},
    {NO_ANSWER "\"grader\": \"integer\"", "needs an 'answer'"},
    {NO_ANSWER "\"grader\": \"assertions\"", "needs 'after'"},
    {NO_ANSWER "\"grader\": \"stdin\", \"metrics\": []", "'metrics' must be a list of 1 to 3"},
    {GOOD "\"grader\": \"exact\", \"metrics\": [{\"name\": \"accuracy\", \"grader\": \"exact\"}]",
     "'metrics.0.name' is the name of another metric"},
    {GOOD "\"grader\": \"exact\",\n\"metrics\": [{\"name\": \"m\",\n\"grader\": \"judge\"}]",
     "my.json:6: 'metrics.0.grader' 'judge' cannot be"},
    {GOOD "\"grader\": \"exact\", \"choices\": {}", "'choices' needs one of"},
    {GOOD "\"grader\": \"exact\", \"choices\": {\"texts\": [\"a\"]}", "'choices' needs one of"},
    {GOOD "\"grader\": \"exact\", \"choices\": {\"texts\": [\"a\", \"b\"], \"labels\": \"c\"}",
     "'choices.labels' goes with"},
    {GOOD "\"grader\": \"exact\", \"examples\": {\"template\": \"x\"}", "needs either 'data'"},
    {GOOD "\"grader\": \"exact\", \"examples\": {\"data\": \"../x\", \"template\": \"x\"}",
     "'examples.data' must be a relative path"},
    {GOOD "\"grader\": \"exact\", \"examples\": {\"data\": \"x\", \"template\": \"x\"}",
     "'prompt' does not contain {{examples}}"},
    {GOOD "\"grader\": \"exact\", \"where\": {\"x\": []}", "'where.x' must be a text"},
    {GOOD "\"grader\": \"exact\", \"where\": {\"x\": {\"fron\": 1}}", "(did you mean 'from'?)"},
    {"\"task\": \"t\", \"task\": \"u\"", "my.json:2:"},
    {"{}", "my.json:2:"},
};

static void test_malformed_files(void) {
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        snap_err err = {0};
        CU_ASSERT_PTR_NULL(parse(bad_files[i].members, &err));
        CU_ASSERT_EQUAL(err.code, SNAP_E_INPUT);
        if (!strstr(err.text, bad_files[i].message))
            printf("\n%s\n  %s\n", bad_files[i].members, err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad_files[i].message));
    }
    buf deep = {0};
    for (int i = 0; i < 100000; i++)
        (void)buf_puts(&deep, "[");
    task_file *f;
    CU_ASSERT_EQUAL(task_file_parse(buf_str(&deep), deep.len, "d", NULL, &f, NULL), SNAP_E_INPUT);
    CU_ASSERT_PTR_NULL(f);
    buf_release(&deep);
}

/* ---- rows ---- */

/* Problems and examples in Parquet. The rows are in rows.jsonl beside the file. */
static void test_parquet(void) {
    buf bytes = {0};
    folder_open();
    CU_ASSERT_EQUAL_FATAL(fs_read("base/test/fixtures/parquet/default.parquet", &bytes, NULL),
                          SNAP_OK);
    char *path = fs_join(folder, "d.parquet");
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, bytes.data, bytes.len, NULL), SNAP_OK);
    task_file *f = parsed("\"task\": \"t\", \"data\": \"d.parquet\", \"prompt\": \"{{examples}}Q "
                          "{{unsigned}}\", \"answer\": \"{{huge}}\", \"grader\": \"integer\", "
                          "\"examples\": {\"data\": \"d.parquet\", \"count\": 1, \"template\": "
                          "\"E {{small}} \"}");
    task_set set = loaded(f, 1);
    CU_ASSERT_EQUAL(set.n, 36);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 35), "E -5 Q 4294967260");
    CU_ASSERT_STRING_EQUAL(set.problems[35].gold, "105");
    task_set_release(&set);
    put("d.parquet", "PAR1");
    snap_err err = {0};
    CU_ASSERT_EQUAL(task_load(task_file_spec(f), folder, 0, NULL, &set, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "d.parquet: not a Parquet file"));
    task_set_release(&set);
    task_file_free(f);
    free(path);
    buf_release(&bytes);
    folder_close();
}

static void test_rows_and_fields(void) {
    folder_open();
    put("d.csv", "q,a,n\nWhat?,\"x, y\",1\nWhy?,z,2\n");
    task_file *f = parsed("\"task\": \"t\", \"data\": [\"none.jsonl\", \"d.csv\"], \"id\": \"n\","
                          "\"system\": \"S {{n}}\", \"prompt\": \"{{q}}\", \"answer\": \"{{a}}\","
                          "\"grader\": \"exact\", \"samples\": 3, \"margin_pp\": 1.5");
    task_set set = loaded(f, 1);
    CU_ASSERT(set.n == 2 && set.task->samples == 3);
    CU_ASSERT_DOUBLE_EQUAL(set.task->margin_pp, 1.5, 0);
    CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].content, "S 1");
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "What?");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "x, y");
    CU_ASSERT_STRING_EQUAL(set.problems[1].id, "2");
    CU_ASSERT_STRING_EQUAL(set.grader->id, "whole-1+text-1");
    task_set_release(&set);
    put("d.csv", "q,aa,n\nWhat?,x,1\n");
    snap_err err = {0};
    CU_ASSERT_EQUAL(task_load(task_file_spec(f), folder, 0, NULL, &set, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "d.csv:2: needs a text or number 'a'"));
    task_set_release(&set);
    task_file_free(f);
    f = parsed("\"task\": \"t\", \"data\": \"w.jsonl\", \"where\": {\"split\": [\"a\", \"b\"], "
               "\"n\": {\"from\": 2}}, \"prompt\": \"{{n}}\", \"answer\": \"{{n}}\", "
               "\"grader\": \"integer\"");
    put("w.jsonl", "{\"split\": \"a\", \"n\": 1}\n{\"split\": \"b\", \"n\": 2}\n{\"split\": \"c\", "
                   "\"n\": 3}\n{\"split\": \"a\", \"n\": 4}\n");
    set = loaded(f, 1);
    CU_ASSERT(set.n == 2 && set.rows == 4 && strcmp(set.problems[1].gold, "4") == 0);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "2"); /* the number of the row */
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

static void test_choices(void) {
    folder_open();
    put("c.jsonl",
        "{\"q\": \"1\", \"o\": [\"red\", \"-\", \"blue\"], \"l\": [\"x\", \"y\", \"z\"], "
        "\"byl\": \"z\", \"byn\": 2, \"byt\": \"blue\", \"bya\": \"B\"}\n");
    static const char *const ways[] = {"\"labels\": \"l\"}, \"answer\": \"{{byl}}\"",
                                       "\"answer\": \"number\"}, \"answer\": \"{{byn}}\"",
                                       "\"answer\": \"index\"}, \"answer\": \"1\"",
                                       "\"answer\": \"text\"}, \"answer\": \"{{byt}}\"",
                                       "\"answer\": \"letter\"}, \"answer\": \"{{bya}}\""};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char members[500];
        (void)snprintf(members, sizeof members,
                       "\"task\": \"t\", \"data\": \"c.jsonl\", \"prompt\": \"{{#choices}}"
                       "{{letter}}={{item}} {{/choices}}\", \"grader\": {\"name\": \"letter\", "
                       "\"letters\": 3}, \"choices\": {\"field\": \"o\", \"skip\": \"-\", %s",
                       ways[i]);
        task_file *f = parsed(members);
        task_set set = loaded(f, 1);
        CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "A=red B=blue ");
        CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "B");
        CU_ASSERT(grade(&set, 0, "Answer: B").verdict == GRADE_CORRECT);
        CU_ASSERT(grade(&set, 0, "Answer: C").verdict == GRADE_WRONG);
        CU_ASSERT(grade(&set, 0, "Answer: D").verdict == GRADE_UNPARSED);
        task_set_release(&set);
        task_file_free(f);
    }
    folder_close();
}

/* The elements of a list are objects with a label and a text. */
static void test_choices_of_objects(void) {
    folder_open();
    put("c.jsonl",
        "{\"o\": [{\"l\": \"1\", \"t\": \"red\"}, {\"l\": \"2\", \"t\": \"blue\"}], \"a\": 2}\n");
    task_file *f =
        parsed("\"task\": \"t\", \"data\": \"c.jsonl\", \"prompt\": \"{{#o}}{{item.l}}:"
               "{{item.t}} {{/o}}{{#choices}}{{letter}}={{item}} {{/choices}}\", \"answer\": "
               "\"{{a}}\", \"grader\": {\"name\": \"letter\", \"letters\": 2}, \"choices\": "
               "{\"field\": \"o\", \"item\": \"t\", \"labels\": \"l\"}");
    task_set set = loaded(f, 1);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "1:red 2:blue A=red B=blue ");
    CU_ASSERT_STRING_EQUAL(set.problems[0].gold, "B");
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

/* GPQA's reader, written in C, shuffles options too: with the same ids and seed it must show the
 * same order. */
static void test_shuffled_as_gpqa(void) {
    static const task_options o = {.seed = 5};
    const task_spec *gpqa;
    folder_open();
    buf rows = {0};
    for (int i = 0; i < 40; i++)
        (void)buf_printf(&rows,
                         "{\"Record ID\": \"rec%d\", \"Question\": \"Q%d\", \"Correct Answer\": "
                         "\"c%d\", \"Incorrect Answer 1\": \"w\", \"Incorrect Answer 2\": \"v\", "
                         "\"Incorrect Answer 3\": \"c%d\"}\n",
                         i, i, i, i);
    put("gpqa_diamond.jsonl", buf_str(&rows));
    task_file *f = parsed(
        "\"task\": \"t\", \"data\": \"gpqa_diamond.jsonl\", \"id\": \"Record ID\", \"choices\": "
        "{\"fields\": [\"Correct Answer\", \"Incorrect Answer 1\", \"Incorrect Answer 2\", "
        "\"Incorrect Answer 3\"], \"answer\": \"index\", \"shuffle\": true}, \"answer\": \"0\", "
        "\"prompt\": \"Answer the following multiple choice question. The last line of your "
        "response should be of the following format: 'Answer: $LETTER' (without quotes) where "
        "LETTER is one of ABCD. Think step by step before answering.\\n\\n{{Question}}\\n"
        "{{#choices}}\\n{{letter}}) {{item}}{{/choices}}\", \"grader\": \"letter\"");
    task_set ours = loaded(f, 5), theirs;
    CU_ASSERT_EQUAL_FATAL(task_find("gpqa_diamond", &gpqa, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_load(gpqa, folder, 0, &o, &theirs, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(ours.prompt_sha256, theirs.prompt_sha256);
    CU_ASSERT_PTR_EQUAL(ours.grader, theirs.grader);
    for (size_t i = 0; i < 40; i++)
        CU_ASSERT_STRING_EQUAL(ours.problems[i].gold, theirs.problems[i].gold);
    task_set_release(&ours);
    task_set_release(&theirs);
    task_file_free(f);
    buf_release(&rows);
    folder_close();
}

static void test_examples(void) {
    folder_open();
    put("d.jsonl", "{\"id\": \"p\", \"q\": \"a\", \"k\": 1, \"a\": \"x\"}\n"
                   "{\"id\": \"r\", \"q\": \"b\", \"k\": 2, \"a\": \"y\"}\n");
    put("shots.jsonl", "{\"q\": \"s1\", \"k\": 1, \"a\": \"1\"}\n{\"q\": \"s2\", \"k\": 2, \"a\": "
                       "\"2\"}\n{\"q\": \"s3\", \"k\": 1, \"a\": \"3\"}\n{\"id\": \"p\", \"q\": "
                       "\"a\", \"k\": 1, \"a\": \"x\"}\n");
#define SHOTS(options)                                                                             \
    "\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"{{examples}}{{q}}?\", \"answer\": "     \
    "\"{{a}}\", \"grader\": \"exact\", \"examples\": {\"data\": \"shots.jsonl\", \"template\": "   \
    "\"{{q}}={{gold}};\"" options "}"
    task_file *f = parsed(SHOTS(", \"match\": \"k\", \"count\": 2"));
    task_set set = loaded(f, 1);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "s1=1;s3=3;a?"); /* not the row itself */
    CU_ASSERT_STRING_EQUAL(prompt(&set, 1), "s2=2;b?");
    task_set_release(&set);
    task_file_free(f);
    f = parsed(SHOTS(", \"order\": \"random\", \"count\": 1"));
    int seen[3] = {0};
    for (uint64_t seed = 0; seed < 600; seed++) {
        set = loaded(f, seed);
        CU_ASSERT(strlen(prompt(&set, 0)) == 7 && strncmp(prompt(&set, 0), "s", 1) == 0);
        seen[prompt(&set, 0)[1] - '1']++;
        task_set_release(&set);
    }
    for (int i = 0; i < 3; i++) /* 200 expected; the standard deviation is 11.5 */
        CU_ASSERT(seen[i] > 150 && seen[i] < 250);
    task_file_free(f);
    f = parsed("\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"{{examples}}{{q}}?\", "
               "\"answer\": \"{{a}}\", \"grader\": \"exact\", \"examples\": {\"rows\": [{\"q\": "
               "\"f\", \"a\": \"g\"}], \"template\": \"{{q}}={{a}};\"}");
    set = loaded(f, 1);
    CU_ASSERT_STRING_EQUAL(prompt(&set, 0), "f=g;a?");
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

/* ---- graders ---- */

typedef struct {
    const char *rule, *gold, *response;
    grade_verdict verdict;
} graded;

static const graded grades[] = {
    {"\"grader\": \"integer\"", "12", "It is \\boxed{12}.", GRADE_CORRECT},
    {"\"grader\": \"mathematics\"", "1/2", "\\boxed{0.5}", GRADE_CORRECT},
    {"\"grader\": \"exact\"", "Paris", " Paris\n", GRADE_CORRECT},
    {"\"grader\": \"exact\"", "Paris", "paris", GRADE_WRONG},
    {"\"grader\": \"exact\"", "Paris", "<think>Rome</think>Paris", GRADE_CORRECT},
    {"\"grader\": \"exact\"", "Paris", "", GRADE_UNPARSED},
    {"\"grader\": {\"name\": \"exact\", \"ignore_case\": true}", "Paris", "PARIS", GRADE_CORRECT},
    {"\"grader\": {\"name\": \"exact\", \"ignore_case\": true}", "Paris", "PARIS.", GRADE_WRONG},
    {"\"grader\": {\"name\": \"exact\", \"ignore_punctuation\": true}", "St. John", "St John!",
     GRADE_CORRECT},
    {"\"grader\": {\"name\": \"exact\", \"any_line\": true}", "Sun\n\nSol\n", "Sol", GRADE_CORRECT},
    {"\"grader\": {\"name\": \"exact\", \"any_line\": true}", "Sun\n\nSol\n", "Sun Sol",
     GRADE_WRONG},
    {"\"grader\": \"exact\", \"extract\": \"boxed\"", "Paris", "So \\boxed{Paris}.", GRADE_CORRECT},
    {"\"grader\": \"exact\", \"extract\": \"boxed\"", "Paris", "So Paris.", GRADE_UNPARSED},
    {"\"grader\": \"integer\", \"extract\": \"last_number\"", "7", "\\boxed{5} or 7",
     GRADE_CORRECT},
    {"\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"ANS: (\\\\w+)\"}", "b",
     "ANS: a, no: ANS: b", GRADE_CORRECT},
    {"\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"ANS: (\\\\w+)\", "
     "\"which\": \"first\"}",
     "a", "ANS: a, no: ANS: b", GRADE_CORRECT},
    {"\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"ANS: (\\\\w+)\", "
     "\"group\": 0}",
     "ANS: b", "So ANS: b", GRADE_CORRECT},
    {"\"grader\": \"mathematics\", \"extract\": {\"name\": \"regex\", \"regex\": \"=(.*)\"}",
     "\\frac12", "x = 1/2", GRADE_CORRECT},
    {"\"grader\": \"mathematics\", \"extract\": {\"name\": \"regex\", \"regex\": \"=(.*)\"}",
     "\\frac12", "x is 1/2", GRADE_UNPARSED},
    {"\"grader\": \"regex\"", "colou?r", "color", GRADE_CORRECT},
    {"\"grader\": \"regex\"", "colou?r", "colors", GRADE_WRONG},
    {"\"grader\": \"regex\"", "(?i).*colou?r.*", "The Colour!", GRADE_CORRECT},
    {"\"grader\": {\"name\": \"letter\", \"letters\": 7}", "G", "Answer: G", GRADE_CORRECT},
    {"\"grader\": {\"name\": \"letter\", \"letters\": 2}", "A", "Answer: C", GRADE_UNPARSED},
};

static void test_graders(void) {
    folder_open();
    for (size_t i = 0; i < sizeof grades / sizeof *grades; i++) {
        const graded *g = &grades[i];
        char members[600];
        js *row = js_new_object();
        buf text = {0};
        CU_ASSERT(js_set_str(row, "a", g->gold));
        CU_ASSERT_EQUAL(js_write(row, JS_COMPACT, &text, NULL), SNAP_OK);
        put("d.jsonl", buf_str(&text));
        (void)snprintf(members, sizeof members,
                       "\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"?\", \"answer\": "
                       "\"{{a}}\", %s",
                       g->rule);
        task_file *f = parsed(members);
        task_set set = loaded(f, 1);
        grade_result r = grade(&set, 0, g->response);
        if (r.verdict != g->verdict)
            printf("\n%s: '%s': %s, %s\n", g->rule, g->response, grade_verdict_name(r.verdict),
                   r.reason);
        CU_ASSERT_EQUAL(r.verdict, g->verdict);
        task_set_release(&set);
        task_file_free(f);
        buf_release(&text);
        js_free(row);
    }
    folder_close();
}

static void test_metrics(void) {
    folder_open();
    put("d.jsonl", "{\"a\": \"12\"}\n");
    task_file *f = parsed(
        "\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"?\", \"answer\": \"{{a}}\", "
        "\"grader\": \"integer\", \"metrics\": [{\"name\": \"strict\", \"grader\": \"exact\"}, "
        "{\"name\": \"loose\", \"extract\": \"last_number\", \"grader\": \"integer\"}]");
    task_set set = loaded(f, 1);
    CU_ASSERT_EQUAL_FATAL(grade_metrics(set.grader), 3);
    CU_ASSERT_STRING_EQUAL(set.grader->metrics[0], "accuracy");
    CU_ASSERT_STRING_EQUAL(set.grader->metrics[2], "loose");
    grade_result r = grade(&set, 0, "\\boxed{5} but 12");
    CU_ASSERT(r.verdict == GRADE_WRONG && r.also[0].value < 0.5 && r.also[1].value > 0.5);
    r = grade(&set, 0, "12");
    CU_ASSERT(r.verdict == GRADE_CORRECT && r.also[0].value > 0.5 && r.also[1].value > 0.5);
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

/* A regular expression that needs too many steps is an error and never a verdict. */
static void test_exploding_regex(void) {
    char text[4001];
    snap_err err = {0};
    grade_result r;
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof text - 3, "cb", 3); /* PCRE2 first checks whether the text has a 'b' at
                                                all */
    folder_open();
    put("d.jsonl", "{\"a\": \"(a+)+b\"}\n");
    static const char *const rules[] = {
        "\"grader\": \"regex\"",
        "\"grader\": \"exact\", \"extract\": {\"name\": \"regex\", \"regex\": \"(a+)+b\"}"};
    for (size_t i = 0; i < 2; i++) {
        char members[300];
        (void)snprintf(members, sizeof members,
                       "\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"?\", \"answer\": "
                       "\"{{a}}\", %s",
                       rules[i]);
        task_file *f = parsed(members);
        task_set set = loaded(f, 1);
        err = (snap_err){0};
        CU_ASSERT_EQUAL(grade_response(set.grader, set.problems[0].gold,
                                       (grade_input){.response = {text, sizeof text - 1}}, &r,
                                       &err),
                        SNAP_E_NOMEM);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be matched"));
        fault_forget();
        task_set_release(&set);
        task_file_free(f);
    }
    folder_close();
}

/* A judge model gets the answer as the reference. */
static void test_judge(void) {
    folder_open();
    put("d.jsonl", "{\"q\": \"Write.\", \"a\": \"A poem.\"}\n");
    task_file *f = parsed("\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"{{q}}\", "
                          "\"answer\": \"{{a}}\", \"grader\": \"judge\"");
    task_set set = loaded(f, 1);
    CU_ASSERT(set.grader->by_model);
    CU_ASSERT_STRING_EQUAL(arena_reference(&set.problems[0]), "A poem.");
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

/* The grader 'recorded': its id names the metric and the program that gave the verdicts. It accepts
 * every gold. */
static void test_recorded(void) {
    folder_open();
    put("d.jsonl", "{\"q\": \"?\", \"a\": \"any\"}\n");
    task_file *f = parsed("\"task\": \"t\", \"data\": \"d.jsonl\", \"prompt\": \"{{q}}\", "
                          "\"answer\": \"{{a}}\", \"grader\": {\"name\": \"recorded\", "
                          "\"metric\": \"acc\", \"by\": \"other 1.2\"}");
    task_set set = loaded(f, 1);
    CU_ASSERT(set.grader->recorded && !grade_runs_programs(set.grader));
    CU_ASSERT_STRING_EQUAL(set.grader->id, "recorded-1 acc by other 1.2");
    task_set_release(&set);
    task_file_free(f);
    folder_close();
}

/* ---- by name and path ---- */

static void test_opening(void) {
    const task_spec *a, *b;
    snap_err err = {0};
    folder_open();
    char *path = fs_join(folder, "my.json");
    CU_ASSERT_EQUAL(task_open(path, &a, &err), SNAP_E_IO);
    put("my.json", "{" GOOD "\"grader\": \"exact\"}");
    CU_ASSERT_EQUAL_FATAL(task_open(path, &a, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_open(path, &b, NULL), SNAP_OK);
    CU_ASSERT_PTR_EQUAL(a, b);
    put("my.json", "{" GOOD "\"grader\": \"regex\"}");
    CU_ASSERT_EQUAL_FATAL(task_open(path, &b, NULL), SNAP_OK);
    CU_ASSERT(a != b && strcmp(a->file_sha256, b->file_sha256) != 0);
    CU_ASSERT(task_find("nope", &a, NULL) == SNAP_OK && !a);
    CU_ASSERT(task_find("../tasks/aime24", &a, NULL) == SNAP_OK && !a);
    CU_ASSERT(task_find("", &a, NULL) == SNAP_OK && !a);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(task_unknown("mbpp", NULL, "--task", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--task: the file configs/tasks/mbpp.json is missing"));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(task_unknown("aime42", NULL, "--suite", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'aime24'?"));
    free(path);
    folder_close();
}

CU_TestInfo tests_taskfile[] = {
    {"templates render as Jinja2 renders them", test_templates_render_as_jinja},
    {"malformed templates", test_malformed_templates},
    {"a template with a huge output", test_huge_output},
    {"malformed files", test_malformed_files},
    {"rows of CSV files, their fields and ids", test_rows_and_fields},
    {"data in Parquet", test_parquet},
    {"choices become options with letters", test_choices},
    {"choices that are objects", test_choices_of_objects},
    {"choices are shuffled as for GPQA", test_shuffled_as_gpqa},
    {"examples before the problem", test_examples},
    {"the graders that a task file can name", test_graders},
    {"further metrics", test_metrics},
    {"a regular expression that needs too many steps", test_exploding_regex},
    {"a judge model", test_judge},
    {"verdicts of another program", test_recorded},
    {"tasks are opened by name and by path", test_opening},
    CU_TEST_INFO_NULL,
};
