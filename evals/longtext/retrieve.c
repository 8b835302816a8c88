/* retrieve.c - the kinds in which the answer is found by a name: needle, lookup and copy. */
#include <string.h>

#include "evals/longtext/longtext_parts.h"

/* The name that is asked for at place @i of question @which. */
static int asked_key(const maker *m, int which, int i) {
    return (which * m->o->queries + i) % m->o->keys;
}

/* Writes the names that are asked for: "the amber falcon, the linen otter". */
static void put_asked(const maker *m, int which, buf *out) {
    for (int i = 0; i < m->o->queries; i++)
        (void)buf_printf(out, "%s%s %s", i ? ", " : "", maker_article(m),
                         m->names[asked_key(m, which, i)].text);
}

/* The statement of a code, without its full stop. */
static void put_code(const maker *m, const char *name, const char *value, buf *out) {
    if (m->o->kind == LONGTEXT_NEEDLE)
        (void)buf_printf(out, "The access code of %s %s is %s", maker_article(m), name, value);
    else
        (void)buf_printf(out, "%s: %s", name, value);
}

/* The solution repeats the statements of the codes. */
void codes_ask(const maker *m, int which, longtext_question *q) {
    const longtext_options *o = m->o;
    bool one = o->values == 1 && o->queries == 1;
    (void)buf_printf(&q->question, "What %s the access code%s of ", one ? "is" : "are",
                     one ? "" : "s");
    put_asked(m, which, &q->question);
    (void)buf_puts(&q->question, " in the text above?");
    if (o->values > 1)
        (void)buf_puts(&q->question, " Give all codes in the order of the text.");
    else if (o->queries > 1)
        (void)buf_puts(&q->question, " Give one code for each, in the order of this question.");
    (void)buf_printf(&q->question, " %s%s'.", kAnswerLine, one ? "CODE" : "CODE, CODE, ...");
    for (int i = 0; i < o->queries * o->values; i++) {
        int key = asked_key(m, which, i / o->values);
        const char *value = m->values[key * o->values + i % o->values].text;
        (void)buf_printf(&q->answer, "%s%s", i ? ", " : "", value);
        put_code(m, m->names[key].text, value, &q->solution);
        (void)buf_puts(&q->solution, o->kind == LONGTEXT_NEEDLE ? ".\n" : "\n");
    }
}

/* The places of the values of one name, in ascending order. The first one of the first name is at
 * the item's depth, and its others come after it. */
static void draw_places(maker *m, int key, double *places, int n) {
    double from = key ? 0 : m->o->depth;
    for (int i = 0; i < n; i++) {
        double at = key || i ? from + (1 - from) * maker_place(m) : from;
        int k = i;
        for (; k > 0 && places[k - 1] > at; k--)
            places[k] = places[k - 1];
        places[k] = at;
    }
}

/* Adds the codes of all names. */
static snap_status add_codes(maker *m, snap_err *err) {
    const longtext_options *o = m->o;
    bool prose = o->kind == LONGTEXT_NEEDLE;
    double places[NAMES_MOST];
    snap_status st = SNAP_OK;
    if (prose || o->distance == DISTANCE_CHARACTER)
        TRY(maker_names(m, (size_t)o->queries, err));
    else
        codes_draw(&m->random, m->names, (size_t)o->keys);
    values_draw(&m->random, m->values, (size_t)o->keys * (size_t)o->values);
    for (int key = 0; key < o->keys; key++) {
        draw_places(m, key, places, o->values);
        for (int i = 0; i < o->values; i++) {
            buf text = {0};
            put_code(m, m->names[key].text, m->values[key * o->values + i].text, &text);
            st = buf_check(&text, "a long text", err);
            if (st == SNAP_OK)
                st = maker_add(m, err, places[i], "%s%s", buf_str(&text), prose ? "." : "");
            buf_release(&text);
            TRY(st);
        }
    }
cleanup:
    return st;
}

snap_status needle_make(maker *m, snap_err *err) {
    return add_codes(m, err);
}

/* ---- lookup: every line is a name and its code ---- */

static void write_pair(void *ctx, buf *out) {
    maker *m = ctx;
    text_name key;
    rng *r = &m->filler.random;
    do
        name_code(r, &key);
    while (names_have(m->names, (size_t)m->o->keys, key.text));
    (void)buf_printf(out, "%s: %u", key.text, 100000 + rng_below(r, 900000));
}

snap_status lookup_make(maker *m, snap_err *err) {
    m->doc.heading = "Access codes";
    m->doc.separator = '\n';
    m->doc.paragraph = 0;
    m->doc.unit = write_pair;
    m->doc.ctx = m;
    return add_codes(m, err);
}

/* ---- the task of copying a record ---- */

static snap_status add_record(maker *m, int key, double at, snap_err *err) {
    buf words = {0};
    for (int i = 0; i < m->o->values; i++) {
        (void)buf_puts(&words, i ? " " : "");
        filler_word(&m->random, &words);
    }
    snap_status st = buf_check(&words, "a long text", err);
    if (st == SNAP_OK && !(m->records[key] = arena_strdup(&m->mem, buf_str(&words))))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    if (st == SNAP_OK)
        st = maker_add(m, err, at, "Record of %s %s: %s.", maker_article(m), m->names[key].text,
                       m->records[key]);
    buf_release(&words);
    return st;
}

snap_status copy_make(maker *m, snap_err *err) {
    snap_status st = maker_names(m, 1, err);
    if (st == SNAP_OK && !(m->records = arena_alloc(&m->mem, (size_t)m->o->keys, sizeof(char *))))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    for (int key = 0; key < m->o->keys && st == SNAP_OK; key++)
        st = add_record(m, key, key ? maker_place(m) : m->o->depth, err);
    return st;
}

void copy_ask(const maker *m, int which, longtext_question *q) {
    (void)buf_printf(&q->question,
                     "Repeat the record of %s %s in the text above word for word. %sWORDS'.",
                     maker_article(m), m->names[which].text, kAnswerLine);
    (void)buf_printf(&q->solution, "Record of %s %s: %s.\n", maker_article(m), m->names[which].text,
                     m->records[which]);
    (void)buf_puts(&q->answer, m->records[which]);
}
