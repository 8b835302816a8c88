/* math_rewriter.h - declarations that the files of the rewriting share: its state, and the
 * functions that write and skip. */
#ifndef SNAPMLA_EVALS_MATH_MATH_REWRITER_H
#define SNAPMLA_EVALS_MATH_MATH_REWRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "evals/math/math_spelling.h"

/* An answer that is read from @s and written to @out. */
typedef struct {
    const char *begin, *s, *end;
    char *out;
    size_t used, cap;
    bool full; /* @out was too small */
} rewriter;

static inline void put(rewriter *r, const char *s, size_t n) {
    if (n > r->cap - r->used) {
        r->full = true;
        return;
    }
    memcpy(r->out + r->used, s, n);
    r->used += n;
}

static inline void puts_to(rewriter *r, const char *s) {
    put(r, s, strlen(s));
}

static inline bool starts(const rewriter *r, const char *s, const char *word) {
    size_t n = strlen(word);
    return (size_t)(r->end - s) >= n && memcmp(s, word, n) == 0;
}

static inline const char *skip_spaces(const rewriter *r, const char *s) {
    while (s < r->end && is_space(*s))
        s++;
    return s;
}

static inline const char *skip_digits(const rewriter *r, const char *s) {
    while (s < r->end && is_digit(*s))
        s++;
    return s;
}

/* Rewrites the character at r->s, which is not ASCII ("≤", "√", "½", "−"), in LaTeX. */
void math_rewrite_sign(rewriter *r);

/* Rewrites the number at r->s, from its first digit or point on. */
void math_rewrite_number(rewriter *r);

#endif
