/* grade_zebra.c - grades grids as JSON (ZebraLogic). A puzzle is solved if every cell is right. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"
#include "evals/grade_parts.h"

enum { kHouses = 32, kColumns = 32, kTries = 64 };

static const char kWithheld[] = "___"; /* what the public copy has in each cell instead of a
                                          solution */

/* ---- the gold ---- */

static const js *cell_of(const js *solution, size_t house, size_t column) {
    return js_at(js_at(js_get_array(solution, "rows"), house), column);
}

static snap_status check_shape(const js *solution, snap_err *err) {
    const js *header = js_get_array(solution, "header"), *rows = js_get_array(solution, "rows");
    size_t columns = js_len(header), houses = js_len(rows);
    if (columns < 2 || columns > kColumns || !text_equal(js_str(js_at(header, 0)), "House") ||
        !houses || houses > kHouses)
        return err_set(err, SNAP_E_INPUT,
                       "the solution needs a 'header' that begins with \"House\", and 'rows'");
    for (size_t k = 0; k < columns; k++)
        if (!js_str(js_at(header, k)))
            return err_set(err, SNAP_E_INPUT, "the solution's header must be text");
    for (size_t i = 0; i < houses; i++)
        if (js_len(js_at(rows, i)) != columns)
            return err_set(err, SNAP_E_INPUT, "row %zu of the solution needs %zu cells", i + 1,
                           columns);
    return SNAP_OK;
}

static snap_status check_cells(const js *solution, snap_err *err) {
    size_t columns = js_len(js_get_array(solution, "header"));
    for (size_t i = 0; i < js_len(js_get_array(solution, "rows")); i++) {
        for (size_t k = 1; k < columns; k++) {
            const char *cell = js_str(cell_of(solution, i, k));
            if (!cell)
                return err_set(err, SNAP_E_INPUT, "the solution's cells must be text");
            if (strcmp(cell, kWithheld) == 0)
                return err_set(err, SNAP_E_INPUT,
                               "the solution is withheld: this is the public copy; another, such "
                               "as WildEval/ZebraLogic, has it");
        }
    }
    return SNAP_OK;
}

static snap_status check_gold(const char *gold, snap_err *err) {
    js *solution = js_parse(gold, strlen(gold), "gold", err);
    if (!solution)
        return SNAP_E_INPUT;
    snap_status st = js_is_object(solution)
                         ? check_shape(solution, err)
                         : err_set(err, SNAP_E_INPUT, "the gold must be a solution as JSON");
    if (st == SNAP_OK)
        st = check_cells(solution, err);
    js_free(solution);
    return st;
}

/* ---- the answer ---- */

/* The last outermost {...} with balanced braces. */
static span last_braces(span text) {
    span found = {0};
    size_t depth = 0, start = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.s[i] == '{' && depth++ == 0)
            start = i;
        if (text.s[i] == '}' && depth && --depth == 0)
            found = (span){text.s + start, i + 1 - start};
    }
    return found;
}

/* The {...} at the start of a text; length 0 if it is not closed. */
static span first_braces(span text) {
    size_t depth = 0;
    for (size_t i = 0; i < text.n; i++) {
        depth += text.s[i] == '{';
        if (text.s[i] == '}' && --depth == 0)
            return (span){text.s, i + 1};
    }
    return (span){text.s, 0};
}

/* Parses the object in @text and returns it if it has a "solution" that is an object; else NULL.
 * Newlines are removed first, because models break their strings with them. */
static js *parse_answer(span text) {
    buf line = {0};
    for (size_t i = 0; i < text.n;) {
        const char *end = memchr(text.s + i, '\n', text.n - i);
        size_t n = end ? (size_t)(end - text.s) - i : text.n - i;
        (void)buf_append(&line, text.s + i, n);
        i += n + 1;
    }
    js *answer = line.failed ? NULL : js_parse(buf_str(&line), line.len, "answer", NULL);
    if (answer && !js_get_object(answer, "solution")) {
        js_free(answer);
        answer = NULL;
    }
    buf_release(&line);
    return answer;
}

