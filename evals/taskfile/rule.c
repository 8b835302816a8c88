#include "evals/taskfile/rule.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/text.h"
#include "evals/grade_parts.h"

void rule_release(rule *r) {
    pattern_release(&r->regex);
}

/* ---- finding the answer ---- */

static bool find_regex(rule *r, span text, extraction *x) {
    span groups[PATTERN_GROUPS] = {{0}};
    bool found = r->first ? pattern_find(&r->regex, text, 0, groups)
                          : pattern_find_last(&r->regex, text, groups);
    if (!found || !groups[r->group].s)
        return false;
    *x = (extraction){"regex", span_trim(groups[r->group])};
    return true;
}

/* Finds the answer. @complete: the response and its reasoning were not cut off. */
static bool find(rule *r, span text, bool complete, extraction *x, grade_result *out) {
    extract_box box;
    switch (r->find) {
    case FIND_BOXED:
        box = extract_boxed(text, x);
        out->open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
        return box == EXTRACT_BOX || box == EXTRACT_EARLIER_BOX;
    case FIND_LAST_NUMBER:
        return complete && extract_last_number(text, x);
    case FIND_REGEX:
        return find_regex(r, text, x);
    case FIND_WHOLE:
        *x = (extraction){"whole", span_trim(text)};
        return complete;
    default: /* a letter, found as grader_letter does */
        box = extract_boxed(text, x);
        out->open_box = box == EXTRACT_OPEN_BOX || box == EXTRACT_EARLIER_BOX;
        return box != EXTRACT_OPEN_BOX && extract_letter(text, r->last, complete, x);
    }
}

/* ---- comparing an answer with the gold ---- */

static void fold(const rule *r, span s, buf *out) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.s[i];
        char small = (char)(c < 128 ? tolower(c) : c);
        if (!(r->ignore_punctuation && c < 128 && ispunct(c)))
            (void)buf_append(out, r->ignore_case ? &small : &s.s[i], 1);
    }
}

static bool same_span(const rule *r, span answer, span gold) {
    buf a = {0}, b = {0};
    fold(r, answer, &a);
    fold(r, span_trim(gold), &b);
    span x = span_trim((span){buf_str(&a), a.len}), y = span_trim((span){buf_str(&b), b.len});
    bool same = !a.failed && !b.failed && x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
    buf_release(&a);
    buf_release(&b);
    return same;
}

static bool same_text(const rule *r, span answer, const char *gold) {
    if (!r->any_line)
        return same_span(r, answer, (span){gold, strlen(gold)});
    for (size_t n; *gold; gold += n + (gold[n] == '\n')) {
        n = strcspn(gold, "\n");
        if (!text_is_blank(gold, n) && same_span(r, answer, (span){gold, n}))
            return true;
    }
    return false;
}

static bool same_regex(span answer, const char *gold) {
    pattern p = {.regex = gold, .flags = PATTERN_UTF | PATTERN_AT_START | PATTERN_AT_END};
    bool same = pattern_compile(&p) && pattern_find(&p, answer, 0, NULL);
    pattern_release(&p);
    return same;
}

static void compare_letter(const rule *r, const char *gold, span answer, grade_result *out) {
    extraction x;
    if (!extract_bare_letter(answer, r->last, &x)) {
        out->reason = "not a letter";
        return;
    }
    char letter = (char)toupper((unsigned char)x.answer.s[0]);
    grade_keep(out, (span){&letter, 1});
    out->verdict = letter == gold[0] ? GRADE_CORRECT : GRADE_WRONG;
    out->reason = letter == gold[0] ? "the same letter" : "a different letter";
}

static void compare(const rule *r, math_policy policy, const char *gold, const extraction *x,
                    grade_result *out) {
    if (r->same == SAME_BY) {
        const grader *g = r->by[policy];
        bool open_box = out->open_box;
        *out = g->grade(gold, (grade_input){.response = x->answer, .extracted = true});
        out->open_box = open_box;
    } else if (r->same == SAME_LETTER) {
        compare_letter(r, gold, x->answer, out);
    } else {
        bool text = r->same == SAME_TEXT;
        bool same = text ? same_text(r, x->answer, gold) : same_regex(x->answer, gold);
        grade_keep(out, x->answer);
        out->verdict = same ? GRADE_CORRECT : GRADE_WRONG;
        out->reason = text ? (same ? "the same text" : "a different text")
                           : (same ? "matches the gold" : "does not match the gold");
    }
    out->rule = x->rule;
}

