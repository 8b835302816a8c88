/* votes.h - counts equal answers by sorting their hashes. */
#ifndef SNAPMLA_EVALS_VOTES_H
#define SNAPMLA_EVALS_VOTES_H

#include <stddef.h>
#include <stdint.h>

/* How many of @n hashes repeat an earlier equal one. Sorts @h. */
size_t votes_repeats(uint64_t *h, size_t n);

/* Majority vote. 1 if @correct has the most votes, 0 if not; if several answers share the lead, the
 * fraction of them that is @correct. 0 without votes. Sorts @h. */
double votes_majority(uint64_t *h, size_t n, uint64_t correct);

#endif
