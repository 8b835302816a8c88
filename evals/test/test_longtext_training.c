/* Tests chats for training: solutions follow from the text and are right for the graders of the
 * measured tasks, prompts have the form of the tasks, and no measured item is a training item. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "evals/longtext/conversation.h"
#include "evals/longtext/training.h"
#include "evals/taskfile/task_file.h"

static const token_counter kFour = {NULL, 4};

static js *chat_of(int kind, int64_t length, longtext_split split, int64_t number) {
    const training_options o = {
        .kind = kind, .length = length, .split = split, .questions = 8, .chars_per_token = 4};
    buf line = {0};
    snap_err err = {0};
    if (training_chat(&o, 5, number, &line, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    js *row = js_parse(line.data, line.len, "a chat", NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    buf_release(&line);
    return row;
}

static const char *text_of(const js *messages, size_t i) {
    const char *text = js_get_str(js_at(messages, i), "content");
    CU_ASSERT_PTR_NOT_NULL(text);
    return text ? text : "";
}

/* The rest of the text after the first @what; "" if there is none. */
static const char *after(const char *text, const char *what) {
    const char *found = strstr(text, what);
    return found ? found + strlen(what) : "";
}

/* Every line of a solution but the last is in the text, or has its words and a letter (order). */
static void check_lines(const char *text, const char *solution, int kind) {
    const char *end;
    for (; (end = strchr(solution, '\n')); solution = end + 1) {
        char line[600];
        size_t n = (size_t)(end - solution) - (kind == LONGTEXT_ORDER ? 3 : 0); /* ": A" */
        (void)snprintf(line, sizeof line, "%.*s", (int)n, solution);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, line));
    }
    CU_ASSERT_EQUAL(strncmp(solution, "Answer: ", 8), 0);
}

static void test_solutions(void) {
    for (int kind = 0; kind < TRAINING_TURNS; kind++)
        for (int number = 0; number < 20; number++) {
            js *row = chat_of(kind, 1024, LONGTEXT_TRAIN, number);
            const js *messages = js_get(row, "messages");
            size_t n = js_len(messages);
            CU_ASSERT(n >= 2 && n % 2 == 0 && n <= 18);
            for (size_t i = 0; i < n; i += 2) {
                CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, i), "role"), "user");
                CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, i + 1), "role"), "assistant");
                check_lines(text_of(messages, 0), text_of(messages, i + 1), kind);
            }
            js_free(row);
        }
}

/* Computes the answers to further questions about needles again from the text alone. */
static void test_further(void) {
    int questions = 0;
    for (int number = 0; number < 30; number++) {
        js *row = chat_of(LONGTEXT_NEEDLE, 1024, LONGTEXT_TRAIN, number);
        const js *messages = js_get(row, "messages");
        for (size_t i = 2; i < js_len(messages); i += 2) {
            const char *question = text_of(messages, i), *solution = text_of(messages, i + 1);
            const char *name = strstr(question, "code of "),
                       *end = strstr(question, " in the text");
            if (!name) /* several names */
                continue;
            char statement[200];
            name += strlen("code of ");
            (void)snprintf(statement, sizeof statement, "The access code of %.*s is ",
                           (int)(end - name), name);
            const char *code = after(text_of(messages, 0), statement);
            CU_ASSERT(strlen(code) > 6);
            CU_ASSERT_EQUAL(strncmp(code, after(solution, "Answer: "), 6), 0);
            questions++;
        }
        js_free(row);
    }
    CU_ASSERT(questions > 30);
}

/* ---- the tasks that are measured ---- */

static task_file *task_of(const char *name) {
    char path[80];
    buf text = {0};
    task_file *f = NULL;
    (void)snprintf(path, sizeof path, "configs/tasks/%s.json", name);
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_file_parse(buf_str(&text), text.len, path, NULL, &f, NULL), SNAP_OK);
    buf_release(&text);
    return f;
}

/* The question after the last empty line; "" if there is none. */
static const char *question_in(const char *prompt) {
    const char *found = "";
    for (const char *s = prompt; (s = strstr(s, "\n\n")); s += 2)
        found = s + 2;
    CU_ASSERT(*found != '\0');
    return found;
}

/* The prompts of a task and of chats start with the same heading and ask in the same words, and the
 * task's grader accepts the solutions of held-out chats. */
