/* work.h - arithmetic as it is written down in a solution: each function appends its steps and returns
 * what they come to. All equations are true as they stand. */
#ifndef SNAPMLA_EVALS_SYNTH_WORK_H
#define SNAPMLA_EVALS_SYNTH_WORK_H

#include <stdint.h>

#include "base/buf.h"

/* buf_printf() whose failure is looked at later: the buffer remembers it. */
void say(buf *out, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* "347*285=347*5+347*80+347*200=1735+27760+69400=29495+69400=98895"; by one digit at once. a, b >= 0 */
int64_t work_multiply(buf *out, int64_t a, int64_t b);

/* "98895 mod 211: 988-4*211=988-844=144; 1449-6*211=1449-1266=183; ...=147" and a line's end; nothing at
 * all where a < m. a >= 0, m > 0 */
int64_t work_remainder(buf *out, int64_t a, int64_t m);

/* The same with the quotient: "98895/211: ...=147; quotient 468" and a line's end; "84/7=12" where the
 * divisor has one digit and nothing is left. */
int64_t work_divide(buf *out, int64_t a, int64_t m, int64_t *rest);

/* Euclid: a line each remainder, then "gcd(84,30)=6" and a line's end. a, b > 0 */
int64_t work_gcd(buf *out, int64_t a, int64_t b);

/* "3*5-2*7=15-14=1": a*b+c*d, signed, each product by one multiplication. */
int64_t work_cross(buf *out, int64_t a, int64_t b, int64_t c, int64_t d);

/* "5" or "(-5)": as a factor or behind a sign. */
void say_factor(buf *out, int64_t a);

int64_t gcd_of(int64_t a, int64_t b); /* > 0 unless both are 0 */

#endif
