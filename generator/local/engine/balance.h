/* balance.h - which of several replicas of a model gets the next request. In this order:
 *
 *   1. a replica that has the prompt of the request, can decode the sequences of the request at
 *      once, and holds fewer than @ahead sequences more than the replica of rule 2
 *   2. of the replicas that hold fewer than twice as many sequences as they decode at once, the one
 *      whose requests need the least of its cache; among equals the one that holds the fewest
 *      sequences; then the one that has received the fewest sequences so far
 *
 * If all hold more, rule 2 chooses among all of them. What a request needs of the cache is the sum
 * of the prompts and longest answers of its sequences, in tokens, until it ends. A prompt that
 * several sequences share counts for each of them, because attention reads it for each of them. */
#ifndef SNAPMLA_GENERATOR_LOCAL_ENGINE_BALANCE_H
#define SNAPMLA_GENERATOR_LOCAL_ENGINE_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool broken;    /* the replica is chosen only if all are broken */
    bool has_same;  /* it has the prompt of the request */
    int most;       /* sequences that it decodes at once */
    int64_t held;   /* its sequences that have not ended */
    int64_t tokens; /* what their requests need of its cache */
    int64_t given;  /* sequences that it has received so far */
} replica_use;

/* Whether a replica holds fewer than twice as many sequences as it decodes at once. */
static inline bool balance_has_room(int64_t held, int most) {
    return held < 2 * (int64_t)most;
}

/* Returns the number of the replica, 0 .. n - 1, for a request of @sequences sequences. */
int balance_choose(const replica_use *of, int n, int sequences, int ahead);

#endif
