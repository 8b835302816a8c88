/* Tests the texts that the program makes: lengths, right answers, distances, and grading. A right
 * answer is computed again from the text alone. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "evals/longtext/conversation.h"
#include "evals/longtext/filler.h"
#include "evals/longtext/longtext.h"
#include "evals/taskfile/task_file.h"

static const token_counter kFour = {NULL, 4};

static longtext made(longtext_options o, int number) {
    longtext t = {0};
    snap_err err = {0};
    char id[24];
    (void)snprintf(id, sizeof id, "item %d", number);
    if (longtext_make(&o, 7, id, &kFour, &t, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    return t;
}

/* Options of a kind that fit into 3000 tokens. */
static longtext_options usual(longtext_kind kind, name_distance distance) {
    return (longtext_options){.kind = kind,
                              .length = 3000,
                              .depth = 0.5,
                              .distance = distance,
                              .keys = 3,
                              .values = kind == LONGTEXT_COPY ? 8 : 1,
                              .queries = 1,
                              .hops = 3,
                              .most = 9};
}

/* ---- the answer of each kind, from the text alone ---- */

static size_t count_in(const char *text, const char *what) {
    size_t n = 0;
    for (const char *s = text; (s = strstr(s, what)); s++)
        n++;
    return n;
}

/* The text between the first @before after @from and the next @after. */
static void between(const char *from, const char *before, const char *after, char out[400]) {
    const char *s = strstr(from, before);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    s += strlen(before);
    const char *end = strstr(s, after);
    CU_ASSERT_FATAL(end && end - s < 400);
    (void)snprintf(out, 400, "%.*s", (int)(end - s), s);
}

static void solve_named(const longtext *t, const char *question, const char *statement,
                        const char *end, char out[400]) {
    char asked[400], before[500];
    between(buf_str(&t->question), question, " in the text", asked);
    const char *key = strcmp(statement, "\n") == 0 ? strchr(asked, ' ') + 1 : asked;
    (void)snprintf(before, sizeof before, "%s%s%s", statement, key, end);
    CU_ASSERT_EQUAL(count_in(buf_str(&t->document), before), 1);
    between(buf_str(&t->document), before, strcmp(statement, "\n") == 0 ? "\n" : ".", out);
}

/* Follows the assignments backwards. */
static void solve_variable(const longtext *t, char out[400]) {
    char variable[400], before[500];
    between(buf_str(&t->question), "the value of ", " in the end", variable);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(before, sizeof before, "Set %s to ", variable);
        CU_ASSERT_EQUAL(count_in(buf_str(&t->document), before), 1);
        between(buf_str(&t->document), before, ".", out);
        if (strncmp(out, "the value of ", 13) != 0)
            return;
        (void)snprintf(variable, sizeof variable, "%s", out + 13);
        const char *set = strstr(buf_str(&t->document), before);
        (void)snprintf(before, sizeof before, "Set %s to ", variable);
        CU_ASSERT(strstr(buf_str(&t->document), before) < set); /* set before it is used */
    }
}

static void solve_count(const longtext *t, char out[400]) {
    char asked[400], event[500];
    between(buf_str(&t->question), "bell rang for ", "?", asked);
    (void)snprintf(event, sizeof event, "A bell rang for %s.", asked);
    (void)snprintf(out, 400, "%zu", count_in(buf_str(&t->document), event));
}

