/* math_spelling.h - tables of the words, commands and signs in which answers are written. */
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
    int16_t kind, arg; /* math_token_kind or one of the actions below */
} math_spelling;

/* Actions of the tokenizer for spellings that are no tokens. kSkip: the argument is ignored too. */
enum { kLayout = 200, kSkip, kSize, kText, kPlainText, kBold, kOpenEnv, kCloseEnv };

/* The meaning of a command (without its backslash) or of a bare word; NULL if unknown. */
const math_spelling *math_find_command(const char *s, size_t n);
const math_spelling *math_find_word(const char *s, size_t n);

/* The meaning of commands and words that only MATH_TRUTH reads, or reads in another way. */
const math_spelling *math_find_rare_command(const char *s, size_t n);
const math_spelling *math_find_rare_word(const char *s, size_t n);

/* The name of the command if it is a symbol (alpha) or begins one (vec); else NULL. */
const char *math_find_name(const char *s, size_t n);

/* True if a word is a unit of measure, singular or plural, that may occur without \text. */
bool math_is_unit(const char *s, size_t n);

/* True if @s is a UTF-8 sign in the table. *latex gets the LaTeX that the tokenizer reads in its
 * place, or NULL if it refuses the sign (a typed root sign). For MATH_TRUTH, math_rewrite.c has
 * replaced many of these signs before. */
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