static grade_result apply(rule *r, math_policy policy, const char *gold, grade_input in) {
    grade_result out = {.verdict = GRADE_UNPARSED, .reason = "empty response"};
    extraction x = {"given", span_trim(in.response)};
    bool thinking = false;
    if (r->find == FIND_OWN && r->same == SAME_BY)
        return r->by[policy]->grade(gold, in);
    if (!in.extracted) {
        span text = extract_visible(in.response, &thinking);
        out.reason = grade_why_nothing(in, text, thinking);
        if (!find(r, text, !in.truncated && !thinking, &x, &out))
            x.answer.n = 0;
    }
    if (x.answer.n)
        compare(r, policy, gold, &x, &out);
    return out;
}

static grade_result grade_by(const grader *g, const char *gold, grade_input in) {
    const rule_grader *rules = (const rule_grader *)g;
    grade_result out = apply(&rules->rules[0], rules->policy, gold, in);
    for (int i = 1; i < rules->n; i++) {
        grade_result r = apply(&rules->rules[i], rules->policy, gold, in);
        out.also[i - 1] = (grade_score){r.verdict == GRADE_CORRECT, 1};
    }
    return out;
}

/* ---- golds ---- */

static snap_status check_pattern(const char *gold, snap_err *err) {
    pattern p = {.regex = gold, .flags = PATTERN_UTF | PATTERN_AT_START | PATTERN_AT_END};
    bool valid = pattern_compile(&p);
    pattern_release(&p);
    return valid
               ? SNAP_OK
               : err_set(err, SNAP_E_INPUT, "the gold is not a regular expression: '%.60s'", gold);
}

static snap_status check_one(const rule *r, const char *gold, snap_err *err) {
    if (r->same == SAME_BY)
        return r->by[MATH_TRUTH]->check_gold(gold, err);
    if (r->same == SAME_REGEX)
        return check_pattern(gold, err);
    if (r->same == SAME_LETTER && (gold[0] < 'A' || gold[0] > r->last || gold[1]))
        return err_set(err, SNAP_E_INPUT, "the gold answer must be a letter A..%c", r->last);
    if (text_is_blank(gold, strlen(gold)))
        return err_set(err, SNAP_E_INPUT, "the gold answer is empty");
    return SNAP_OK;
}

static snap_status check_by(const grader *g, const char *gold, snap_err *err) {
    const rule_grader *rules = (const rule_grader *)g;
    snap_status st = SNAP_OK;
    for (int i = 0; i < rules->n && st == SNAP_OK; i++)
        st = check_one(&rules->rules[i], gold, err);
    return st;
}

/* ---- the grader ---- */

/* Writes the id of a rule, such as "regex-1+aime-5". */
static int write_id(const rule *r, math_policy policy, char *out, size_t cap) {
    static const char *const found[] = {"", "boxed-1+", "last-number-1+", "regex-1+", "whole-1+"};
    if (r->same == SAME_BY)
        return snprintf(out, cap, "%s%s", found[r->find], r->by[policy]->id);
    if (r->same == SAME_LETTER)
        return snprintf(out, cap, "%s%s-to-%c", found[r->find], grader_letter.id, r->last);
    return snprintf(out, cap, "%s%s%s%s%s", found[r->find],
                    r->same == SAME_TEXT ? "text-1" : "pattern-1", r->ignore_case ? "-no-case" : "",
                    r->ignore_punctuation ? "-no-punctuation" : "", r->any_line ? "-any-line" : "");
}

void rule_grader_init(rule_grader *out, rule *rules, int n, math_policy policy,
                      const char *const *metrics) {
    size_t at = 0;
    *out = (rule_grader){.rules = rules, .n = n, .policy = policy};
    out->base =
        (grader){.id = out->id,
                 .mathematical = rules[0].same == SAME_BY && rules[0].by[policy]->mathematical,
                 .check_by = check_by,
                 .grade_by = grade_by};
    for (int i = 0; i < n; i++) {
        if (metrics)
            out->base.metrics[i] = metrics[i];
        if (at + 2 < sizeof out->id) {
            if (i)
                out->id[at++] = '/';
            at += (size_t)write_id(&rules[i], policy, out->id + at, sizeof out->id - at);
        }
    }
}
