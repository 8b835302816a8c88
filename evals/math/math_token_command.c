/* Reads the tokens of commands: a backslash and what follows. */
#include "evals/math/math_lexer.h"

static void lex_env(lexer *l, math_token_kind kind) {
    const char *open = skip_spaces(l, l->s);
    const char *end = open < l->end && *open == '{' ? math_group_end(l, open) : l->end;
    if (end == l->end) {
        l->why = "\\begin or \\end without a name";
        return;
    }
    push(l, kind, 0, open + 1, (size_t)(end - open - 1));
    l->envs += kind == TOK_BEGIN ? 1 : -1;
    l->s = end + 1;
}

/* Checks the content of \mathbf, \boldsymbol, \mbox and \mathit. Either letters or whole numbers
 * are allowed there, but not both, with spaces and .-()/ between them. Anything else is allowed
 * only for MATH_TRUTH, because the public graders refuse it wherever they agree (README.md). */
static bool check_plain(lexer *l) {
    const char *s = skip_spaces(l, l->s);
    if (s == l->end || *s != '{')
        return true;
    bool letters = false, digits = false, others = false;
    for (const char *end = math_group_end(l, s++); s < end; s++) {
        letters |= is_letter(*s);
        digits |= is_digit(*s);
        others |= !is_letter(*s) && !is_digit(*s) && !strchr(" .-()/", *s);
        others |= *s == '.' && s + 1 < end && is_digit(s[1]);
    }
    l->out->wrapped |= digits;
    if (!l->truth && (others || (letters && digits)))
        l->why = "an expression in bold or in a box";
    return !l->why;
}

/* Skips the argument of a command such as \hspace. */
static void skip_group(lexer *l) {
    const char *open = skip_spaces(l, l->s);
    if (open < l->end && *open == '{') {
        const char *end = math_group_end(l, open);
        l->s = end < l->end ? end + 1 : end;
    }
}

/* Adds the token of a command. With MATH_TRUTH, \langle and similar commands count as brackets,
 * within which a comma does not separate thousands. */
static void lex_command_token(lexer *l, const math_spelling *c, const char *s, size_t n) {
    if (l->truth)
        l->brackets += (c->kind == TOK_LPAREN) - (c->kind == TOK_RPAREN);
    push(l, c->kind, c->arg, s, n);
}

static void lex_layout(lexer *l, const math_spelling *c) {
    l->spaced = true;
    if (c->arg)
        l->out->currency = (uint8_t)c->arg;
}

static void lex_named_command(lexer *l) {
    const char *s = l->s;
    while (l->s < l->end && is_letter(*l->s))
        l->s++;
    size_t n = (size_t)(l->s - s);
    const math_spelling *c = l->truth ? math_find_rare_command(s, n) : NULL;
    if (!c)
        c = math_find_command(s, n);
    const char *letter = c ? NULL : math_find_name(s, n);
    if (letter)
        math_push_letter(l, letter, n);
    else if (!c)
        l->why = "unknown command";
    else if (c->kind == kLayout)
        lex_layout(l, c);
    else if (c->kind == kSkip)
        skip_group(l);
    else if (c->kind == kSize)
        l->size = (math_span){s, (uint32_t)n};
    else if (c->kind == kBold)
        check_plain(l);
    else if (c->kind == kText || (c->kind == kPlainText && check_plain(l)))
        math_lex_text(l);
    else if (c->kind == kOpenEnv)
        lex_env(l, TOK_BEGIN);
    else if (c->kind == kCloseEnv)
        lex_env(l, TOK_END_ENV);
    else
        lex_command_token(l, c, s, n);
}

/* Reads a backslash and what follows. Outside an environment, a double backslash before a command
 * is an escaped single one. */
void math_lex_backslash(lexer *l) {
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
        if (l->truth && c == '$')
            l->out->currency = MATH_DOLLAR;
        l->spaced = true;
        l->gap = c == ',' ? ',' : l->gap;
        l->inside = (l->inside || c == '(') && c != ')';
        break;
    }
}
