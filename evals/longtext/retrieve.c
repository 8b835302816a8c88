/* retrieve.c - the kinds in which the answer is found by a name: needle, lookup and copy. */
#include <string.h>

#include "evals/longtext/longtext_parts.h"

/* The names that are asked for: "the amber falcon, the linen otter". */
static void put_asked(const maker *m, buf *out) {
    for (int i = 0; i < m->o->queries; i++)
        (void)buf_printf(out, "%s%s %s", i ? ", " : "", maker_article(m), m->names[i].text);
}

static void ask_codes(maker *m) {
    buf *q = &m->out->question;
    bool one = m->o->values == 1 && m->o->queries == 1;
    (void)buf_printf(q, "What %s the access code%s of ", one ? "is" : "are", one ? "" : "s");
    put_asked(m, q);
    (void)buf_puts(q, " in the text above?");
    if (m->o->values > 1)
        (void)buf_puts(q, " Give all codes in the order of the text.");
    else if (m->o->queries > 1)
        (void)buf_puts(q, " Give one code for each, in the order of this question.");
    (void)buf_printf(q, " %s%s'.", kAnswerLine, one ? "CODE" : "CODE, CODE, ...");
}

/* The places of the values of one name, in ascending order. The first one of the first name is at
 * the item's depth, and its others are behind it. */
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

/* Adds the codes of all names, and the answer. @form has a name and a code, or with an article
 * three texts. */
static snap_status add_codes(maker *m, bool prose, snap_err *err) {
    const longtext_options *o = m->o;
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
            const char *name = m->names[key].text;
            const char *value = m->values[key * o->values + i].text;
            if (prose)
                TRY(maker_add(m, err, places[i], "The access code of %s %s is %s.",
                              maker_article(m), name, value));
            else
                TRY(maker_add(m, err, places[i], "%s: %s", name, value));
            if (key < o->queries)
                (void)buf_printf(&m->out->answer, "%s%s", key || i ? ", " : "", value);
        }
    }
    ask_codes(m);
cleanup:
    return st;
}

snap_status needle_make(maker *m, snap_err *err) {
    return add_codes(m, true, err);
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
    return add_codes(m, false, err);
}

/* ---- copy ---- */

static snap_status add_record(maker *m, int key, double at, snap_err *err) {
    buf words = {0};
    for (int i = 0; i < m->o->values; i++) {
        (void)buf_puts(&words, i ? " " : "");
        filler_word(&m->random, &words);
    }
    if (!key)
        (void)buf_puts(&m->out->answer, buf_str(&words));
    snap_status st = buf_check(&words, "a long text", err);
    if (st == SNAP_OK)
        st = maker_add(m, err, at, "Record of %s %s: %s.", maker_article(m), m->names[key].text,
                       buf_str(&words));
    buf_release(&words);
    return st;
}

snap_status copy_make(maker *m, snap_err *err) {
    snap_status st = maker_names(m, 1, err);
    for (int key = 0; key < m->o->keys && st == SNAP_OK; key++)
        st = add_record(m, key, key ? maker_place(m) : m->o->depth, err);
    (void)buf_printf(&m->out->question,
                     "Repeat the record of %s %s in the text above word for word. %sWORDS'.",
                     maker_article(m), m->names[0].text, kAnswerLine);
    return st;
}
