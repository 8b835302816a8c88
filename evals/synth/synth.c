#include "evals/synth/synth.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "evals/synth/family.h"
#include "evals/task_rows.h"

/* kParts: about one problem in eight is held out. Then kAttempts valid draws all miss a split with
 * a probability below 1e-50. */
enum { kParts = 8, kAttempts = 4096, kFamilies = 16 };

/* Limits of a solution's length, as pieces() counts it: a long solution has at least kShortestLong,
 * any solution at most kLongest. */
enum { kShortestLong = 1050, kLongest = 7900 };

static const char *const style_names[] = {"aime", "math", "gpqa", "code"};
static const char *const split_names[] = {"train", "heldout"};
static const synth_family *const families[] = {synth_aime_families, synth_math_families,
                                               synth_gpqa_families, synth_code_families};

/* The text after each style's problem. */
static const char *const instructions[] = {
    kRowBoxed, kRowBoxed,
    "\n\nThink step by step. The last line of your answer is 'Answer: X', where X is A, B, C or D.",
    "\nThink step by step, then write a Python program that reads standard input and writes "
    "standard output."};

const char *synth_style_name(synth_style s) {
    return style_names[s];
}

snap_status synth_style_parse(const char *name, synth_style *out, snap_err *err) {
    for (int i = 0; i < SYNTH_STYLES; i++)
        if (strcmp(name, style_names[i]) == 0) {
            *out = (synth_style)i;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE, "unknown style '%.40s' (aime, math, gpqa, code)", name);
}

snap_status synth_split_parse(const char *name, synth_split *out, snap_err *err) {
    *out = strcmp(name, split_names[SYNTH_HELDOUT]) == 0 ? SYNTH_HELDOUT : SYNTH_TRAIN;
    if (*out == SYNTH_HELDOUT || strcmp(name, split_names[SYNTH_TRAIN]) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "unknown split '%.40s' (train, heldout)", name);
}

synth_split synth_split_of(const char *params) {
    uint64_t h = rng_stream_of(params);
    return (h ^ h >> 32) % kParts == 0 ? SYNTH_HELDOUT : SYNTH_TRAIN;
}

/* ---- one problem ---- */

static void clear(synth_problem *p) {
    buf_clear(&p->params);
    buf_clear(&p->problem);
    buf_clear(&p->solution);
    buf_clear(&p->answer);
    for (int i = 0; i < SYNTH_TESTS; i++) {
        buf_clear(&p->input[i]);
        buf_clear(&p->output[i]);
    }
    p->n_tests = 0;
}

static snap_status check(const synth_problem *p, snap_err *err) {
    snap_status st;
    TRY(buf_check(&p->params, "a problem", err));
    TRY(buf_check(&p->problem, "a problem", err));
    TRY(buf_check(&p->solution, "a solution", err));
    TRY(buf_check(&p->answer, "an answer", err));
    for (int i = 0; i < p->n_tests && st == SNAP_OK; i++) {
        st = buf_check(&p->input[i], "a test", err);
        if (st == SNAP_OK)
            st = buf_check(&p->output[i], "a test", err);
    }
cleanup:
    return st;
}

static const synth_family *choose(const synth_family *all, int level, rng *r) {
    const synth_family *fits[kFamilies];
    int n = 0;
    for (const synth_family *f = all; f->name; f++)
        if (f->from <= level && level <= f->to)
            fits[n++] = f;
    return fits[draw(r, 0, n - 1)];
}

/* Estimates the smallest number of tokens of a text for a tokenizer with single digits: counts
 * capitals, runs of small letters that follow no capital, digits, newlines and runs of signs. */
static int pieces(const char *s) {
    int n = 0;
    for (bool word = false, sign = false; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z'), upper = *s >= 'A' && *s <= 'Z',
             digit = *s >= '0' && *s <= '9', blank = *s == ' ' || *s == '\n',
             other = !letter && !upper && !digit && !blank;
        n += !((letter && word) || (other && sign) || *s == ' ');
        word = letter || upper;
        sign = other;
    }
    return n;
}

static bool is_long_enough(const synth_problem *p) {
    int n = pieces(buf_str(&p->solution));
    return n <= kLongest && (p->level < SYNTH_LONG || n >= kShortestLong);
}

snap_status synth_make(synth_style style, int level, synth_split split, uint64_t seed,
                       uint64_t number, synth_problem *out, snap_err *err) {
    if (level < 1 || level > SYNTH_LEVELS)
        return err_set(err, SNAP_E_USAGE, "level %d: must be 1 to %d", level, SYNTH_LEVELS);
    out->style = style;
    out->level = level;
    (void)snprintf(out->id, sizeof out->id, "%s-%d-%s-%llu", style_names[style], level,
                   split_names[split], (unsigned long long)number);
    rng r = rng_make(seed, rng_stream_of(out->id));
    const synth_family *f = choose(families[style], level, &r);
    out->family = f->name;
    for (int i = 0; i < kAttempts; i++) {
        clear(out);
        say(&out->params, "%s", f->name);
        bool made = f->make(out, &r);
        snap_status st = check(out, err);
        if (st != SNAP_OK)
            return st;
        if (made && is_long_enough(out) && synth_split_of(buf_str(&out->params)) == split) {
            (void)buf_puts(&out->problem, instructions[style]);
            return buf_check(&out->problem, "a problem", err);
        }
    }
    SNAP_BUG("a family makes no problem");
}

void synth_release(synth_problem *p) {
    buf_release(&p->params);
    buf_release(&p->problem);
    buf_release(&p->solution);
    buf_release(&p->answer);
    for (int i = 0; i < SYNTH_TESTS; i++) {
        buf_release(&p->input[i]);
        buf_release(&p->output[i]);
    }
    *p = (synth_problem){0};
}

/* ---- writing a row ---- */

static bool set_tests(js *row, const char *key, const buf *texts, int n) {
    js *list = js_new_array();
    bool ok = list != NULL;
    for (int i = 0; i < n && ok; i++)
        ok = js_push_new(list, js_new_str(buf_str(&texts[i])));
    return js_set_new(row, key, list) && ok;
}

snap_status synth_write(const synth_problem *p, bool solution, buf *out, snap_err *err) {
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "id", p->id) && js_set_int(row, "level", p->level) &&
              js_set_str(row, "family", p->family) &&
              js_set_str(row, "params", buf_str(&p->params)) &&
              js_set_str(row, "prompt", buf_str(&p->problem));
    if (ok && p->n_tests)
        ok = set_tests(row, "inputs", p->input, p->n_tests) &&
             set_tests(row, "outputs", p->output, p->n_tests);
    else if (ok)
        ok = js_set_str(row, "answer", buf_str(&p->answer));
    if (ok && solution)
        ok = js_set_str(row, "solution", buf_str(&p->solution));
    snap_status st = ok ? js_write(row, JS_COMPACT, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for a problem");
    js_free(row);
    (void)buf_puts(out, "\n");
    return st == SNAP_OK ? buf_check(out, "problems", err) : st;
}
