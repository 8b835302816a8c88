/* votes.h - equal answers among many: counted by sorting their hashes. */
#ifndef SNAPMLA_EVALS_VOTES_H
#define SNAPMLA_EVALS_VOTES_H

#include <stddef.h>
#include <stdint.h>

/* How many of @n hashes repeat another one. Sorts @h. */
size_t votes_repeats(uint64_t *h, size_t n);

/* The share of @correct among the answers with most votes: 1, 0, or less than 1 where several lead; 0 for
 * no votes. Sorts @h. */
double votes_majority(uint64_t *h, size_t n, uint64_t correct);

#endif
