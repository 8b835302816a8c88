/* reading.h - what is wanted of a row's logits. A draw needs little of them: on a device that little is found where they
 * lie, and a hundred thousand numbers a token stay there. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_READING_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_READING_H

#include <stdint.h>

/* p of a token = exp((its logit - the largest) / temperature), in FP64; NaN counts as 0. */
typedef enum {
    READ_LOGITS, /* all of them */
    READ_BEST,   /* the token of the largest; of equals the lower id */
    READ_SHARE, /* the first token, by id, at which the sum of p goes beyond `share` of the whole */
    READ_NUCLEUS, /* the fewest tokens whose p reach `share` of the whole, and some more */
    READ_TOP,     /* the `share` largest, and some more; none whose p is 0 */
} reading_kind;

typedef struct {
    reading_kind kind;
    double temperature, share;
} reading;

typedef struct {
    int32_t id;
    float logit;
} token_logit;

enum { READING_MOST = 1024 /* tokens that are listed */ };

/* READ_LOGITS wherever the answer is not what was asked for: no device that can, no finite largest logit, more tokens
 * than are listed. */
typedef struct {
    reading_kind kind;
    int32_t token;           /* READ_BEST, READ_SHARE */
    int n;                   /* READ_NUCLEUS, READ_TOP: tokens listed, in no order */
    const token_logit *list; /* until the next step */
    float largest;
    double sum; /* of all p */
} reading_answer;

#endif
