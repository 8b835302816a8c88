/* math_lexer.h - declarations that the files of the tokenizer share: its state, the function that
 * adds a token, and the rules that call each other. */
#ifndef SNAPMLA_EVALS_MATH_MATH_LEXER_H
#define SNAPMLA_EVALS_MATH_MATH_LEXER_H

#include <string.h>

#include "evals/math/math_spelling.h"
#include "evals/math/math_token.h"

typedef struct {
    math_tokens *out;
    const char *s, *end;
    bool group;       /* a plain comma may separate thousands */
    bool truth;       /* tokenizes for MATH_TRUTH */
    bool wide_commas; /* MATH_TRUTH: a comma with a space after it occurs, so that commas without a
                         space may separate thousands within brackets: (1,000, 2,000) */
    bool spaced;      /* white space since the last token */
    bool inside;      /* between \( and \) */
    char gap;         /* '~' or ',' if the white space before this place contains '~' or '\,' (the
                         last of them); else 0 */
    math_span size;   /* \big or another size command since the last token */
    int quoted;       /* number of \text around this place */
    int brackets;     /* number of open ( [ \{, and with MATH_TRUTH also of \langle and similar
                         brackets */
    int envs;         /* number of open \begin */
    size_t run_end;   /* token count at the end of the last run of several letters; 0: none */
    const char *why;  /* first error */
} lexer;

/* Each of these functions reads what is at l->s and adds its tokens. On an error it sets l->why. */
void math_lex(lexer *l);           /* all of the input */
void math_lex_number(lexer *l);    /* digits, with thousands separators */
void math_lex_period(lexer *l);    /* the point of 0.\overline{3} */
void math_lex_letters(lexer *l);   /* a word or several letters */
void math_lex_backslash(lexer *l); /* a command */
void math_lex_text(lexer *l);      /* the braces after \text */

/* Splits a piece of the input into tokens separately, so that no token crosses its end. */
void math_lex_piece(lexer *l, const char *s, const char *end);

/* Adds the token of a letter or of a name such as alpha. */
void math_push_letter(lexer *l, const char *s, size_t n);

/* The end of the group that opens at @s, or the end of the input if the group is not closed. */
const char *math_group_end(const lexer *l, const char *s);

static inline void push(lexer *l, math_token_kind kind, int arg, const char *s, size_t n) {
    math_tokens *t = l->out;
    if (t->count == kMathMaxTokens) {
        l->why = "too many tokens";
        return;
    }
    t->tok[t->count++] = (math_token){
        .kind = (uint8_t)kind, .arg = (int16_t)arg, .spaced = l->spaced, .text = {s, (uint32_t)n}};
    l->spaced = false;
    l->gap = 0;
    l->size = (math_span){0};
}

/* True if the last token can end a value, so that a word after it is a unit. */
static inline bool after_value(const lexer *l) {
    if (l->out->count == 0)
        return false;
    switch (l->out->tok[l->out->count - 1].kind) {
    case TOK_NUM:
    case TOK_SYM:
    case TOK_CONST:
    case TOK_UNIT:
    case TOK_DEGREE:
    case TOK_RPAREN:
    case TOK_RBRACE:
    case TOK_RSET:
    case TOK_BANG:
    case TOK_BAR:
    case TOK_END_ENV:
    case TOK_PERCENT:
        return true;
    default:
        return false;
    }
}

static inline const char *skip_spaces(const lexer *l, const char *s) {
    while (s < l->end && is_space(*s))
        s++;
    return s;
}

static inline bool starts(const lexer *l, const char *s, const char *prefix) {
    size_t n = strlen(prefix);
    return (size_t)(l->end - s) >= n && memcmp(s, prefix, n) == 0;
}

#endif
