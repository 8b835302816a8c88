/* distributions.h - the two distributions that intervals are made of.
 *
 * Source: Student's t through the regularised incomplete beta function, by its continued fraction
 * (Abramowitz and Stegun 26.5.8, evaluated as Lentz does); quantiles by bisection of the
 * distribution function, so that the two can't disagree. */
#ifndef SNAPMLA_EVALS_DISTRIBUTIONS_H
#define SNAPMLA_EVALS_DISTRIBUTIONS_H

double normal_cdf(double x);
double normal_quantile(double p); /* 0 < p < 1 */

/* @df: degrees of freedom, > 0, not necessarily whole. */
double student_cdf(double t, double df);
double student_quantile(double p, double df); /* 0 < p < 1 */

#endif
