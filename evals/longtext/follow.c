/* follow.c - the kinds in which the answer depends on many places of the text: variables, count,
 * frequent and order. */
#include <stdlib.h>
#include <string.h>

#include "evals/longtext/longtext_parts.h"

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* ---- the task of variables ---- */

/* Sets the first variable of chain @chain and passes its value on. The chain's names are
 * m->names[chain], [chain + keys], [chain + 2 keys] and so on. */
static snap_status add_chain(maker *m, int chain, snap_err *err) {
    double places[NAMES_MOST];
    size_t n = (size_t)m->o->hops + 1;
    const char *of = "", *value = m->values[chain].text;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n; i++)
        places[i] = maker_place(m);
    qsort(places, n, sizeof *places, ascending);
    for (size_t i = 0; i < n && st == SNAP_OK; i++) {
        const char *name = m->names[(size_t)chain + i * (size_t)m->o->keys].text;
        st = maker_add(m, err, places[i], "Set %s to %s%s.", name, i ? "the value of " : "",
                       i ? of : value);
        of = name;
    }
    return st;
}

/* Draws the names of all chains, step by step. In a step, the names of the other chains are at the
 * item's distance from the name of the first chain. If an earlier step has one of the names, the
 * names of the step are drawn again. */
static snap_status draw_variables(maker *m, snap_err *err) {
    size_t keys = (size_t)m->o->keys;
    for (size_t step = 0; step <= (size_t)m->o->hops; step++) {
        text_name *names = m->names + step * keys;
        bool repeated = true;
        for (int tries = 0; repeated && tries < 100; tries++) {
            snap_status st = names_draw(m->o->distance, &m->random, names, keys, 1, err);
            if (st != SNAP_OK)
                return st;
            repeated = false;
            for (size_t i = 0; i < keys; i++)
                repeated = repeated || names_have(m->names, step * keys, names[i].text);
        }
        if (repeated)
            return err_set(err, SNAP_E_INPUT, "there are too few names for so many variables");
    }
    for (size_t i = 0; i < keys * ((size_t)m->o->hops + 1); i++) /* "amber falcon": amber_falcon */
        for (char *s = m->names[i].text; *s; s++)
            *s = *s == ' ' ? '_' : *s;
    return SNAP_OK;
}

snap_status variables_make(maker *m, snap_err *err) {
    snap_status st = draw_variables(m, err);
    if (st == SNAP_OK)
        values_draw(&m->random, m->values, (size_t)m->o->keys);
    for (int chain = 0; chain < m->o->keys && st == SNAP_OK; chain++)
        st = add_chain(m, chain, err);
    return st;
}

/* The solution follows the chain backwards. */
void variables_ask(const maker *m, int which, longtext_question *q) {
    const char *value = m->values[which].text;
    (void)buf_printf(&q->question,
                     "The text above sets variables, in its order. What is the value of %s in the "
                     "end? %sNUMBER'.",
                     m->names[m->o->hops * m->o->keys + which].text, kAnswerLine);
    for (int i = m->o->hops; i >= 0; i--)
        (void)buf_printf(&q->solution, "Set %s to %s%s.\n", m->names[i * m->o->keys + which].text,
                         i ? "the value of " : "",
                         i ? m->names[(i - 1) * m->o->keys + which].text : value);
    (void)buf_puts(&q->answer, value);
}

/* ---- the task of counting ---- */

snap_status count_make(maker *m, snap_err *err) {
    snap_status st = maker_names(m, 1, err);
    if (st == SNAP_OK && !(m->times = arena_alloc(&m->mem, (size_t)m->o->keys, sizeof *m->times)))
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    for (int key = 0; key < m->o->keys && st == SNAP_OK; key++) {
        uint32_t times = 1 + rng_below(&m->random, (uint32_t)m->o->most);
        for (uint32_t i = 0; i < times && st == SNAP_OK; i++)
            st = maker_add(m, err, maker_place(m), "A bell rang for %s %s.", maker_article(m),
                           m->names[key].text);
        if (st == SNAP_OK)
            m->times[key] = (int)times;
    }
    return st;
}

void count_ask(const maker *m, int which, longtext_question *q) {
    (void)buf_printf(&q->question,
                     "How many times does the text above say that a bell rang for %s %s? "
                     "%sNUMBER'.",
                     maker_article(m), m->names[which].text, kAnswerLine);
    (void)buf_printf(&q->answer, "%d", m->times[which]);
}

/* ---- the task of ordering events ---- */

enum { kEvents = 26 };

/* The solution repeats the events in the order of the text, each with its letter. */
void order_ask(const maker *m, int which, longtext_question *q) {
    int n = m->o->keys;
    const int *order = m->times;
    (void)which;
    (void)buf_puts(&q->question, "In which order does the text above report these arrivals?");
    for (int letter = 0; letter < n; letter++)
        for (int i = 0; i < n; i++)
            if (order[i] == letter)
                (void)buf_printf(&q->question, "\n%c) %s %s", 'A' + letter, maker_article(m),
                                 m->names[i].text);
    (void)buf_printf(&q->question,
                     "\nGive their letters, the first arrival first. %sLETTER, LETTER, ...'.",
                     kAnswerLine);
    for (int i = 0; i < n; i++) {
        (void)buf_printf(&q->solution, "%s %s: %c\n", maker_article(m), m->names[i].text,
                         'A' + order[i]);
        (void)buf_printf(&q->answer, "%s%c", i ? ", " : "", 'A' + order[i]);
    }
}

