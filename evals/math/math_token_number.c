/* Reads the tokens of numbers, with their thousands separators. */
#include "evals/math/math_lexer.h"

/* The end of a thousands separator at @s, or NULL. *sign: ',' = a plain comma, '{' = a comma that
 * cannot be anything else, '!', ' ' or 's' = no comma, 's' for MATH_TRUTH only. */
static const char *separator_end(const lexer *l, const char *s, char *sign) {
    static const struct {
        const char *spelling;
        char sign;
    } always[] = {{",\\!", '{'}, {"{,}\\!", '{'}, {"{,}", '{'}, {"\\!", '!'},
                  {" ", ' '},    {"\\,", 's'},    {"\\ ", 's'}, {"\\;", 's'},
                  {"\\:", 's'},  {"~", 's'},      {"'", 's'}};
    for (size_t i = 0; i < COUNT(always); i++)
        if (starts(l, s, always[i].spelling) && (l->truth || always[i].sign != 's')) {
            *sign = always[i].sign;
            return skip_spaces(l, s + strlen(always[i].spelling));
        }
    *sign = ',';
    bool outside = l->brackets == 0 || l->wide_commas;
    return l->group && outside && starts(l, s, ",") ? s + 1 : NULL;
}

/* True if there are exactly three digits at @s. */
static bool is_group(const lexer *l, const char *s) {
    return l->end - s >= 3 && is_digit(s[0]) && is_digit(s[1]) && is_digit(s[2]) &&
           (l->end - s == 3 || !is_digit(s[3]));
}

static void keep_digits(lexer *l, const char *s, size_t n) {
    math_tokens *t = l->out;
    memcpy(t->pool + t->pool_used, s, n); /* fits, because every input byte is stored at most
                                             once */
    t->pool_used += n;
}

/* Keeps @skip characters at @s and the digits after them. Returns their end. */
static const char *keep_run(lexer *l, const char *s, size_t skip) {
    const char *end = s + skip;
    while (end < l->end && is_digit(*end))
        end++;
    keep_digits(l, s, (size_t)(end - s));
    return end;
}

void math_lex_number(lexer *l) {
    const char *start = l->out->pool + l->out->pool_used, *s = l->s;
    while (s < l->end && is_digit(*s))
        s++;
    size_t first = (size_t)(s - l->s);
    keep_digits(l, l->s, first);
    if (first >= 1 && first <= 3 && *l->s != '0')
        for (;;) {
            char sign;
            const char *g = separator_end(l, s, &sign);
            if (!g || !is_group(l, g))
                break;
            keep_digits(l, g, 3);
            s = g + 3;
            l->out->grouped |= sign == ',';
            l->out->zeros |= sign == ',' && *g == '0';
            l->out->separated |= sign == ',' || sign == '{';
            l->out->spaced_group |= sign == ' ';
        }
    if (l->end - s >= 2 && s[0] == '.' && is_digit(s[1])) {
        s = keep_run(l, s, 1);
        while (l->truth && starts(l, s, "\\,") && s + 2 < l->end && is_digit(s[2]) &&
               is_digit(s[-1]) && is_digit(s[-2]) && is_digit(s[-3]))
            s = keep_run(l, s + 2, 0); /* 0.000\,067\,2 */
    }
    l->s = s;
    push(l, TOK_NUM, 0, start, (size_t)(l->out->pool + l->out->pool_used - start));
}

/* Reads the point of 0.\overline{3}; the zero before it may be missing. */
void math_lex_period(lexer *l) {
    const math_tokens *t = l->out;
    if (t->count == 0 || t->tok[t->count - 1].kind != TOK_NUM)
        push(l, TOK_NUM, 0, "0", 1);
    push(l, TOK_POINT, 0, NULL, 0);
    l->s++;
}
