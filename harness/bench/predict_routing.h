/* predict_routing.h - how many different experts the rows of a step choose, if they choose at
 * random: all experts are equally likely, and each row chooses as the model's router does. With
 * groups of experts, a row first chooses groups, and then experts from them. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_ROUTING_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_ROUTING_H

#include "generator/local/checkpoint/shape.h"

/* Number of experts that are read in a layer if each of @rows rows chooses @chosen of @all at
 * random, and @here of them are on the rank. */
double predict_experts(double here, double all, double chosen, double rows);

/* The probability that a row chooses at least one of @here routed experts, which are next to each
 * other: a part of a group, or whole groups. With groups, a row is taken to choose the groups at
 * random, too. With the router of DeepSeek-V3, the probability is up to 9 % larger. */
double predict_reach(const model_shape *s, double here);

/**
 * predict_busiest_rank - how many more experts the busiest rank reads than the average rank
 *
 * Each of @ranks ranks has the same number of whole routed experts, in ascending order, and @rows
 * rows choose from all of them. Returns the expected difference, in a layer, between the largest
 * number of different chosen experts on a rank and the mean number. The largest of these numbers is
 * taken from a normal distribution with their variance and covariance.
 *
 * With groups, a row is taken to choose the groups at random, too. The router of DeepSeek-V3 rates
 * a group by its two best experts, which spreads the chosen experts more evenly: the result for
 * DeepSeek-V3 is up to 20 % larger than with its router.
 */
double predict_busiest_rank(const model_shape *s, int ranks, double rows);

#endif