/* Finds the answer: the last outermost object, as ZeroEval does. If that has no "solution", for
 * example because of braces in prose, tries up to kTries objects that start before the last
 * "solution", from the nearest one backwards. */
static js *find_answer(span text, const char **rule) {
    span whole = last_braces(text);
    js *answer = whole.n ? parse_answer(whole) : NULL;
    *rule = "last_json";
    const char *key = NULL, *end = text.s + text.n;
    for (const char *at = text.s; (at = memmem(at, (size_t)(end - at), "\"solution\"", 10)); at++)
        key = at;
    size_t at = key ? (size_t)(key - text.s) : 0;
    for (int tries = 0; !answer && at > 0 && tries < kTries; at--) {
        if (text.s[at - 1] != '{')
            continue;
        tries++;
        span object = first_braces((span){text.s + at - 1, text.n - at + 1});
        answer = object.n ? parse_answer(object) : NULL;
        *rule = "inner_json";
    }
    return answer;
}

/* The text of a cell. Models may wrap it in a list or write an integer. */
static span text_of(const js *cell, char number[32]) {
    if (js_is_array(cell))
        cell = js_at(cell, 0);
    const char *s = js_str(cell);
    if (js_is_int(cell)) {
        (void)snprintf(number, 32, "%lld", (long long)js_int(cell));
        s = number;
    }
    return s ? span_trim((span){s, strlen(s)}) : (span){0};
}

static bool same_cell(const js *want, const js *got) {
    char a[32], b[32];
    span x = text_of(want, a), y = text_of(got, b);
    return y.n && x.n == y.n && strncasecmp(x.s, y.s, x.n) == 0;
}

/* Number of right cells; *all: number of cells. The column "House" is not counted. */
static size_t count_cells(const js *solution, const js *answer, size_t *all) {
    const js *header = js_get_array(solution, "header"), *table = js_get_object(answer, "solution");
    size_t houses = js_len(js_get_array(solution, "rows")), columns = js_len(header), right = 0;
    *all = houses * (columns - 1);
    for (size_t i = 0; i < houses; i++) {
        char house[32];
        (void)snprintf(house, sizeof house, "House %zu", i + 1);
        const js *row = js_get_object(table, house);
        for (size_t k = 1; row && k < columns; k++)
            right += same_cell(cell_of(solution, i, k), js_get(row, js_str(js_at(header, k))));
    }
    return right;
}

static void keep_answer(grade_result *r, const js *answer) {
    buf text = {0};
    if (js_write(js_get_object(answer, "solution"), JS_COMPACT, &text, NULL) == SNAP_OK)
        grade_keep(r, (span){buf_str(&text), text.len});
    buf_release(&text);
}

static grade_result grade(const char *gold, grade_input in) {
    grade_result r = {.verdict = GRADE_UNPARSED};
    bool thinking = false;
    const char *rule;
    size_t all;
    span text = in.extracted ? in.response : extract_visible(in.response, &thinking);
    js *solution = js_parse(gold, strlen(gold), "gold", NULL), *answer = find_answer(text, &rule);
    size_t right = count_cells(solution, answer, &all);
    r.also[0] = (grade_score){.value = (double)right / (double)all, .weight = (double)all};
    r.reason = grade_why_nothing(in, text, thinking);
    if (answer) {
        keep_answer(&r, answer);
        r.rule = rule;
        r.verdict = right == all ? GRADE_CORRECT : GRADE_WRONG;
        r.reason = right == all ? "every cell is right" : "cells are wrong or missing";
    }
    js_free(answer);
    js_free(solution);
    return r;
}

const grader grader_zebra = {
    .id = "zebra-1", .check_gold = check_gold, .grade = grade, .metrics = {"puzzle", "cell"}};
