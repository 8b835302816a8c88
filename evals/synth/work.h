/* work.h - written arithmetic for solutions. Each function work_*() appends its steps and returns
 * the result. All equations that these functions write are true. */
#ifndef SNAPMLA_EVALS_SYNTH_WORK_H
#define SNAPMLA_EVALS_SYNTH_WORK_H

#include <stdint.h>

#include "base/buf.h"

/* Like buf_printf(), but without a result to check: the buffer records a failure. One call may
 * write up to 511 bytes. */
void say(buf *out, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* Writes the product of a and b: "347*285=347*5+347*80+347*200=1735+27760+69400=29495+69400=98895".
 * It is one step if a has one digit or b has at most one nonzero digit. a, b >= 0 */
int64_t work_multiply(buf *out, int64_t a, int64_t b);

/* Writes the remainder of a modulo m: "98895 mod 211: 988-4*211=988-844=144;
 * 1449-6*211=1449-1266=183; ...=147" and a newline; nothing if a < m. a >= 0, m > 0 */
int64_t work_remainder(buf *out, int64_t a, int64_t m);

/* Writes the quotient, too, and returns it: "98895/211: ...=147; quotient 468" and a newline;
 * "84/7=12" and a newline if the divisor has one digit and there is no remainder. *rest becomes the
 * remainder. */
int64_t work_divide(buf *out, int64_t a, int64_t m, int64_t *rest);

/* Euclid's algorithm: one line per remainder, then "gcd(84,30)=6" and a newline. a, b > 0 */
int64_t work_gcd(buf *out, int64_t a, int64_t b);

/* Computes a*b+c*d and writes "3*5-2*7=15-14=1". Factors may be negative. Products are written
 * without intermediate steps. */
int64_t work_cross(buf *out, int64_t a, int64_t b, int64_t c, int64_t d);

/* Writes "5" or "(-5)", the form of a factor or of a number after a sign. */
void say_factor(buf *out, int64_t a);

int64_t gcd_of(int64_t a, int64_t b); /* > 0 unless both are 0 */

#endif
