#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/text.h"
#include "evals/extract.h"
#include "evals/taskfile/parts.h"

/* Element @i of the row's choices; NULL if there is none. */
static const js *element(const choices_part *c, const js *row, size_t i) {
    if (c->field) {
        const js *v = js_at(row_field(row, c->field), i);
        return v && c->item ? row_field(v, c->item) : v;
    }
    if (c->texts)
        return js_at(c->texts, i);
    return i < c->n_fields ? row_field(row, c->fields[i]) : NULL;
}

static size_t count(const choices_part *c, const js *row) {
    if (c->field)
        return js_len(row_field(row, c->field));
    return c->texts ? js_len(c->texts) : c->n_fields;
}

static const char *name_of(const choices_part *c) {
    return c->field ? c->field : "choices";
}

/* The text of an element, which may be blank. NULL if it is neither a text without NULs nor a value
 * with a text (value_text()). */
static const char *text_of(const js *v, char number[TEMPLATE_NUMBER_MAX]) {
    const char *s = js_str(v);
    if (s)
        return strlen(s) == js_str_len(v) ? s : NULL;
    return value_text(v, number);
}

/* Copies the texts of the row's choices into the array @texts, in their own order. */
static snap_status collect(const task_file *f, const js *row, js *texts, shown_choices *out,
                           const char *where, snap_err *err) {
    const choices_part *c = &f->choices;
    size_t all = count(c, row);
    size_t most = f->grader == GRADER_LETTER ? (size_t)(f->rules[0].last - 'A') + 1 : TASK_CHOICES;
    char number[TEMPLATE_NUMBER_MAX];
    for (size_t i = 0; i < all && out->n <= most; i++) {
        const char *text = text_of(element(c, row, i), number);
        if (!text)
            return err_set(err, SNAP_E_INPUT, "%s: choice %zu of '%s' must be text", where, i + 1,
                           name_of(c));
        if (c->skip && strcmp(text, c->skip) == 0)
            continue;
        if (out->n < most)
            out->from[out->n] = i;
        out->n++;
        if (!js_push_new(texts, js_new_str(text)))
            return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    }
    if (out->n < 2 || out->n > most)
        return err_set(err, SNAP_E_INPUT, "%s: needs 2 to %zu '%s'", where, most, name_of(c));
    return SNAP_OK;
}

/* order[i]: the choice that is shown at position i (Fisher-Yates shuffle). */
static void shuffle(uint64_t seed, const char *id, size_t *order, size_t n) {
    rng r = rng_make(seed, rng_stream_of(id));
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = rng_below(&r, (uint32_t)i + 1), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

snap_status choices_make(const task_file *f, const js *row, const char *id, uint64_t seed,
                         shown_choices *out, const char *where, snap_err *err) {
    size_t order[TASK_CHOICES] = {0};
    *out = (shown_choices){0};
    if (!f->choices.given)
        return SNAP_OK;
    js *texts = js_new_array();
    out->list = js_new_array();
    snap_status st = texts && out->list ? collect(f, row, texts, out, where, err)
                                        : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    for (size_t i = 0; i < out->n && i < TASK_CHOICES; i++)
        order[i] = i;
    if (st == SNAP_OK && f->choices.shuffle)
        shuffle(seed, id, order, out->n);
    for (size_t i = 0; i < out->n && st == SNAP_OK; i++) {
        out->place[order[i]] = i;
        if (!js_push_new(out->list, js_new_str(js_str(js_at(texts, order[i])))))
            st = err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    }
    js_free(texts);
    return st;
}

/* ---- finding the right choice ---- */

/* The label of element @i of the row's choices; NULL if it has none. */
static const js *label_of(const choices_part *c, const js *row, size_t i) {
    if (!c->item)
        return js_at(row_field(row, c->labels), i);
    return row_field(js_at(row_field(row, c->field), i), c->labels);
}

/* The choice of the row that the answer names by its label or text; -1 if none. */
static int64_t find_named(const task_file *f, const js *row, const shown_choices *shown,
                          const char *answer) {
    char number[TEMPLATE_NUMBER_MAX];
    for (size_t i = 0; i < shown->n; i++) {
        const char *text = f->choices.labels
                               ? value_text(label_of(&f->choices, row, shown->from[i]), number)
                               : js_str(js_at(shown->list, shown->place[i]));
        if (text && strcmp(text, answer) == 0)
            return (int64_t)i;
    }
    return -1;
}

static int64_t right_one(const task_file *f, const js *row, const shown_choices *shown,
                         const char *answer) {
    int64_t i = -1;
    if (f->choices.labels || f->choices.answer == ANSWER_TEXT)
        return find_named(f, row, shown, answer);
    if (f->choices.answer == ANSWER_LETTER)
        return answer[0] && !answer[1] ? answer[0] - 'A' : -1;
    if (!text_to_int(answer, &i))
        return -1;
    return f->choices.answer == ANSWER_NUMBER ? i - 1 : i;
}

snap_status choices_letter(const task_file *f, const js *row, const shown_choices *shown,
                           const char *answer, char letter[2], const char *where, snap_err *err) {
    static const char *const how[] = {"the letter of a choice, A..", "the index of a choice, 0..",
                                      "the number of a choice, 1.."};
    int64_t i = right_one(f, row, shown, answer);
    if (i >= 0 && i < (int64_t)shown->n) {
        letter[0] = (char)('A' + shown->place[i]);
        letter[1] = '\0';
        return SNAP_OK;
    }
    if (f->choices.labels)
        return err_set(err, SNAP_E_INPUT, "%s: the answer must be one of '%s'", where,
                       f->choices.labels);
    if (f->choices.answer == ANSWER_TEXT)
        return err_set(err, SNAP_E_INPUT, "%s: the answer must be the text of a choice", where);
    if (f->choices.answer == ANSWER_LETTER)
        return err_set(err, SNAP_E_INPUT, "%s: the answer must be %s%c", where, how[0],
                       (char)('A' + shown->n - 1));
    return err_set(err, SNAP_E_INPUT, "%s: the answer must be %s%zu", where, how[f->choices.answer],
                   shown->n - (f->choices.answer == ANSWER_INDEX));
}
