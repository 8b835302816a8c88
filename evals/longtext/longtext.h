/* longtext.h - questions about long texts, which a seed determines: can a model still find, follow
 * and count what a long context holds?
 *
 * A text of an exact length in tokens holds statements at known places. The right answer follows
 * from the statements, and an exact rule compares it with the model's answer. All texts are made
 * from our own sentences and word lists. The same options, seed and name give the same bytes
 * on every machine, as long as the tokenizer is the same.
 *
 * An item for training may have several questions about one text, each with its solution. No item
 * for measuring has one of these questions with the same answer (longtext_split_of()).
 *
 *   needle     codes of named things in prose, some of which are asked for
 *   lookup     codes of names, some of which are asked for, in a list of six-letter names and codes
 *   variables  variables in prose that are set, and set to the value of another variable
 *   count      how often an event is reported in prose
 *   frequent   the most frequent words of a list
 *   order      events in prose, to be put into the order of the text
 *   copy       a record in prose, to be repeated word for word */
#ifndef SNAPMLA_EVALS_LONGTEXT_LONGTEXT_H
#define SNAPMLA_EVALS_LONGTEXT_LONGTEXT_H

#include "evals/longtext/document.h"
#include "evals/longtext/names.h"

typedef enum {
    LONGTEXT_NEEDLE,
    LONGTEXT_LOOKUP,
    LONGTEXT_VARIABLES,
    LONGTEXT_COUNT,
    LONGTEXT_FREQUENT,
    LONGTEXT_ORDER,
    LONGTEXT_COPY,
} longtext_kind;

extern const char *const longtext_kinds[]; /* "needle", ...; NULL-terminated */

enum { LONGTEXT_SHORTEST = 64, LONGTEXT_LONGEST = 1 << 21, LONGTEXT_QUESTIONS = 32 };

typedef enum { LONGTEXT_MEASURE, LONGTEXT_TRAIN } longtext_split;

/* Decides whether an item with this question and this answer is for measuring or for training, by a
 * hash of both texts. About one item in eight is for measuring. For a conversation, the caller
 * passes two texts that determine its facts instead. */
longtext_split longtext_split_of(const char *question, const char *answer);

typedef struct {
    longtext_kind kind;
    int64_t length;         /* tokens of the document, two line ends and the question */
    double depth;           /* 0..1: where the first part of the answer is, if the kind has such
                               a place */
    name_distance distance; /* how much the names of distractors differ from the name that is asked
                               for; lookup: not DISTANCE_WORD */
    int keys;    /* number of things that the text names, including those that are asked for.
                    variables: number of chains. frequent: number of words that are asked for.
                    order: number of events */
    int values;  /* needle, lookup: number of codes of each thing, all of which are asked for. copy:
                    number of words of a record */
    int queries; /* needle, lookup: number of things that are asked for */
    int hops;    /* variables: how often the value is passed on */
    int most;    /* count: the event is reported 1 to @most times, and so is each distractor */
    longtext_split split;
    int questions; /* 0..LONGTEXT_QUESTIONS: further questions about the text, as far as it has
                      things that can be asked for */
} longtext_options;

/* True if the answer of this kind has a place in the document (`depth`). */
bool longtext_has_depth(longtext_kind kind);

typedef struct {
    buf question, answer;
    buf solution; /* repeats what the answer follows from, except for count and frequent. Ends with
                     the line "Answer: ..." */
} longtext_question;

typedef struct {
    buf document, question, answer, solution;
    int64_t tokens; /* tokens of the document, two line ends and the question (document_write()) */
    longtext_question further[LONGTEXT_QUESTIONS];
    int n_further;
} longtext;

/**
 * longtext_make - make one item
 *
 * @name: selects the random numbers together with @seed
 * @out:  starts with zeros; release with longtext_release(), also after a failure
 *
 * The texts are drawn again until the item is of the wanted split. SNAP_E_INPUT if the length is
 * too small for the statements, there are too few names at the distance, or no draw is of the
 * split; SNAP_E_NOMEM.
 */
snap_status longtext_make(const longtext_options *o, uint64_t seed, const char *name,
                          const token_counter *counter, longtext *out,
                          snap_err *err) SNAP_CHECK_RESULT;
void longtext_release(longtext *t);

#endif
