#include <string.h>

#include "evals/math/math_spelling.h"
#include "evals/math/math_token.h"

static bool same_text(math_span a, math_span b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

static const math_token *skip_cosmetic(const math_token *t) {
    while (t->kind == TOK_DEGREE || t->kind == TOK_UNIT)
        t++;
    return t;
}

bool math_tokens_equal(const math_tokens *a, const math_tokens *b) {
    const math_token *s = a->tok, *t = b->tok;
    for (;; s++, t++) {
        s = skip_cosmetic(s);
        t = skip_cosmetic(t);
        bool comma = s->kind == TOK_COMMA && (s->arg == ';') == (t->arg == ';');
        if (s->kind != t->kind || (s->arg != t->arg && !comma))
            return false;
        if (s->kind == TOK_END)
            return true;
        bool named = s->kind == TOK_NUM || s->kind == TOK_SYM || s->kind == TOK_WORD ||
                     s->kind == TOK_BEGIN || s->kind == TOK_END_ENV;
        if (named && !same_text(s->text, t->text))
            return false;
    }
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Writes the texts of an answer's tokens in lower case, without spaces and brackets. Returns the
 * number of bytes; 0 if a token is a number, a \begin or without a text. */
static size_t spell(const math_tokens *t, char *out) {
    size_t n = 0;
    for (const math_token *k = t->tok; k->kind != TOK_END; k++) {
        bool bracket = k->kind == TOK_LPAREN || k->kind == TOK_RPAREN || k->kind == TOK_LBRACE ||
                       k->kind == TOK_RBRACE;
        if (bracket)
            continue;
        if (k->text.len == 0 || k->kind == TOK_NUM || k->kind == TOK_BEGIN)
            return 0;
        for (uint32_t i = 0; i < k->text.len; i++)
            if (!is_space(k->text.s[i]) && n < kMathMaxInput)
                out[n++] = lower(k->text.s[i]);
    }
    return n;
}

bool math_is_statement(const math_tokens *t) {
    const math_token *k = t->tok;
    while (k->kind == TOK_REL && k->arg == REL_EQ)
        k++; /* skips "=" before a value */
    for (; k->kind != TOK_END; k++)
        if (k->kind == TOK_REL || k->kind == TOK_APPROX)
            return true;
    return false;
}

bool math_is_short_naming(const math_tokens *t) {
    const math_token *k = t->tok;
    for (int i = 0; i < 2 && k->kind == TOK_SYM && k->text.len == 1; i++)
        k++;
    if (k == t->tok || k->kind != TOK_REL || k->arg != REL_EQ)
        return false;
    if (k == t->tok + 2 && k->spaced)
        return false;
    for (k++; k->kind != TOK_END; k++)
        if (k->kind == TOK_REL || k->kind == TOK_APPROX)
            return false;
    return true;
}

bool math_words_equal(const math_tokens *a, const math_tokens *b) {
    char s[kMathMaxInput], t[kMathMaxInput];
    if (!a->text && !b->text)
        return false;
    size_t n = spell(a, s), m = spell(b, t);
    return n > 0 && n == m && memcmp(s, t, n) == 0;
}
