#include "evals/longtext/longtext.h"

#include <stdio.h>

#include "base/fault.h"
#include "evals/longtext/longtext_parts.h"

const char *const longtext_kinds[] = {"needle",   "lookup", "variables", "count",
                                      "frequent", "order",  "copy",      NULL};

bool longtext_has_depth(longtext_kind kind) {
    return kind == LONGTEXT_NEEDLE || kind == LONGTEXT_LOOKUP || kind == LONGTEXT_COPY;
}

const char kAnswerLine[] = "End your answer with one line of the form 'Answer: ";

const char *maker_article(const maker *m) {
    bool codes = m->o->distance == DISTANCE_CHARACTER || m->o->kind == LONGTEXT_LOOKUP;
    return codes ? "station" : "the";
}

double maker_place(maker *m) {
    enum { kSteps = 1 << 20 };
    return (double)rng_below(&m->random, kSteps + 1) / kSteps;
}

snap_status maker_add(maker *m, snap_err *err, double at, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return document_add(&m->doc, at, text, err);
}

snap_status maker_names(maker *m, size_t asked, snap_err *err) {
    return names_draw(m->o->distance, &m->random, m->names, (size_t)m->o->keys, asked, err);
}

static void write_sentence(void *ctx, buf *out) {
    filler_sentence(ctx, out);
}

typedef struct {
    snap_status (*make)(maker *, snap_err *);
    void (*ask)(const maker *, int, longtext_question *);
} kind_parts;

static const kind_parts kParts[] = {[LONGTEXT_NEEDLE] = {needle_make, codes_ask},
                                    [LONGTEXT_LOOKUP] = {lookup_make, codes_ask},
                                    [LONGTEXT_VARIABLES] = {variables_make, variables_ask},
                                    [LONGTEXT_COUNT] = {count_make, count_ask},
                                    [LONGTEXT_FREQUENT] = {frequent_make, frequent_ask},
                                    [LONGTEXT_ORDER] = {order_make, order_ask},
                                    [LONGTEXT_COPY] = {copy_make, copy_ask}};

int maker_questions(const maker *m) {
    if (m->o->kind == LONGTEXT_FREQUENT || m->o->kind == LONGTEXT_ORDER)
        return 1;
    return m->o->keys / (m->o->queries > 0 ? m->o->queries : 1);
}

longtext_split longtext_split_of(const char *question, const char *answer) {
    enum { kMeasured = 8 }; /* one item in 8 is for measuring */
    uint64_t h = rng_stream_of(question) * 31 + rng_stream_of(answer);
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15U;
    return (h >> 32) % kMeasured == 0 ? LONGTEXT_MEASURE : LONGTEXT_TRAIN;
}

static void question_clear(longtext_question *q) {
    buf_clear(&q->question);
    buf_clear(&q->answer);
    buf_clear(&q->solution);
}

static snap_status ask(const maker *m, int which, longtext_question *q, snap_err *err) {
    snap_status st;
    question_clear(q);
    kParts[m->o->kind].ask(m, which, q);
    (void)buf_printf(&q->solution, "Answer: %s", buf_str(&q->answer));
    TRY(buf_check(&q->question, "a question", err));
    TRY(buf_check(&q->answer, "an answer", err));
    TRY(buf_check(&q->solution, "a solution", err));
cleanup:
    return st;
}

static bool is_wanted(const maker *m, const longtext_question *q) {
    return longtext_split_of(buf_str(&q->question), buf_str(&q->answer)) == m->o->split;
}

/* Draws statements until the first question is of the wanted split. */
static snap_status draw(maker *m, longtext_question *first, snap_err *err) {
    enum { kAttempts = 1024 };
    snap_status st = SNAP_OK;
    for (int i = 0; i < kAttempts; i++) {
        m->doc.n = 0;
        TRY(kParts[m->o->kind].make(m, err));
        TRY(ask(m, 0, first, err));
        if (is_wanted(m, first))
            return SNAP_OK;
    }
    st =
        err_set(err, SNAP_E_INPUT,
                "no text of the wanted split (training or measuring) in %d attempts: there are too "
                "few different questions and answers",
                kAttempts);
cleanup:
    return st;
}

/* Further questions of the other split are left out. */
static snap_status ask_further(const maker *m, snap_err *err) {
    longtext *out = m->out;
    int n = maker_questions(m);
    for (int which = 1; which < n && out->n_further < m->o->questions; which++) {
        longtext_question *q = &out->further[out->n_further];
        snap_status st = ask(m, which, q, err);
        if (st != SNAP_OK)
            return st;
        out->n_further += is_wanted(m, q);
    }
    return SNAP_OK;
}

static snap_status make(maker *m, snap_err *err) {
    longtext *out = m->out;
    longtext_question first = {0};
    snap_status st;
    m->names = arena_alloc(&m->mem, NAMES_MOST, sizeof *m->names);
    m->values = arena_alloc(&m->mem, NAMES_MOST, sizeof *m->values);
    if (!m->names || !m->values)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    TRY(draw(m, &first, err));
    TRY(ask_further(m, err));
    TRY(document_write(&m->doc, m->o->length, buf_str(&first.question), m->counter, &out->document,
                       &out->tokens, err));
cleanup:
    out->question = first.question;
    out->answer = first.answer;
    out->solution = first.solution;
    return st;
}

snap_status longtext_make(const longtext_options *o, uint64_t seed, const char *name,
                          const token_counter *counter, longtext *out, snap_err *err) {
    enum { kParagraph = 6 };
    fault_mark before = fault_begin();
    rng r = rng_make(seed, rng_stream_of(name));
    maker m = {.o = o, .counter = counter, .out = out};
    m.random = rng_make(rng_u64(&r), 0);
    m.filler.random = rng_make(rng_u64(&r), 0);
    m.doc = (document){.mem = &m.mem,
                       .heading = "Notes on daily life",
                       .separator = ' ',
                       .paragraph = kParagraph,
                       .unit = write_sentence,
                       .ctx = &m.filler};
    snap_status st = make(&m, err);
    arena_release(&m.mem);
    return fault_result(before, st, err);
}

void longtext_release(longtext *t) {
    buf_release(&t->document);
    buf_release(&t->question);
    buf_release(&t->answer);
    buf_release(&t->solution);
    for (int i = 0; i < LONGTEXT_QUESTIONS; i++) {
        buf_release(&t->further[i].question);
        buf_release(&t->further[i].answer);
        buf_release(&t->further[i].solution);
    }
}