/* Checks that the words of the answer are the most frequent ones, by clear distances. */
static void check_frequent(const longtext *t) {
    char words[4][16], *text = strdup(buf_str(&t->document)), *save = NULL;
    size_t counts[4] = {0};
    CU_ASSERT_EQUAL_FATAL(
        sscanf(buf_str(&t->answer), "%15[a-z], %15[a-z], %15[a-z]", words[0], words[1], words[2]),
        3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    char *list = strchr(text, '\n');
    for (char *w = strtok_r(list, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
        int k = 0;
        while (k < 3 && strcmp(words[k], w) != 0)
            k++;
        if (k < 3) {
            counts[k]++;
        } else { /* no other word comes as often as the last one of the answer */
            size_t n = 0;
            for (const char *s = buf_str(&t->document); (s = strstr(s, w)); s += strlen(w))
                n += s[strlen(w)] == ' ' || s[strlen(w)] == '\n' || !s[strlen(w)];
            counts[3] = n > counts[3] ? n : counts[3];
        }
    }
    CU_ASSERT(counts[0] > counts[1] && counts[1] > counts[2] && counts[2] > counts[3]);
    free(text);
}

static void solve_order(const longtext *t, char out[400]) {
    const char *places[3];
    char name[80], event[120], letters[] = "ABC";
    for (int i = 0; i < 3; i++) {
        char before[8];
        (void)snprintf(before, sizeof before, "\n%c) ", letters[i]);
        CU_ASSERT_EQUAL_FATAL(sscanf(strstr(buf_str(&t->question), before) + 4, "%79[^\n]", name),
                              1);
        (void)snprintf(event, sizeof event, "Then %s arrived.", name);
        places[i] = strstr(buf_str(&t->document), event);
        CU_ASSERT_PTR_NOT_NULL_FATAL(places[i]);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (places[k] > places[k + 1]) {
                const char *p = places[k];
                char c = letters[k];
                places[k] = places[k + 1];
                letters[k] = letters[k + 1];
                places[k + 1] = p;
                letters[k + 1] = c;
            }
    (void)snprintf(out, 400, "%c, %c, %c", letters[0], letters[1], letters[2]);
}

static void solve(const longtext *t, longtext_kind kind, char out[400]) {
    out[0] = '\0';
    if (kind == LONGTEXT_NEEDLE)
        solve_named(t, "the access code of ", "The access code of ", " is ", out);
    else if (kind == LONGTEXT_LOOKUP)
        solve_named(t, "the access code of ", "\n", ": ", out);
    else if (kind == LONGTEXT_COPY)
        solve_named(t, "the record of ", "Record of ", ": ", out);
    else if (kind == LONGTEXT_VARIABLES)
        solve_variable(t, out);
    else if (kind == LONGTEXT_COUNT)
        solve_count(t, out);
    else if (kind == LONGTEXT_ORDER)
        solve_order(t, out);
}

static void test_answers(void) {
    for (int kind = 0; longtext_kinds[kind]; kind++)
        for (int d = 0; name_distances[d]; d++) {
            if (kind == LONGTEXT_LOOKUP && d == DISTANCE_WORD)
                continue;
            for (int i = 0; i < 5; i++) {
                char answer[400];
                longtext_options o = usual((longtext_kind)kind, (name_distance)d);
                longtext t = made(o, i);
                solve(&t, o.kind, answer);
                if (kind == LONGTEXT_FREQUENT)
                    check_frequent(&t);
                else
                    CU_ASSERT_STRING_EQUAL(buf_str(&t.answer), answer);
                longtext_release(&t);
            }
        }
}

static void test_several(void) {
    longtext_options o = usual(LONGTEXT_NEEDLE, DISTANCE_CHARACTER);
    o.keys = 4;
    o.values = 3;
    o.queries = 2;
    longtext t = made(o, 0);
    char first[8], second[8];
    CU_ASSERT_EQUAL_FATAL(sscanf(strstr(buf_str(&t.question), "of station "),
                                 "of station %6s, station %6s", first, second),
                          2);
    buf all = {0};
    char before[60], code[400];
    for (int k = 0; k < 2; k++) {
        (void)snprintf(before, sizeof before, "The access code of station %s is ",
                       k ? second : first);
        CU_ASSERT_EQUAL(count_in(buf_str(&t.document), before), 3);
        for (const char *s = buf_str(&t.document); (s = strstr(s, before)); s++) {
            between(s, before, ".", code);
            (void)buf_printf(&all, "%s%s", all.len ? ", " : "", code);
        }
    }
    CU_ASSERT_STRING_EQUAL(buf_str(&t.answer), buf_str(&all));
    buf_release(&all);
    longtext_release(&t);
}

/* ---- lengths and places ---- */

static int64_t tokens_of(const longtext *t, const token_counter *c) {
    buf all = {0};
    int64_t n = -1;
    (void)buf_printf(&all, "%s\n\n", buf_str(&t->document));
    (void)buf_puts(&all, buf_str(&t->question));
    CU_ASSERT_EQUAL(tokens_count(c, all.data, all.len, &n, NULL), SNAP_OK);
    buf_release(&all);
    return n;
}

static void test_lengths(void) {
    tokenizer *tok = NULL;
    token_counter exact = {NULL, 0};
    CU_ASSERT_EQUAL_FATAL(tokenizer_open(&tok, "models/snapmla-10m", NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(tok_encoder_create(&exact.encoder, tok, NULL), SNAP_OK);
    const token_counter *const counters[] = {&exact, &kFour};
    for (size_t c = 0; c < 2; c++)
        for (int kind = 0; longtext_kinds[kind]; kind++)
            for (int64_t length = 2000; length <= 2007; length++) {
                longtext_options o = usual((longtext_kind)kind, DISTANCE_UNLIKE);
                longtext t = {0};
                o.length = length;
                CU_ASSERT_EQUAL_FATAL(longtext_make(&o, 1, "x", counters[c], &t, NULL), SNAP_OK);
                CU_ASSERT_EQUAL(t.tokens, length);
                CU_ASSERT_EQUAL(tokens_of(&t, counters[c]), length);
                longtext_release(&t);
            }
    tok_encoder_free(exact.encoder);
    tokenizer_free(tok);
}

static void test_depth(void) {
    for (int step = 0; step <= 10; step++) {
        longtext_options o = usual(LONGTEXT_NEEDLE, DISTANCE_UNLIKE);
        o.length = 10000;
        o.depth = step / 10.0;
        longtext t = made(o, step);
        double at = (double)(strstr(buf_str(&t.document), buf_str(&t.answer)) - t.document.data) /
                    (double)t.document.len;
        CU_ASSERT_DOUBLE_EQUAL(at, o.depth, 0.02);
        longtext_release(&t);
    }
}

static void test_too_short(void) {
    for (int kind = 0; longtext_kinds[kind]; kind++) {
        longtext_options o = usual((longtext_kind)kind, DISTANCE_UNLIKE);
        longtext t = {0};
        snap_err err = {0};
        o.length = LONGTEXT_SHORTEST;
        o.keys = 3;
        o.values = kind == LONGTEXT_COPY ? 50 : 1;
        o.hops = 10;
        o.keys = kind == LONGTEXT_NEEDLE || kind == LONGTEXT_LOOKUP ? 50 : o.keys;
        snap_status st = longtext_make(&o, 1, "x", &kFour, &t, &err);
        if (st != SNAP_OK) { /* otherwise the text has exactly the wanted length */
            CU_ASSERT_EQUAL(st, SNAP_E_INPUT);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "a length of 64 tokens is too small"));
        } else {
            CU_ASSERT_EQUAL(t.tokens, LONGTEXT_SHORTEST);
        }
        CU_ASSERT(st != SNAP_OK || kind == LONGTEXT_COUNT || kind == LONGTEXT_ORDER);
        longtext_release(&t);
    }
}

/* The same options and seed give the same bytes on every machine. The digest was computed by this
 * program and pins its output. */
static void test_same_everywhere(void) {
    buf all = {0};
    char digest[HASH_HEX];
    for (int kind = 0; longtext_kinds[kind]; kind++) {
        longtext_options o = usual((longtext_kind)kind,
                                   kind == LONGTEXT_LOOKUP ? DISTANCE_CHARACTER : DISTANCE_WORD);
        longtext t = made(o, 3), again = made(o, 3), other = made(o, 4);
        CU_ASSERT_STRING_EQUAL(buf_str(&t.document), buf_str(&again.document));
        CU_ASSERT(strcmp(buf_str(&t.document), buf_str(&other.document)) != 0);
        (void)buf_puts(&all, buf_str(&t.document));
        (void)buf_puts(&all, buf_str(&t.question));
        (void)buf_puts(&all, buf_str(&t.answer));
        longtext_release(&t);
        longtext_release(&again);
        longtext_release(&other);
    }
    CU_ASSERT_EQUAL(hash_bytes(all.data, all.len, digest, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(digest,
                           "85e0b84ceade5bc0dbeec60883da3a113ef67abfe61ead6e87112ca2bc047922");
    buf_release(&all);
}

/* ---- names, filler and conversations ---- */

static int differing(const char *a, const char *b) {
    int n = 0;
    for (; *a && *b; a++, b++)
        n += *a != *b;
    return *a || *b ? 100 : n;
}

static void test_names(void) {
    enum { kNames = 60, kAsked = 2 };
    text_name names[kNames];
    rng r = rng_make(1, 2);
    CU_ASSERT_EQUAL_FATAL(names_draw(DISTANCE_CHARACTER, &r, names, kNames, kAsked, NULL), SNAP_OK);
    for (int i = kAsked; i < kNames; i++)
        CU_ASSERT_EQUAL(differing(names[i].text, names[i % kAsked].text), 1);
    CU_ASSERT_EQUAL_FATAL(names_draw(DISTANCE_WORD, &r, names, kNames, kAsked, NULL), SNAP_OK);
    for (int i = kAsked; i < kNames; i++) {
        const char *a = names[i].text, *b = names[i % kAsked].text;
        bool first = strncmp(a, b, strcspn(b, " ") + 1) == 0;
        bool second = strcmp(strchr(a, ' '), strchr(b, ' ')) == 0;
        CU_ASSERT(first != second);
    }
    for (int i = 0; i < kNames; i++)
        CU_ASSERT(!names_have(names, (size_t)i, names[i].text));
    snap_err err = {0};
    text_name many[200];
    CU_ASSERT_EQUAL(names_draw(DISTANCE_WORD, &r, many, 200, 1, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "fewer than 200 names"));
}

static int by_text(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Sentences hardly repeat, begin with a capital, end with a full stop, and have no digits. */
static void test_filler(void) {
    enum { kSentences = 5000 };
    char **all = calloc(kSentences, sizeof(char *));
    filler f = {.random = rng_make(3, 4)};
    int repeated = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    for (int i = 0; i < kSentences; i++) {
        buf b = {0};
        filler_sentence(&f, &b);
        CU_ASSERT(b.data[0] >= 'A' && b.data[0] <= 'Z' && b.data[b.len - 1] == '.');
        CU_ASSERT_EQUAL(strcspn(b.data, "0123456789@"), b.len);
        all[i] = buf_steal(&b);
    }
    qsort(all, kSentences, sizeof(char *), by_text);
    for (int i = 1; i < kSentences; i++)
        repeated += strcmp(all[i], all[i - 1]) == 0;
    CU_ASSERT(repeated < kSentences / 50);
    for (int i = 0; i < kSentences; i++)
        free(all[i]);
    free(all);
}

/* Computes the right answers of a conversation again from its texts. */
static void test_conversation(void) {
    const conversation_options o = {
        .length = 900, .turns = 40, .keys = 5, .distance = DISTANCE_WORD};
    arena mem = {0};
    conversation *c = arena_alloc(&mem, 1, sizeof *c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL_FATAL(conversation_make(&o, 1, "c", &kFour, &mem, c, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(c->tokens, 900);
    int revised = 0, old = 0;
    for (int turn = 0; turn < o.turns; turn++) {
        char ship[400], statement[500], number[400] = "";
        int age = -1;
        between(c->turns[turn].question, "does the ship ", " carry now?", ship);
        (void)snprintf(statement, sizeof statement, "The ship %s now carries ", ship);
        for (int i = turn; i >= 0 && age < 0; i--)
            if (strstr(c->turns[i].question, statement)) {
                between(c->turns[i].question, statement, " crates", number);
                age = turn - i;
            }
        if (age < 0) {
            (void)snprintf(statement, sizeof statement, "The ship %s carries ", ship);
            between(c->document, statement, " crates", number);
            age = turn + 1;
        }
        CU_ASSERT_STRING_EQUAL(c->turns[turn].answer, number);
        CU_ASSERT_EQUAL(c->turns[turn].age, age);
        revised += age <= turn;
        old += age > 2;
    }
    CU_ASSERT(revised > 10 && old > 5);
    arena_release(&mem);
}

/* ---- task files ---- */

static snap_status parsed(const char *part, const char *more, task_file **out, snap_err *err) {
    char text[1200];
    (void)snprintf(
        text, sizeof text,
        "{\"task\": \"t\", \"generator\": %s, \"prompt\": \"{{document}} {{question}}\", "
        "\"answer\": \"{{answer}}\", \"extract\": {\"name\": \"regex\", \"regex\": "
        "\"Answer: *(.+)\"}, \"grader\": {\"name\": \"exact\", \"ignore_case\": true, "
        "\"ignore_punctuation\": true}%s}",
        part, more);
    return task_file_parse(text, strlen(text), "t.json", NULL, out, err);
}

static void test_hostile_options(void) {
    static const struct {
        const char *part, *more, *message;
    } bad[] = {
        {"{}", "", "needs a 'kind'"},
        {"{\"kind\": \"haystack\"}", "", "must be one of needle"},
        {"{\"kind\": \"needle\"}", "", "needs 'lengths'"},
        {"{\"kind\": \"needle\", \"lengths\": []}", "", "a list of 1 to 32 numbers"},
        {"{\"kind\": \"needle\", \"lengths\": [0]}", "", "numbers 64..2097152"},
        {"{\"kind\": \"needle\", \"lengths\": [1e18]}", "", "numbers 64..2097152"},
        {"{\"kind\": \"needle\", \"lengths\": [\"9\"]}", "", "numbers 64..2097152"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"depths\": [1.01]}", "", "numbers 0..1"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"depths\": [-1]}", "", "numbers 0..1"},
        {"{\"kind\": \"count\", \"lengths\": [500], \"depths\": [1]}", "", "not an option of this"},
        {"{\"kind\": \"count\", \"lengths\": [500], \"hops\": 1}", "", "not an option of this"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"keys\": 0}", "", "an integer 1..400"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"keys\": 400, \"values\": 50}", "",
         "more than 512"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"keys\": 2, \"queries\": 3}", "",
         "at most 'keys'"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"distance\": \"far\"}", "",
         "unlike, word or character"},
        {"{\"kind\": \"lookup\", \"lengths\": [500], \"distance\": \"word\"}", "",
         "must be unlike or character"},
        {"{\"kind\": \"needle\", \"lengths\": [500], \"items\": 0}", "", "an integer 1..10000"},
        {"{\"kind\": \"needle\", \"lengths\": [500]}", ", \"data\": \"a.jsonl\"",
         "does not go with 'generator'"},
        {"{\"kind\": \"needle\", \"lengths\": [500]}", ", \"turns\": {}", "needs 'history'"},
        {"{\"kind\": \"needle\", \"lengths\": [500]}",
         ", \"turns\": {\"history\": \"h\", \"answers\": \"own\"}", "needs 'conversation'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        task_file *f = NULL;
        snap_err err = {0};
        CU_ASSERT_EQUAL(parsed(bad[i].part, bad[i].more, &f, &err), SNAP_E_INPUT);
        if (!strstr(err.text, bad[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
        task_file_free(f);
    }
}

static grade_verdict verdict(const task_set *set, const char *gold, const char *response) {
    grade_result r;
    grade_input in = {.response = {response, strlen(response)}};
    CU_ASSERT_EQUAL_FATAL(grade_response(set->grader, gold, in, &r, NULL), SNAP_OK);
    return r.verdict;
}

static void test_set(void) {
    task_file *f = NULL;
    task_set set;
    char response[100];
    task_options options = {.lengths = "400,600", .chars_per_token = 5};
    CU_ASSERT_EQUAL_FATAL(parsed("{\"kind\": \"needle\", \"lengths\": [500], \"depths\": [0, 1], "
                                 "\"items\": 2, \"keys\": 2, \"values\": 2}",
                                 ", \"groups\": [\"length\", \"depth\"]", &f, NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 0, &options, &set, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(set.n, 8);
    CU_ASSERT_STRING_EQUAL(set.problems[1].id, "600-at0-unlike-1");
    CU_ASSERT_STRING_EQUAL(set.problems[3].groups[0], "600");
    CU_ASSERT_STRING_EQUAL(set.problems[3].groups[1], "1");
    const char *gold = set.problems[0].gold; /* "123456, 654321" */
    (void)snprintf(response, sizeof response, "The codes are these.\nAnswer: %s", gold);
    CU_ASSERT_EQUAL(verdict(&set, gold, response), GRADE_CORRECT);
    response[strlen(response) - 1] ^= 1; /* another last digit */
    CU_ASSERT_EQUAL(verdict(&set, gold, response), GRADE_WRONG);
    (void)snprintf(response, sizeof response, "Answer: %.6s, %.6s", gold + 8, gold);
    CU_ASSERT_EQUAL(verdict(&set, gold, response), GRADE_WRONG);
    (void)snprintf(response, sizeof response, "Answer: %.6s", gold);
    CU_ASSERT_EQUAL(verdict(&set, gold, response), GRADE_WRONG);
    CU_ASSERT_EQUAL(verdict(&set, gold, gold), GRADE_UNPARSED);
    char all[HASH_HEX];
    memcpy(all, set.sha256, sizeof all);
    task_set_release(&set);
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 3, &options, &set, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(set.n, 3);
    CU_ASSERT_STRING_EQUAL(set.sha256, all); /* the digest does not depend on the limit */
    task_set_release(&set);
    options.chars_per_token = 4;
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 3, &options, &set, NULL), SNAP_OK);
    CU_ASSERT(strcmp(set.sha256, all) != 0);
    task_set_release(&set);
    static const char *const lengths[] = {"x", "", "63", "1,,2", "99999999999"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        options.lengths = lengths[i];
        CU_ASSERT_EQUAL(task_load(task_file_spec(f), ".", 0, &options, &set, NULL), SNAP_E_USAGE);
        task_set_release(&set);
    }
    task_file_free(f);
}

static void test_turns(void) {
    task_file *f = NULL;
    task_set set;
    CU_ASSERT_EQUAL_FATAL(
        parsed("{\"kind\": \"turns\", \"lengths\": [500], \"items\": 2, \"turns\": 3}",
               ", \"system\": \"{{document}}\", \"turns\": {\"history\": \"history\", "
               "\"conversation\": \"conversation\", \"answers\": \"own\"}",
               &f, NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(task_load(task_file_spec(f), ".", 0, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 6 && set.turns == 3 && task_span(&set, 0) == 3 && task_span(&set, 4) == 2);
    for (size_t i = 0; i < 6; i++) {
        const task_problem *p = &set.problems[i];
        CU_ASSERT(p->conversation == i / 3 && p->turn == (int)(i % 3));
        CU_ASSERT_EQUAL(p->n_messages, 2 + 2 * p->turn);
        CU_ASSERT_STRING_EQUAL(p->messages[p->n_messages - 1].role, "user");
    }
    CU_ASSERT_STRING_EQUAL(set.problems[1].messages[2].role, "assistant");
    CU_ASSERT_STRING_EQUAL(set.problems[1].messages[2].content + strlen(conversation_answer),
                           set.problems[0].gold);
    task_set_release(&set);
    task_file_free(f);
}

CU_TestInfo tests_longtext[] = {
    {"answers follow from the texts", test_answers},
    {"several codes of several things", test_several},
    {"a text has exactly as many tokens as asked for", test_lengths},
    {"a fact stands at the chosen depth", test_depth},
    {"lengths that are too small", test_too_short},
    {"the same bytes everywhere", test_same_everywhere},
    {"names differ as their distance says", test_names},
    {"filler hardly repeats itself", test_filler},
    {"answers of a conversation follow from its texts", test_conversation},
    {"hostile options", test_hostile_options},
    {"a generated set", test_set},
    {"a conversation is a task with several turns", test_turns},
    CU_TEST_INFO_NULL};
