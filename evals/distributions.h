/* distributions.h - normal and Student's t distribution, for confidence intervals.
 *
 * Student's t uses the regularised incomplete beta function, computed by its continued fraction
 * (Abramowitz and Stegun 26.5.8, evaluated by Lentz's method). Quantiles are found by bisection of
 * the distribution function. */
#ifndef SNAPMLA_EVALS_DISTRIBUTIONS_H
#define SNAPMLA_EVALS_DISTRIBUTIONS_H

double normal_cdf(double x);
double normal_quantile(double p); /* 0 < p < 1 */

/* @df: degrees of freedom, > 0, not necessarily an integer. */
double student_cdf(double t, double df);
double student_quantile(double p, double df); /* 0 < p < 1 */

#endif
