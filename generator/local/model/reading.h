/* reading.h - the parts of a row's logits that a draw needs. On a device they are computed where
 * the logits are, so that a hundred thousand numbers per token need not be copied to the host. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_READING_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_READING_H

#include <stdint.h>

/* Below, p of a token = exp((its logit - the largest) / temperature), in FP64. */
typedef enum {
    READ_LOGITS,  /* all of them */
    READ_BEST,    /* the token with the largest logit; of equal ones the lowest id */
    READ_SHARE,   /* the first token, by id, at which the running sum of p exceeds `share` of the
                   whole sum */
    READ_NUCLEUS, /* the likeliest tokens whose p add up to `share` of the whole; may include some
                     more */
    READ_TOP,     /* the `share` likeliest tokens, fewer if p is 0 for the rest; may include some
                     more, but none whose p is 0 */
    READ_NOT_FINITE, /* only as a result: a logit of the row is NaN or infinite, so no token may be
                        drawn from it */
} reading_kind;

typedef struct {
    reading_kind kind;
    double temperature, share;
} reading;

typedef struct {
    int32_t id;
    float logit;
} token_logit;

enum { READING_MOST = 1024 /* most tokens in a list */ };

/* kind is that of the reading, or READ_NOT_FINITE, or READ_LOGITS if the row of logits was copied
 * instead: on the CPU, or if the list would be too long. */
typedef struct {
    reading_kind kind;
    int32_t token;           /* READ_BEST, READ_SHARE */
    int n;                   /* READ_NUCLEUS, READ_TOP: number of tokens in the list, in no
                                particular order */
    const token_logit *list; /* valid until the next step */
    float largest;
    double sum; /* sum of all p */
} reading_result;

#endif
