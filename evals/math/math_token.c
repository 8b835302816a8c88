#include "evals/math/math_token.h"

#include <string.h>

#include "base/text.h"
#include "evals/math/math_marks.h"
#include "evals/math/math_spelling.h"

typedef struct {
    math_tokens *out;
    const char *s, *end;
    bool group;      /* a plain comma may separate thousands */
    bool spaced;     /* white space since the last token */
    bool inside;     /* between \( and \) */
    char gap;        /* the last '~' in that white space, or ',' for a \, in it; 0: neither */
    math_span size;  /* \big or another size command since the last token */
    bool quoted;     /* inside a \text */
    int brackets;    /* number of open ( [ \{ */
    int envs;        /* number of open \begin */
    size_t run_end;  /* token count at the end of the last run of several letters; 0: none */
    const char *why; /* first error */
} lexer;

static void push(lexer *l, math_token_kind kind, int arg, const char *s, size_t n) {
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
static bool after_value(const lexer *l) {
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

static const char *skip_spaces(const lexer *l, const char *s) {
    while (s < l->end && is_space(*s))
        s++;
    return s;
}

static bool starts(const lexer *l, const char *s, const char *prefix) {
    size_t n = strlen(prefix);
    return (size_t)(l->end - s) >= n && memcmp(s, prefix, n) == 0;
}

/* ---- numbers ---- */

/* The end of a thousands separator at @s, or NULL. *sign: ',' = a plain comma, '{' = a comma that
 * cannot be anything else, '!' or ' ' = no comma. */
static const char *separator_end(const lexer *l, const char *s, char *sign) {
    static const struct {
        const char *spelling;
        char sign;
    } always[] = {{",\\!", '{'}, {"{,}\\!", '{'}, {"{,}", '{'}, {"\\!", '!'}, {" ", ' '}};
    for (size_t i = 0; i < COUNT(always); i++)
        if (starts(l, s, always[i].spelling)) {
            *sign = always[i].sign;
            return skip_spaces(l, s + strlen(always[i].spelling));
        }
    *sign = ',';
    return l->group && l->brackets == 0 && starts(l, s, ",") ? s + 1 : NULL;
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

static void lex_number(lexer *l) {
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
        const char *frac = s++;
        while (s < l->end && is_digit(*s))
            s++;
        keep_digits(l, frac, (size_t)(s - frac));
    }
    l->s = s;
    push(l, TOK_NUM, 0, start, (size_t)(l->out->pool + l->out->pool_used - start));
}

/* Reads the point of 0.\overline{3}; the zero before it may be missing. */
static void lex_period(lexer *l) {
    const math_tokens *t = l->out;
    if (t->count == 0 || t->tok[t->count - 1].kind != TOK_NUM)
        push(l, TOK_NUM, 0, "0", 1);
    push(l, TOK_POINT, 0, NULL, 0);
    l->s++;
}

/* ---- words and \text ---- */

static void lex(lexer *l);

static void push_letter(lexer *l, const char *s, size_t n) {
    if (n == 1 && *s == 'e')
        push(l, TOK_CONST, CONST_E, s, n);
    else if (n == 1 && *s == 'i')
        push(l, TOK_CONST, CONST_I, s, n);
    else
        push(l, TOK_SYM, 0, s, n);
}

static int unit_place(const lexer *l) {
    return l->inside ? '(' : l->gap;
}

static void lex_letters(lexer *l) {
    const char *s = l->s;
    while (l->s < l->end && is_letter(*l->s))
        l->s++;
    size_t n = (size_t)(l->s - s);
    const math_spelling *w = math_find_word(s, n);
    if (w) {
        l->out->typed |= w->kind == TOK_FN;
        push(l, w->kind, w->arg, s, n);
    } else if (n > 1 && after_value(l) && math_is_unit(s, n)) {
        if (l->s < l->end && *l->s == '^')
            l->why = "a power of a unit outside \\text";
        push(l, TOK_UNIT, unit_place(l), s, n);
    } else {
        l->out->prose |= n > 1 && l->spaced && l->run_end > 0 && l->run_end == l->out->count;
        for (size_t i = 0; i < n; i++)
            push_letter(l, s + i, 1);
        l->run_end = n > 1 ? l->out->count : 0;
    }
}

/* The end of the group that opens at @s, or the end of the input if the group is not closed. */
static const char *group_end(const lexer *l, const char *s) {
    int depth = 0;
    for (; s < l->end; s++) {
        if (*s == '\\' && s + 1 < l->end)
            s++;
        else if (*s == '{')
            depth++;
        else if (*s == '}' && --depth == 0)
            return s;
    }
    return l->end;
}

/* True if the content of a \text is mathematics: it has no plain words, no letters that label a
 * number, as in "(b) 0", and is not a unit without a number. */
static bool is_mathematics(const char *s, const char *end) {
    bool letter = false, digit = false, unit = false;
    while (s < end) {
        if ((unsigned char)*s >= 0x80)
            return false;
        digit |= is_digit(*s);
        const char *run = s;
        while (s < end && is_letter(*s))
            s++;
        size_t n = (size_t)(s - run);
        letter |= n == 1 && !math_is_unit(run, n);
        unit |= math_is_unit(run, n);
        if (n > 1 && !math_find_word(run, n) && !math_is_unit(run, n))
            return false;
        s += n == 0;
    }
    return digit ? !letter : !unit;
}

/* Splits a piece of the input into tokens separately, so that no token crosses its end. */
static void lex_piece(lexer *l, const char *s, const char *end) {
    const char *after = l->s, *whole_end = l->end;
    l->s = s;
    l->end = end;
    lex(l);
    l->s = after;
    l->end = whole_end;
}

/* True if the text has a digit. Used to detect numbers in a \text or in bold. */
static bool has_digit(const char *s, const char *end) {
    while (s < end && !is_digit(*s))
        s++;
    return s < end;
}

/* How to read the content of a \text (with outer spaces removed): as a unit after a value, as
 * mathematics (TOK_END), or as words. */
static math_token_kind text_kind(const lexer *l, const char *s, const char *end, bool glued) {
    bool letter = is_letter(*s), one = end - s == 1;
    if (memchr(s, '\\', (size_t)(end - s)) || (one && !letter))
        return TOK_END;
    if (one && glued && (*s == 'i' || *s == 'e'))
        return TOK_END;
    if (after_value(l))
        return TOK_UNIT;
    return is_mathematics(s, end) ? TOK_END : TOK_WORD;
}

static void lex_text(lexer *l) {
    const char *open = skip_spaces(l, l->s);
    if (open == l->end || *open != '{')
        return;
    const char *end = group_end(l, open), *s = open + 1;
    l->s = end < l->end ? end + 1 : end;
    bool glued = s < end && !is_space(*s);
    while (s < end && is_space(*s))
        s++;
    while (end > s && is_space(end[-1]))
        end--;
    size_t n = (size_t)(end - s);
    if (n == 0 || (n == 1 && *s == '.' && after_value(l))) /* \text{.} only ends a sentence */
        return;
    if (l->quoted) {
        l->why = "a \\text within a \\text";
        return;
    }
    l->out->text = true;
    const math_spelling *w = math_find_word(s, n);
    math_token_kind kind = w ? (math_token_kind)w->kind : text_kind(l, s, end, glued);
    if (kind == TOK_END) {
        l->out->wrapped |= has_digit(s, end);
        l->quoted = true;
        lex_piece(l, s, end);
        l->quoted = false;
    } else if (kind == TOK_PERCENT) {
        push(l, kind, 2, s, n);
    } else {
        push(l, kind, w ? w->arg : kind == TOK_UNIT ? unit_place(l) : 0, s, n);
    }
}

/* ---- commands ---- */

static void lex_env(lexer *l, math_token_kind kind) {
    const char *open = skip_spaces(l, l->s);
    const char *end = open < l->end && *open == '{' ? group_end(l, open) : l->end;
    if (end == l->end) {
        l->why = "\\begin or \\end without a name";
        return;
    }
    push(l, kind, 0, open + 1, (size_t)(end - open - 1));
    l->envs += kind == TOK_BEGIN ? 1 : -1;
    l->s = end + 1;
}

/* Checks the content of \mathbf, \boldsymbol, \mbox and \mathit. Names, units and whole numbers are
 * allowed there; no public grader accepts an expression. */
static bool check_plain(lexer *l) {
    const char *s = skip_spaces(l, l->s);
    if (s == l->end || *s != '{')
        return true;
    bool letters = false, digits = false, others = false;
    for (const char *end = group_end(l, s++); s < end; s++) {
        letters |= is_letter(*s);
        digits |= is_digit(*s);
        others |= !is_letter(*s) && !is_digit(*s) && !strchr(" .-()/", *s);
        others |= *s == '.' && s + 1 < end && is_digit(s[1]);
    }
    l->out->wrapped |= digits;
    if (others || (letters && digits))
        l->why = "an expression in bold or in a box";
    return !l->why;
}

static void lex_named_command(lexer *l) {
    const char *s = l->s;
    while (l->s < l->end && is_letter(*l->s))
        l->s++;
    size_t n = (size_t)(l->s - s);
    const math_spelling *c = math_find_command(s, n);
    const char *letter = c ? NULL : math_find_name(s, n);
    if (letter)
        push_letter(l, letter, n);
    else if (!c)
        l->why = "unknown command";
    else if (c->kind == kLayout)
        l->spaced = true;
    else if (c->kind == kSize)
        l->size = (math_span){s, (uint32_t)n};
    else if (c->kind == kBold)
        check_plain(l);
    else if (c->kind == kText || (c->kind == kPlainText && check_plain(l)))
        lex_text(l);
    else if (c->kind == kOpenEnv)
        lex_env(l, TOK_BEGIN);
    else if (c->kind == kCloseEnv)
        lex_env(l, TOK_END_ENV);
    else
        push(l, c->kind, c->arg, s, n);
}

/* Reads a backslash and what follows. Outside an environment, a double backslash before a command
 * is an escaped single one. */
static void lex_backslash(lexer *l) {
    l->s++;
    if (l->s == l->end)
        return;
    char c = *l->s;
    if (is_letter(c)) {
        lex_named_command(l);
        return;
    }
    l->s++;
    switch (c) {
    case '\\':
        if (l->envs > 0)
            push(l, TOK_ROW, 0, NULL, 0);
        else if (l->s < l->end && is_letter(*l->s))
            lex_named_command(l);
        else if (skip_spaces(l, l->s) < l->end)
            l->why = "more than one line";
        else
            l->out->broken = true;
        break;
    case '{':
        l->brackets++;
        push(l, TOK_LSET, 0, NULL, 0);
        break;
    case '}':
        l->brackets--;
        push(l, TOK_RSET, 0, NULL, 0);
        break;
    case '%':
        push(l, TOK_PERCENT, 0, NULL, 0);
        break;
    case '|':
        push(l, TOK_BAR, 0, NULL, 0);
        break;
    default: /* \$ \( \[ and the spaces \, \; \! */
        l->spaced = true;
        l->gap = c == ',' ? ',' : l->gap;
        l->inside = (l->inside || c == '(') && c != ')';
        break;
    }
}

/* ---- single characters ---- */

/* Reads ^\circ, ^{\circ} and the same with \prime: the caret belongs to the sign. */
static bool lex_raised_sign(lexer *l) {
    const char *s = skip_spaces(l, l->s + 1);
    bool braced = s < l->end && *s == '{';
    if (braced)
        s = skip_spaces(l, s + 1);
    math_token_kind kind = TOK_DEGREE;
    if (starts(l, s, "\\circ")) {
        s += 5;
    } else if (starts(l, s, "\\prime")) {
        kind = TOK_PRIME;
        s += 6;
    } else {
        return false;
    }
    s = skip_spaces(l, s);
    if (braced && s < l->end && *s == '}')
        s++;
    l->s = s;
    push(l, kind, 0, NULL, 0);
    return true;
}

static void lex_relation(lexer *l) {
    static const math_spelling relations[] = {
        {"<=", 0, REL_LE}, {">=", 0, REL_GE}, {"!=", 0, REL_NE}, {"==", 0, REL_EQ},
        {"<", 0, REL_LT},  {">", 0, REL_GT},  {"=", 0, REL_EQ},
    };
    for (size_t i = 0; i < COUNT(relations); i++)
        if (starts(l, l->s, relations[i].name)) {
            l->s += strlen(relations[i].name);
            push(l, TOK_REL, relations[i].arg, NULL, 0);
            return;
        }
    l->s++;
    push(l, TOK_BANG, 0, NULL, 0);
}

static void lex_sign(lexer *l) {
    static const struct {
        char c;
        uint8_t kind;
        int16_t arg;
    } table[] = {
        {'+', TOK_PLUS, 0},     {'-', TOK_MINUS, 0},      {'/', TOK_SLASH, 0},
        {'^', TOK_CARET, 0},    {'_', TOK_UNDERSCORE, 0}, {'%', TOK_PERCENT, 0},
        {'\'', TOK_PRIME, 0},   {',', TOK_COMMA, 0},      {';', TOK_COMMA, ';'},
        {'(', TOK_LPAREN, '('}, {'[', TOK_LPAREN, '['},   {')', TOK_RPAREN, ')'},
        {']', TOK_RPAREN, ']'}, {'{', TOK_LBRACE, 0},     {'}', TOK_RBRACE, 0},
        {'|', TOK_BAR, 0},      {'.', TOK_POINT, 0},      {':', TOK_COLON, 0},
        {'&', TOK_AMP, 0},      {'*', TOK_TIMES, 0},
    };
    char c = *l->s++;
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].c == c) {
            l->brackets += table[i].kind == TOK_LPAREN ? 1 : table[i].kind == TOK_RPAREN ? -1 : 0;
            push(l, table[i].kind, table[i].arg, l->size.s, l->size.len);
            return;
        }
    l->why = "unexpected character";
}

