/* Splits the input into two answers at the first newline. Without a newline, both answers are the
 * whole input. Any bytes have a verdict, the verdict is the same every time, and MATH_FIELD accepts
 * whatever MATH_STRICT accepts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evals/math/math_equal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static math_verdict judge(const char *g, size_t n, const char *a, size_t m, math_policy policy) {
    math_verdict v = {0};
    if (math_equal(g, n, a, m, policy, &v) != SNAP_OK || !v.reason)
        abort();
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *s = (const char *)data;
    const char *split = size ? memchr(s, '\n', size) : NULL;
    size_t n = split ? (size_t)(split - s) : size, rest = split ? size - n - 1 : size;
    const char *t = split ? split + 1 : s;
    math_verdict field = judge(s, n, t, rest, MATH_FIELD);
    math_verdict again = judge(s, n, t, rest, MATH_FIELD);
    math_verdict strict = judge(s, n, t, rest, MATH_STRICT);
    math_verdict truth = judge(s, n, t, rest, MATH_TRUTH);
    math_verdict repeated = judge(s, n, t, rest, MATH_TRUTH);
    if (truth.outcome != repeated.outcome || truth.reason != repeated.reason)
        abort();
    if (field.outcome != again.outcome || field.reason != again.reason)
        abort();
    if (strict.outcome == MATH_EQUAL && field.outcome != MATH_EQUAL)
        abort(); /* MATH_FIELD accepts whatever MATH_STRICT accepts */
    return 0;
}
