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

static snap_status make(maker *m, snap_err *err) {
    static snap_status (*const kinds[])(maker *,
                                        snap_err *) = {[LONGTEXT_NEEDLE] = needle_make,
                                                       [LONGTEXT_LOOKUP] = lookup_make,
                                                       [LONGTEXT_VARIABLES] = variables_make,
                                                       [LONGTEXT_COUNT] = count_make,
                                                       [LONGTEXT_FREQUENT] = frequent_make,
                                                       [LONGTEXT_ORDER] = order_make,
                                                       [LONGTEXT_COPY] = copy_make};
    longtext *out = m->out;
    snap_status st;
    m->names = arena_alloc(&m->mem, NAMES_MOST, sizeof *m->names);
    m->values = arena_alloc(&m->mem, NAMES_MOST, sizeof *m->values);
    if (!m->names || !m->values)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
    TRY(kinds[m->o->kind](m, err));
    TRY(buf_check(&out->question, "a question", err));
    TRY(buf_check(&out->answer, "an answer", err));
    TRY(document_write(&m->doc, m->o->length, buf_str(&out->question), m->counter, &out->document,
                       &out->tokens, err));
cleanup:
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
}
