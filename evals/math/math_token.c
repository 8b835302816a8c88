/* The tokenizer's loop over the input, and its tokens of single characters. */
#include "evals/math/math_token.h"

#include <string.h>

#include "base/text.h"
#include "evals/math/math_lexer.h"
#include "evals/math/math_marks.h"

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
    const math_tokens *t = l->out;
    bool factorial =
        l->truth && !l->spaced && t->count && starts(l, l->s, "!=") &&
        (t->tok[t->count - 1].kind == TOK_NUM || t->tok[t->count - 1].kind == TOK_RPAREN);
    for (size_t i = 0; i < COUNT(relations) && !factorial; i++) /* 4!=24 */
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
        math_lex_piece(l, latex, latex + strlen(latex));
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
        math_lex_number(l);
    } else if (c == '.' && starts(l, l->s, ".\\overline")) {
        math_lex_period(l);
    } else if (is_letter(c)) {
        math_lex_letters(l);
    } else if (c == '\\') {
        math_lex_backslash(l);
    } else if (c == '<' || c == '>' || c == '=' || c == '!') {
        lex_relation(l);
    } else if ((unsigned char)c >= 0x80) {
        lex_utf8(l);
    } else if (c != '^' || !lex_raised_sign(l)) {
        lex_sign(l);
    }
}

void math_lex(lexer *l) {
    while (l->s < l->end && !l->why)
        lex_one(l);
}

/* Reads ]3,4] as (3,4], and [3,4[ as [3,4). */
static void turn_brackets(math_tokens *t) {
    int depth = 0;
    for (size_t i = 0; i < t->count; i++) {
        math_token *k = &t->tok[i];
        int next = i + 1 < t->count ? k[1].kind : TOK_END;
        bool square = k->arg == '[' || k->arg == ']';
        bool ends = next == TOK_END || next == TOK_CUP || next == TOK_CAP || next == TOK_COMMA ||
                    next == TOK_POINT;
        if (k->kind == TOK_RPAREN && square && depth == 0) {
            k->kind = TOK_LPAREN;
            k->arg = '(';
        } else if (k->kind == TOK_LPAREN && square && depth == 1 && ends) {
            k->kind = TOK_RPAREN;
            k->arg = ')';
        }
        depth += (k->kind == TOK_LPAREN) - (k->kind == TOK_RPAREN);
    }
}

const char *math_tokenize(math_tokens *out, const char *s, size_t n, bool group, bool truth) {
    out->count = out->pool_used = 0;
    out->grouped = out->separated = out->spaced_group = false;
    out->broken = false;
    out->zeros = out->typed = out->wrapped = out->text = out->prose = false;
    if (n > kMathMaxInput)
        return "longer than 4096 bytes";
    out->truth = truth;
    out->currency = MATH_NO_CURRENCY;
    out->radians = false;
    lexer l = {.out = out, .s = s, .end = s + n, .group = group, .truth = truth};
    l.wide_commas = truth && memmem(s, n, ", ", 2);
    math_lex(&l);
    out->tok[out->count] = (math_token){.kind = TOK_END};
    if (l.why)
        return l.why;
    if (truth) {
        math_trim_prose(out);
        turn_brackets(out);
    } else {
        math_drop_mark(out);
    }
    out->tok[out->count] = (math_token){.kind = TOK_END};
    return truth ? math_check_conditions(out) : math_check_marks(out);
}
