/* ifeval.c - IFEval: 541 prompts with 834 instructions that a program can check.
 *
 * Rows as in google-research/instruction_following_eval: {"key", "prompt", "instruction_id_list",
 * "kwargs"}. The prompt is used unchanged. A strict check uses the response after the reasoning. A
 * loose check accepts any of eight variants: that response; the response without its first line,
 * without its last line, or without both; and each of these four without "*". */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "evals/grade_parts.h"
#include "evals/ifeval/instruction.h"
#include "evals/ifeval/letters.h"
#include "evals/task_rows.h"

enum { kInstructions = 32, kVariants = 8 };

/* ---- golds ---- */

static snap_status check_list(const js *gold, snap_err *err) {
    const js *ids = js_get_array(gold, "instruction_id_list"), *all = js_get_array(gold, "kwargs");
    size_t n = js_len(ids);
    if (!n || n > kInstructions || js_len(all) != n)
        return err_set(err, SNAP_E_INPUT,
                       "needs an 'instruction_id_list' of 1 to %d, and as many 'kwargs'",
                       kInstructions);
    for (size_t i = 0; i < n; i++) {
        const char *id = js_str(js_at(ids, i));
        const instruction *kind = id ? instruction_find(id) : NULL;
        if (!kind)
            return err_set(err, SNAP_E_INPUT, "unknown instruction '%.60s'", id ? id : "");
        snap_status st = instruction_check(kind, js_at(all, i), err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

static snap_status check_gold(const char *gold, snap_err *err) {
    js *v = js_parse(gold, strlen(gold), "gold", err);
    snap_status st = v ? check_list(v, err) : SNAP_E_INPUT;
    js_free(v);
    return st;
}

/* ---- variants of a response ---- */

static span first_line_gone(span s) {
    const char *end = s.n ? memchr(s.s, '\n', s.n) : NULL;
    return end ? (span){end + 1, (size_t)(s.s + s.n - end - 1)} : (span){s.s, 0};
}

static span last_line_gone(span s) {
    while (s.n && s.s[s.n - 1] != '\n')
        s.n--;
    return s.n ? (span){s.s, s.n - 1} : s;
}

static void put_without_stars(buf *out, span s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.s[i] != '*')
            (void)buf_append(out, s.s + i, 1);
}

/* Makes the eight variants of the loose check, the response itself first. @out holds those without
 * stars. */
static void make_variants(span s, buf out[kVariants / 2], span v[kVariants]) {
    v[0] = s;
    v[1] = letters_trim(first_line_gone(s));
    v[2] = letters_trim(last_line_gone(s));
    v[3] = letters_trim(last_line_gone(first_line_gone(s)));
    for (int i = 0; i < kVariants / 2; i++) {
        put_without_stars(&out[i], v[i]);
        v[kVariants / 2 + i] = (span){buf_str(&out[i]), out[i].len};
    }
}

/* ---- grading ---- */

typedef struct {
    size_t n, strict, loose; /* number of instructions; how many are followed in the strict and in
                                the loose check */
    buf broken;              /* names of instructions that fail the strict check */
} tally;

static void judge(const js *gold, const span v[kVariants], const instruction_data *data, tally *t) {
    const js *ids = js_get_array(gold, "instruction_id_list"), *all = js_get_array(gold, "kwargs");
    t->n = js_len(ids);
    for (size_t i = 0; i < t->n; i++) {
        const char *id = js_str(js_at(ids, i));
        const instruction *kind = instruction_find(id);
        bool follows = false;
        for (int k = 0; k < kVariants && !follows; k++) {
            follows =
                letters_trim(v[k]).n > 0 && instruction_follows(kind, js_at(all, i), v[k], data);
            t->strict += follows && k == 0;
            if (k == 0 && !follows)
                (void)buf_printf(&t->broken, "%s%s", t->broken.len ? ", " : "not followed: ", id);
        }
        t->loose += follows;
    }
}

static void set_result(grade_result *r, const tally *t, bool blank) {
    const double n = (double)t->n;
    r->also[0] = (grade_score){t->loose == t->n ? 1 : 0, 1};
    r->also[1] = (grade_score){(double)t->strict / n, n};
    r->also[2] = (grade_score){(double)t->loose / n, n};
    if (blank)
        return;
    bool all = t->strict == t->n;
    r->rule = "instructions";
    r->verdict = all ? GRADE_CORRECT : GRADE_WRONG;
    r->reason = all                ? "every instruction is followed"
                : t->loose == t->n ? "followed in the loose reading alone"
                                   : "an instruction is not followed";
    grade_keep(r, all ? (span){"all followed", 12} : (span){buf_str(&t->broken), t->broken.len});
}

static grade_result grade_with(const language_profiles *languages, const punkt_params *sentences,
                               const char *gold, grade_input in) {
    const instruction_data data = {languages, sentences};
    grade_result r = {.verdict = GRADE_UNPARSED};
    bool thinking = false;
    buf text = {0}, bare[kVariants / 2] = {{0}};
    span v[kVariants];
    tally t = {0};
    js *parsed = js_parse(gold, strlen(gold), "gold", NULL);
    span answer = in.extracted ? in.response : extract_visible(in.response, &thinking);
    r.reason = grade_why_nothing(in, answer, thinking);
    if (answer.s != in.response.s)
        answer = letters_trim(answer); /* removes the white space around an answer that follows
                                          reasoning */
    text_append_utf8_lossy(&text, answer.s, answer.n);
    make_variants((span){buf_str(&text), text.len}, bare, v);
    judge(parsed, v, &data, &t);
    set_result(&r, &t, letters_trim(v[0]).n == 0);
    for (int i = 0; i < kVariants / 2; i++)
        buf_release(&bare[i]);
    buf_release(&text);
    buf_release(&t.broken);
    js_free(parsed);
    return r;
}

static grade_result grade(const char *gold, grade_input in) {
    return grade_with(language_installed(), NULL, gold, in);
}

static grade_result grade_plain(const char *gold, grade_input in) {
    return grade_with(NULL, NULL, gold, in);
}

static grade_result grade_punkt(const char *gold, grade_input in) {
    return grade_with(language_installed(), punkt_installed(NULL), gold, in);
}

static grade_result grade_plain_punkt(const char *gold, grade_input in) {
    return grade_with(NULL, punkt_installed(NULL), gold, in);
}

#define METRICS                                                                                    \
    { "prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose" }

const grader grader_ifeval = {
    .id = "ifeval-2", .check_gold = check_gold, .grade = grade, .metrics = METRICS};
const grader grader_ifeval_plain = {
    .id = "ifeval-plain-2", .check_gold = check_gold, .grade = grade_plain, .metrics = METRICS};
const grader grader_ifeval_punkt = {
    .id = "ifeval-2+punkt", .check_gold = check_gold, .grade = grade_punkt, .metrics = METRICS};
const grader grader_ifeval_plain_punkt = {.id = "ifeval-plain-2+punkt",
                                          .check_gold = check_gold,
                                          .grade = grade_plain_punkt,
                                          .metrics = METRICS};

static const grader *pick_grader(const char *data) {
    if (punkt_installed(data))
        return language_installed() ? &grader_ifeval_punkt : &grader_ifeval_plain_punkt;
    return language_installed() ? &grader_ifeval : &grader_ifeval_plain;
}

/* ---- rows ---- */

/* Builds the gold: "instruction_id_list" and "kwargs" of a row, without null arguments. NULL if the
 * row has none or memory is exhausted. */
static js *gold_of(const js *row) {
    if (!js_get(row, "instruction_id_list"))
        return NULL;
    const js *all = js_get_array(row, "kwargs");
    js *gold = js_new_object(), *kwargs = js_new_array();
    bool ok = gold && kwargs &&
              js_set_new(gold, "instruction_id_list", js_copy(js_get(row, "instruction_id_list")));
    for (size_t i = 0; i < js_len(all) && ok; i++) {
        js *args = js_new_object(), *from = js_at(all, i);
        ok = js_push_new(kwargs, args);
        for (void *it = js_is_object(from) ? js_first(from) : NULL; it && ok;
             it = js_next(from, it))
            if (!js_is_null(js_value(it)))
                ok = js_set_new(args, js_key(it), js_copy(js_value(it)));
    }
    ok = js_set_new(gold, "kwargs", kwargs) && ok; /* takes ownership of the list even if it
                                                      fails */
    if (ok)
        return gold;
    js_free(gold);
    return NULL;
}

static snap_status keep_gold(const js *row, task_rows *r, task_row *out, const char *where,
                             snap_err *err) {
    snap_err why = {0};
    buf text = {0};
    if (check_list(row, &why) != SNAP_OK)
        return err_set(err, why.code, "%s: %s", where, why.text);
    js *gold = gold_of(row);
    snap_status st = gold ? js_write(gold, JS_COMPACT, &text, err)
                          : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    if (st == SNAP_OK)
        st = row_keep(r, buf_str(&text), &out->gold, where, err);
    buf_release(&text);
    js_free(gold);
    return st;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    char key[24];
    const char *prompt = row_text(row, (const char *const[]){"prompt", NULL});
    snap_status st = SNAP_OK;
    if (!prompt)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'prompt'", where);
    TRY(row_keep(r, prompt, &out->prompt, where, err));
    TRY(keep_gold(row, r, out, where, err));
    (void)snprintf(key, sizeof key, "%lld", (long long)js_get_int(row, "key", 0));
    if (js_is_int(js_get(row, "key")))
        TRY(row_keep(r, key, &out->id, where, err));
cleanup:
    return st;
}

const task_spec task_ifeval = {
    .name = "ifeval",
    .title = "IFEval",
    .files = {"ifeval/input_data.jsonl", "ifeval.jsonl", "input_data.jsonl"},
    .samples = 1,
    .grader = &grader_ifeval,
    .pick_grader = pick_grader,
    .read_row = read_row,
    .gold_of = gold_of};
