/* conversation.h - conversations of several turns about facts that change: does a model still
 * answer from the present state, and still obey the instruction of its system message?
 *
 * The system message has a document, as in longtext.h, that states how many crates each of several
 * ships carries at the start, and an instruction: every answer has the form "Dispatch: NUMBER".
 * Each turn may revise one ship, and asks about one. */
#ifndef SNAPMLA_EVALS_LONGTEXT_CONVERSATION_H
#define SNAPMLA_EVALS_LONGTEXT_CONVERSATION_H

#include "evals/longtext/longtext.h"

enum { CONVERSATION_TURNS = 64 };

typedef struct {
    int64_t length;         /* tokens of the document, two line ends and the instruction */
    int turns;              /* 1..CONVERSATION_TURNS */
    int keys;               /* number of ships that the document names, each with a number */
    name_distance distance; /* how much the ships' names differ from that of the first ship */
    longtext_split split;   /* the split that the ships' names and first numbers must belong to */
} conversation_options;

typedef struct {
    const char *question; /* the user's message */
    const char *answer;   /* the right number */
    int age;              /* turns since the value was stated. 0: this message states it. In turn t,
                             counted from 0, t + 1 means that the document states it */
} conversation_turn;

/* Texts are owned by the arena that conversation_make() was given. */
typedef struct {
    const char *document, *instruction;
    conversation_turn turns[CONVERSATION_TURNS];
    int64_t tokens; /* tokens of document, two line ends and instruction (document_write()) */
} conversation;

extern const char conversation_answer[]; /* "Dispatch: ": the form of an answer before the number */

/* Makes a conversation. @name and @seed choose its random numbers. SNAP_E_INPUT if the length is
 * too small, or there are too few names; SNAP_E_NOMEM. */
snap_status conversation_make(const conversation_options *o, uint64_t seed, const char *name,
                              const token_counter *counter, arena *mem, conversation *out,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