static void test_tasks(void) {
    static const char *const names[] = {"long_needle", "long_lookup",   "long_variables",
                                        "long_count",  "long_frequent", "long_order",
                                        "long_copy"};
    for (int kind = 0; kind < TRAINING_TURNS; kind++) {
        task_file *f = task_of(names[kind]);
        const task_options options = {.lengths = "1024", .chars_per_token = 4};
        task_set set;
        CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 4, &options, &set, NULL), SNAP_OK);
        js *row = chat_of(kind, 1024, LONGTEXT_MEASURE, kind);
        const char *prompt = text_of(js_get(row, "messages"), 0);
        const char *solution = text_of(js_get(row, "messages"), 1);
        const char *measured = set.problems[0].messages[0].content;
        CU_ASSERT_EQUAL(strncmp(measured, prompt, 10), 0);
        CU_ASSERT_EQUAL(strncmp(question_in(measured), question_in(prompt), 4), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(question_in(measured), " End your answer"));
        grade_result r;
        grade_input in = {.response = {solution, strlen(solution)}};
        CU_ASSERT_EQUAL_FATAL(grade_response(set.grader, after(solution, "Answer: "), in, &r, NULL),
                              SNAP_OK);
        CU_ASSERT_EQUAL(r.verdict, GRADE_CORRECT);
        CU_ASSERT_EQUAL_FATAL(grade_response(set.grader, set.problems[0].gold, in, &r, NULL),
                              SNAP_OK);
        CU_ASSERT_EQUAL(r.verdict, GRADE_WRONG); /* the solution answers another problem */
        js_free(row);
        task_set_release(&set);
        task_file_free(f);
    }
}

/* ---- items for training and for measuring ---- */

/* The question and the answer of every measured item belong to the split for measuring, and those
 * of training items do not. If items were not divided, one training question in eight would belong
 * to it. */
static void test_splits(void) {
    for (int kind = 0; kind < TRAINING_TURNS; kind++)
        for (int number = 0; number < 30; number++) {
            longtext_options o = {.kind = (longtext_kind)kind,
                                  .length = 1500,
                                  .keys = 4,
                                  .values = 2,
                                  .queries = 1,
                                  .hops = 1,
                                  .most = 9,
                                  .questions = 3};
            char name[24];
            (void)snprintf(name, sizeof name, "item %d", number);
            for (int train = 0; train < 2; train++) {
                longtext t = {0};
                o.split = train ? LONGTEXT_TRAIN : LONGTEXT_MEASURE;
                CU_ASSERT_EQUAL_FATAL(longtext_make(&o, 1, name, &kFour, &t, NULL), SNAP_OK);
                CU_ASSERT_EQUAL(longtext_split_of(buf_str(&t.question), buf_str(&t.answer)),
                                o.split);
                for (int i = 0; i < t.n_further; i++)
                    CU_ASSERT_EQUAL(longtext_split_of(buf_str(&t.further[i].question),
                                                      buf_str(&t.further[i].answer)),
                                    o.split);
                longtext_release(&t);
            }
        }
    int measured = 0, all = 8000;
    for (int i = 0; i < all; i++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%d", i);
        measured += longtext_split_of("What is the code?", text) == LONGTEXT_MEASURE;
    }
    CU_ASSERT(measured > 850 && measured < 1150); /* five standard deviations */
}

/* Conversations of the two splits start with other facts, for the same name and seed. */
static void test_conversation_splits(void) {
    for (int number = 0; number < 20; number++) {
        conversation_options o = {.length = 400, .turns = 2, .keys = 3};
        char name[24];
        (void)snprintf(name, sizeof name, "talk %d", number);
        arena mem = {0};
        conversation *a = arena_alloc(&mem, 1, sizeof *a), *b = arena_alloc(&mem, 1, sizeof *b);
        CU_ASSERT_FATAL(a && b);
        CU_ASSERT_EQUAL_FATAL(conversation_make(&o, 1, name, &kFour, &mem, a, NULL), SNAP_OK);
        o.split = LONGTEXT_TRAIN;
        CU_ASSERT_EQUAL_FATAL(conversation_make(&o, 1, name, &kFour, &mem, b, NULL), SNAP_OK);
        CU_ASSERT(strcmp(a->document, b->document) != 0);
        arena_release(&mem);
    }
}

static void test_turns(void) {
    js *row = chat_of(TRAINING_TURNS, 600, LONGTEXT_TRAIN, 3);
    const js *messages = js_get(row, "messages");
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(messages, 0), "role"), "system");
    CU_ASSERT_PTR_NOT_NULL(strstr(text_of(messages, 0), "\n\nYou keep the harbour's records."));
    CU_ASSERT(js_len(messages) % 2 == 1 && js_len(messages) >= 3);
    for (size_t i = 2; i < js_len(messages); i += 2)
        CU_ASSERT_EQUAL(
            strncmp(text_of(messages, i), conversation_answer, strlen(conversation_answer)), 0);
    js_free(row);
}

static void test_too_short(void) {
    const training_options o = {.kind = LONGTEXT_FREQUENT,
                                .length = LONGTEXT_SHORTEST,
                                .split = LONGTEXT_TRAIN,
                                .chars_per_token = 4};
    buf line = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(training_chat(&o, 1, 0, &line, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "frequent-64-train-0"));
    CU_ASSERT_EQUAL(line.len, 0);
    buf_release(&line);
}

CU_TestInfo tests_longtext_training[] = {
    {"solutions follow from the texts", test_solutions},
    {"answers to further questions follow from the text", test_further},
    {"the tasks accept the solutions", test_tasks},
    {"items for training are not measured", test_splits},
    {"splits of conversations", test_conversation_splits},
    {"a conversation has a system prompt and turns", test_turns},
    {"lengths that are too small", test_too_short},
    CU_TEST_INFO_NULL};