static void lex_utf8(lexer *l) {
    size_t n = text_utf8_len(l->s, (size_t)(l->end - l->s));
    if (n == 0) {
        l->why = "invalid UTF-8";
        return;
    }
    const char *s = l->s;
    l->s += n;
    if (span_is(s, n, "\u00b0")) {
        push(l, TOK_DEGREE, 1, s, n);
        return;
    }
    const char *latex;
    if (!math_find_sign(s, n, &latex))
        push(l, TOK_SYM, 0, s, n);
    else if (latex)
        lex_piece(l, latex, latex + strlen(latex));
    else
        l->why = "a sign that is not LaTeX";
}

static void lex_one(lexer *l) {
    char c = *l->s;
    if (is_space(c) || c == '$' || c == '"') {
        l->spaced = true;
        l->gap = c == '~' ? '~' : l->gap;
        l->s++;
    } else if (is_digit(c) || (c == '.' && l->end - l->s > 1 && is_digit(l->s[1]))) {
        lex_number(l);
    } else if (c == '.' && starts(l, l->s, ".\\overline")) {
        lex_period(l);
    } else if (is_letter(c)) {
        lex_letters(l);
    } else if (c == '\\') {
        lex_backslash(l);
    } else if (c == '<' || c == '>' || c == '=' || c == '!') {
        lex_relation(l);
    } else if ((unsigned char)c >= 0x80) {
        lex_utf8(l);
    } else if (c != '^' || !lex_raised_sign(l)) {
        lex_sign(l);
    }
}

static void lex(lexer *l) {
    while (l->s < l->end && !l->why)
        lex_one(l);
}

const char *math_tokenize(math_tokens *out, const char *s, size_t n, bool group) {
    out->count = out->pool_used = 0;
    out->grouped = out->separated = out->spaced_group = false;
    out->broken = false;
    out->zeros = out->typed = out->wrapped = out->text = out->prose = false;
    if (n > kMathMaxInput)
        return "longer than 4096 bytes";
    lexer l = {.out = out, .s = s, .end = s + n, .group = group};
    lex(&l);
    out->tok[out->count] = (math_token){.kind = TOK_END};
    if (l.why)
        return l.why;
    math_drop_mark(out);
    out->tok[out->count] = (math_token){.kind = TOK_END};
    return math_check_marks(out);
}