snap_status order_make(maker *m, snap_err *err) {
    double places[kEvents];
    int n = m->o->keys;
    int *order = m->times = arena_alloc(&m->mem, kEvents, sizeof *order);
    snap_status st;
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    TRY(maker_names(m, 1, err));
    for (int i = 0; i < n; i++) {
        int k = (int)rng_below(&m->random, (uint32_t)i + 1);
        places[i] = maker_place(m);
        order[i] = order[k];
        order[k] = i;
    }
    qsort(places, (size_t)n, sizeof *places, ascending);
    for (int i = 0; i < n; i++)
        TRY(maker_add(m, err, places[i], "Then %s %s arrived.", maker_article(m),
                      m->names[i].text));
cleanup:
    return st;
}

/* ---- the task of frequent words ---- */

/* A list of invented words. Each of kRare words occurs about equally often. The word of rank i
 * (from 0) among those that are asked for occurs (keys - i + 1) times as often. */
enum { kRare = 50 };

typedef struct {
    maker *m;
    text_name *rare;
    size_t next;
} word_list;

/* The rare words come in rounds, so that no two of them differ by more than one occurrence. */
static void write_rare(void *ctx, buf *out) {
    word_list *w = ctx;
    (void)buf_puts(out, w->rare[w->next].text);
    w->next = (w->next + 1) % kRare;
}

/* Draws a word of three syllables, such as "borati". */
static void draw_syllables(rng *r, text_name *out) {
    static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    for (int i = 0; i < 6; i += 2) {
        out->text[i] = consonants[rng_below(r, sizeof consonants - 1)];
        out->text[i + 1] = vowels[rng_below(r, sizeof vowels - 1)];
    }
    out->text[6] = '\0';
}

/* A word that differs from @from in at most one letter. */
static void change_letter(rng *r, const text_name *from, text_name *out) {
    text_name other;
    uint32_t at = rng_below(r, 6);
    draw_syllables(r, &other);
    *out = *from;
    out->text[at] = other.text[at];
}

static void draw_words(maker *m, size_t n) {
    size_t asked = (size_t)m->o->keys;
    for (size_t i = 0; i < n; i++)
        do
            if (i >= asked && m->o->distance == DISTANCE_CHARACTER && i < 2 * kRare / 3 + asked)
                change_letter(&m->random, &m->names[i % asked], &m->names[i]);
            else
                draw_syllables(&m->random, &m->names[i]);
        while (names_have(m->names, i, m->names[i].text));
}

/* How often a rare word occurs in a list of the item's length. */
static snap_status count_each(maker *m, int64_t *each, snap_err *err) {
    buf all = {0};
    int64_t tokens, weight = kRare, keys = m->o->keys;
    for (size_t i = 0; i < kRare + (size_t)keys; i++)
        (void)buf_printf(&all, " %s", m->names[i].text);
    snap_status st = buf_check(&all, "a long text", err);
    if (st == SNAP_OK)
        st = tokens_count(m->counter, all.data, all.len, &tokens, err);
    buf_release(&all);
    if (st != SNAP_OK)
        return st;
    for (int64_t i = 0; i < keys; i++)
        weight += keys - i + 1;
    *each = (m->o->length - 100) * (kRare + keys) / (weight * (tokens > 0 ? tokens : 1));
    return *each >= 2 ? SNAP_OK
                      : err_set(err, SNAP_E_INPUT,
                                "a length of %lld tokens is too small: each of %d words must occur "
                                "at least twice",
                                (long long)m->o->length, kRare);
}

snap_status frequent_make(maker *m, snap_err *err) {
    int64_t each = 0, keys = m->o->keys;
    word_list *w = arena_alloc(&m->mem, 1, sizeof *w);
    snap_status st;
    if (!w)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    draw_words(m, kRare + (size_t)keys);
    TRY(count_each(m, &each, err));
    for (int64_t i = 0; i < keys; i++) {
        for (int64_t k = 0; k < (keys - i + 1) * each; k++)
            TRY(maker_add(m, err, maker_place(m), "%s", m->names[i].text));
    }
    *w = (word_list){m, m->names + keys, 0};
    m->doc.heading = "A list of words";
    m->doc.paragraph = 0;
    m->doc.unit = write_rare;
    m->doc.ctx = w;
cleanup:
    return st;
}

void frequent_ask(const maker *m, int which, longtext_question *q) {
    (void)which;
    (void)buf_printf(&q->question,
                     "Which %d words are the most frequent in the list above? Give the most "
                     "frequent one first. %sWORD, WORD, ...'.",
                     m->o->keys, kAnswerLine);
    for (int i = 0; i < m->o->keys; i++)
        (void)buf_printf(&q->answer, "%s%s", i ? ", " : "", m->names[i].text);
}
