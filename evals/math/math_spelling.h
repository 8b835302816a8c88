/* math_spelling.h - the words, commands and signs that answers are written with. */
#ifndef SNAPMLA_EVALS_MATH_MATH_SPELLING_H
#define SNAPMLA_EVALS_MATH_MATH_SPELLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "evals/math/math_token.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef struct {
    const char *name;
    int16_t kind, arg; /* math_token_kind, or how to go on */
} math_spelling;

/* No tokens: how to go on. */
enum { kLayout = 200, kSize, kText, kPlainText, kBold, kOpenEnv, kCloseEnv };

/* What a command (without its backslash) or a bare word stands for; NULL if nothing. */
const math_spelling *math_find_command(const char *s, size_t n);
const math_spelling *math_find_word(const char *s, size_t n);

/* The name of a command that is a name, or starts one; NULL if it doesn't. */
const char *math_find_name(const char *s, size_t n);

/* Whether a word is a unit of measure that may stand without a \text, in the singular or plural. */
bool math_is_unit(const char *s, size_t n);

/* Whether @s is a UTF-8 sign of the table; @latex what it stands for, NULL where no grader of the
 * field takes it for that. */
bool math_find_sign(const char *s, size_t n, const char **latex);

static inline bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~';
}

static inline bool span_is(const char *s, size_t n, const char *name) {
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

#endif
