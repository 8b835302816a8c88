/* training.h - long texts and conversations as chats with right answers, to train a model on the
 * tasks long_* and to test it while it is trained.
 *
 * The first prompt of a chat is what the task files long_*.json render. A text of longtext.h has
 * further questions about the same text after it, so that one text trains many answers. The options
 * that training_options does not set are drawn at random for each text. */
#ifndef SNAPMLA_EVALS_LONGTEXT_TRAINING_H
#define SNAPMLA_EVALS_LONGTEXT_TRAINING_H

#include "evals/longtext/longtext.h"

/* Kinds: those of longtext_kind, then conversations (conversation.h). */
enum { TRAINING_TURNS = LONGTEXT_COPY + 1, TRAINING_KINDS };

extern const char *const training_kinds[]; /* "needle", ..., "turns"; NULL-terminated */

typedef struct {
    int kind;
    int64_t length; /* tokens of the first prompt; for a conversation, of the system message */
    longtext_split split;
    int questions;          /* largest number of further questions about the text */
    double chars_per_token; /* the length is estimated, so no tokenizer is needed */
} training_options;

/**
 * training_chat - append a chat as one line of JSON
 *
 * {"id", "level": the length, "family": the kind, "messages": [{"role", "content"}, ...]}. Each
 * message of the role "assistant" is a worked solution or, in a conversation, the answer alone. The
 * chat is a pure function of the options, the seed and the number.
 *
 * SNAP_E_INPUT if the length is too small for the kind; SNAP_E_NOMEM.
 */
snap_status training_chat(const training_options *o, uint64_t seed, int64_t number, buf *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
