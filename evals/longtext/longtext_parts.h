/* longtext_parts.h - what the kinds of longtext.h share. */
#ifndef SNAPMLA_EVALS_LONGTEXT_LONGTEXT_PARTS_H
#define SNAPMLA_EVALS_LONGTEXT_LONGTEXT_PARTS_H

#include "evals/longtext/filler.h"
#include "evals/longtext/longtext.h"

/* An item while it is made. */
typedef struct {
    const longtext_options *o;
    const token_counter *counter;
    rng random; /* for the statements */
    filler filler;
    arena mem;
    document doc;
    text_name *names;     /* [NAMES_MOST], of which the kind uses as many as it needs */
    text_name *values;    /* [NAMES_MOST] */
    const char **records; /* [o->keys] for the kind "copy": the texts of the records */
    int *times;           /* [o->keys] for the kind "count": how often each event is reported. For
                             the kind "order": times[i] is the letter (0 for A) that the question
                             gives to event i of the text */
    longtext *out;
} maker;

/* Each adds the statements of one kind to m->doc. */
snap_status needle_make(maker *m, snap_err *err);
snap_status lookup_make(maker *m, snap_err *err);
snap_status variables_make(maker *m, snap_err *err);
snap_status count_make(maker *m, snap_err *err);
snap_status frequent_make(maker *m, snap_err *err);
snap_status order_make(maker *m, snap_err *err);
snap_status copy_make(maker *m, snap_err *err);

/* How many questions can be asked about the text. */
int maker_questions(const maker *m);

/* Each writes question @which, its answer and its solution into the empty buffers of @q. */
void codes_ask(const maker *m, int which, longtext_question *q); /* needle, lookup */
void variables_ask(const maker *m, int which, longtext_question *q);
void count_ask(const maker *m, int which, longtext_question *q);
void frequent_ask(const maker *m, int which, longtext_question *q);
void order_ask(const maker *m, int which, longtext_question *q);
void copy_ask(const maker *m, int which, longtext_question *q);

/* The text "End your answer with one line of the form 'Answer: ". A form and a quote follow it. */
extern const char kAnswerLine[];

/* What stands before a name: "the" amber falcon, "station" KQVMZT. */
const char *maker_article(const maker *m);

/* A random place in the document. */
double maker_place(maker *m);

/* Adds a statement; the text may have up to 511 bytes. */
snap_status maker_add(maker *m, snap_err *err, double at, const char *fmt, ...) SNAP_PRINTF(4, 5);

/* Draws o->keys names, @asked of which are asked for. */
snap_status maker_names(maker *m, size_t asked, snap_err *err);

#endif
