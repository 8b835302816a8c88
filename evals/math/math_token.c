#include "evals/math/math_token.h"

#include <string.h>

#include "base/text.h"

typedef struct {
    math_tokens *out;
    const char *s, *end;
    bool group;      /* plain commas may separate thousands */
    bool spaced;     /* white space since the last token */
    bool inside;     /* between \( and \) */
    char gap;        /* the last of it that was '~' or, for \, , ','; else 0 */
    math_span size;  /* \big and the like since the last token */
    bool quoted;     /* inside a \text */
    int brackets;    /* open ( [ \{ */
    int envs;        /* open \begin */
    size_t run_end;  /* tokens when a run of several letters ended; 0: none */
    const char *why; /* first error */
} lexer;

typedef struct {
    const char *name;
    int16_t kind, arg;
} spelling;

enum {
    kLayout = 200,
    kSize,
    kText,
    kPlainText,
    kBold,
    kOpenEnv,
    kCloseEnv
}; /* no tokens: how to go on */

/* Commands, without the backslash. */
static const spelling commands[] = {
    {"frac", TOK_FRAC, 0},
    {"dfrac", TOK_FRAC, 0},
    {"tfrac", TOK_FRAC, 0},
    {"cfrac", TOK_FRAC, 0},
    {"sqrt", TOK_SQRT, 0},
    {"over", TOK_OVER, 0},
    {"text", kText, 0},
    {"mbox", kPlainText, 0},
    {"textbf", kText, 0},
    {"textit", kText, 0},
    {"textrm", kText, 0},
    {"textnormal", kText, 0},
    {"hbox", kText, 0},
    {"mathrm", kText, 0},
    {"mathit", kPlainText, 0},
    {"mathsf", kText, 0},
    {"operatorname", kText, 0},
    {"left", kLayout, 0},
    {"right", kLayout, 0},
    {"big", kSize, 0},
    {"Big", kSize, 0},
    {"bigg", kSize, 0},
    {"Bigg", kSize, 0},
    {"bigl", kSize, 0},
    {"bigr", kSize, 0},
    {"Bigl", kSize, 0},
    {"Bigr", kSize, 0},
    {"biggl", kSize, 0},
    {"biggr", kSize, 0},
    {"displaystyle", kLayout, 0},
    {"textstyle", kLayout, 0},
    {"limits", kLayout, 0},
    {"quad", kLayout, 0},
    {"qquad", kLayout, 0},
    {"thinspace", kLayout, 0},
    {"boxed", kLayout, 0},
    {"fbox", kLayout, 0},
    {"bf", kLayout, 0},
    {"rm", kLayout, 0},
    {"ensuremath", kLayout, 0},
    {"mathbf", kBold, 0},
    {"boldsymbol", kBold, 0},
    {"cdot", TOK_TIMES, 0},
    {"times", TOK_TIMES, 0},
    {"ast", TOK_TIMES, 0},
    {"div", TOK_SLASH, 0},
    {"pm", TOK_PM, 1},
    {"mp", TOK_PM, -1},
    {"pi", TOK_CONST, CONST_PI},
    {"infty", TOK_CONST, CONST_INF},
    {"imath", TOK_CONST, CONST_I},
    {"le", TOK_REL, REL_LE},
    {"leq", TOK_REL, REL_LE},
    {"leqslant", TOK_REL, REL_LE},
    {"ge", TOK_REL, REL_GE},
    {"geq", TOK_REL, REL_GE},
    {"geqslant", TOK_REL, REL_GE},
    {"lt", TOK_REL, REL_LT},
    {"gt", TOK_REL, REL_GT},
    {"ne", TOK_REL, REL_NE},
    {"neq", TOK_REL, REL_NE},
    {"in", TOK_REL, REL_IN},
    {"equiv", TOK_REL, REL_EQ},
    {"approx", TOK_APPROX, 0},
    {"cup", TOK_CUP, 0},
    {"cap", TOK_CAP, 0},
    {"setminus", TOK_SETMINUS, 0},
    {"backslash", TOK_SETMINUS, 0},
    {"emptyset", TOK_EMPTYSET, 0},
    {"varnothing", TOK_EMPTYSET, 0},
    {"circ", TOK_DEGREE, 0},
    {"degree", TOK_DEGREE, 0},
    {"prime", TOK_PRIME, 0},
    {"ldots", TOK_DOTS, 0},
    {"cdots", TOK_DOTS, 0},
    {"dots", TOK_DOTS, 0},
    {"lbrace", TOK_LSET, 0},
    {"rbrace", TOK_RSET, 0},
    {"lbrack", TOK_LPAREN, '['},
    {"rbrack", TOK_RPAREN, ']'},
    {"langle", TOK_LPAREN, '<'},
    {"rangle", TOK_RPAREN, '>'},
    {"mid", TOK_BAR, 0},
    {"vert", TOK_BAR, 0},
    {"lvert", TOK_BAR, 0},
    {"rvert", TOK_BAR, 0},
    {"lfloor", TOK_LFLOOR, FN_FLOOR},
    {"rfloor", TOK_RFLOOR, FN_FLOOR},
    {"lceil", TOK_LFLOOR, FN_CEIL},
    {"rceil", TOK_RFLOOR, FN_CEIL},
    {"binom", TOK_BINOM, 0},
    {"dbinom", TOK_BINOM, 0},
    {"tbinom", TOK_BINOM, 0},
    {"overline", TOK_OVERLINE, 0},
    {"begin", kOpenEnv, 0},
    {"end", kCloseEnv, 0},
};

/* Functions, as commands and as bare words. */
static const spelling functions[] = {
    {"log", TOK_FN, FN_LOG},     {"ln", TOK_FN, FN_LN},       {"exp", TOK_FN, FN_EXP},
    {"sin", TOK_FN, FN_SIN},     {"cos", TOK_FN, FN_COS},     {"tan", TOK_FN, FN_TAN},
    {"cot", TOK_FN, FN_COT},     {"sec", TOK_FN, FN_SEC},     {"csc", TOK_FN, FN_CSC},
    {"arcsin", TOK_FN, FN_ASIN}, {"arccos", TOK_FN, FN_ACOS}, {"arctan", TOK_FN, FN_ATAN},
    {"arccot", TOK_FN, FN_ACOT}, {"sinh", TOK_FN, FN_SINH},   {"cosh", TOK_FN, FN_COSH},
    {"tanh", TOK_FN, FN_TANH},
};

/* Letters that mean something as a whole word, in and outside of \text. */
static const spelling words[] = {
    {"sqrt", TOK_SQRT, 1},
    {"pi", TOK_CONST, CONST_PI},
    {"infinity", TOK_CONST, CONST_INF},
    {"infty", TOK_CONST, CONST_INF},
    {"inf", TOK_CONST, CONST_INF},
    {"and", TOK_COMMA, 'a'},
    {"or", TOK_COMMA, 'a'},
    {"percent", TOK_PERCENT, 1},
    {"percentage", TOK_PERCENT, 1},
    {"pct", TOK_PERCENT, 1},
};

/* Units that may stand without a \text after a value; also with a plural s. */
static const char *const units[] = {
    "degree",     "deg",    "cm",       "mm",     "dm",     "km",         "kg",         "mg",
    "lb",         "oz",     "ft",       "inch",   "inches", "foot",       "feet",       "yard",
    "mile",       "mph",    "kmh",      "meter",  "metre",  "centimeter", "centimetre", "kilometer",
    "millimeter", "gram",   "kilogram", "liter",  "litre",  "gallon",     "pound",      "second",
    "sec",        "minute", "min",      "hour",   "hr",     "day",        "week",       "month",
    "year",       "cent",   "unit",     "square", "sq",     "cubic",      "point",
};

/* Commands that are, or start, a name: \vec{v} is another thing than v. */
static const char *const names[] = {
    "alpha",    "beta",     "gamma", "delta",  "epsilon", "varepsilon", "zeta",    "eta",   "theta",
    "vartheta", "iota",     "kappa", "lambda", "mu",      "nu",         "xi",      "rho",   "sigma",
    "tau",      "upsilon",  "phi",   "varphi", "chi",     "psi",        "omega",   "Gamma", "Delta",
    "Theta",    "Lambda",   "Xi",    "Pi",     "Sigma",   "Phi",        "Psi",     "Omega", "ell",
    "angle",    "triangle", "vec",   "hat",    "bar",     "mathbb",     "mathcal",
};

/* UTF-8 signs and the LaTeX they stand for; NULL where no grader of the field takes them for it. */
static const struct {
    const char *utf8, *latex;
} signs[] = {
    {"\u2212", "-"},         {"\u00d7", "\\times "}, {"\u00f7", "\\div "},
    {"\u22c5", "\\cdot "},   {"\u2217", "\\cdot "},  {"\u03c0", "\\pi "},
    {"\u2264", "\\le "},     {"\u2265", "\\ge "},    {"\u2260", "\\ne "},
    {"\u00b1", "\\pm "},     {"\u2213", "\\mp "},    {"\u222a", "\\cup "},
    {"\u2229", "\\cap "},    {"\u2208", "\\in "},    {"\u2205", "\\emptyset "},
    {"\u03b1", "\\alpha "},  {"\u03b2", "\\beta "},  {"\u03b8", "\\theta "},
    {"\u03bb", "\\lambda "}, {"\u03c6", "\\phi "},   {"\u00a0", " "},
    {"\u2009", " "},         {"\u202f", " "},        {"\u2006", " "},
    {"\u200b", " "},         {"\u2013", NULL},                         /* dashes */
    {"\u2014", NULL},        {"\u00b7", NULL},                         /* the middle dot */
    {"\u221a", NULL},                                                  /* the root */
    {"\u221e", NULL},                                                  /* infinity */
    {"\u00b2", NULL},                                                  /* powers */
    {"\u00b3", NULL},        {"\u2074", NULL},       {"\u00bd", NULL}, /* fractions */
    {"\u00bc", NULL},        {"\u00be", NULL},       {"\u2153", NULL},
    {"\u2154", NULL},        {"\u2044", NULL},       {"\u2248", NULL}, /* approximately */
    {"\u20ac", NULL},                                                  /* currencies */
    {"\u00a2", NULL},        {"\u00a3", NULL},       {"\u201c", NULL}, /* quotes */
    {"\u201d", NULL},        {"\u2019", NULL},       {"\u2032", NULL},
    {"\uff0c", NULL}, /* the wide comma */
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~';
}

static bool span_is(const char *s, size_t n, const char *name) {
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

static const spelling *find_spelling(const spelling *table, size_t count, const char *s, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (table[i].name[0] == s[0] && span_is(s, n, table[i].name))
            return &table[i];
    return NULL;
}

static const spelling *find_command(const char *s, size_t n) {
    const spelling *c = find_spelling(commands, COUNT(commands), s, n);
    return c ? c : find_spelling(functions, COUNT(functions), s, n);
}

static const spelling *find_word(const char *s, size_t n) {
    const spelling *w = find_spelling(words, COUNT(words), s, n);
    return w ? w : find_spelling(functions, COUNT(functions), s, n);
}

static const char *find_name(const char *const *table, size_t count, const char *s, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (table[i][0] == s[0] && span_is(s, n, table[i]))
            return table[i];
    return NULL;
}

static bool is_unit(const char *s, size_t n) {
    return find_name(units, COUNT(units), s, n) ||
           (n > 1 && s[n - 1] == 's' && find_name(units, COUNT(units), s, n - 1));
}

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

/* Whether the last token can end a value, so that a word after it is a unit. */
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

/* Where a thousands separator at @s ends, or NULL; *sign: ',' bare, '{' a comma made sure of, '!' or
 * ' ' for none. */
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

/* Exactly three digits at @s. */
static bool is_group(const lexer *l, const char *s) {
    return l->end - s >= 3 && is_digit(s[0]) && is_digit(s[1]) && is_digit(s[2]) &&
           (l->end - s == 3 || !is_digit(s[3]));
}

static void keep_digits(lexer *l, const char *s, size_t n) {
    math_tokens *t = l->out;
    memcpy(t->pool + t->pool_used, s, n); /* fits: every input byte is kept at most once */
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

/* The point of 0.\overline{3}, which may lack its zero. */
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
    const spelling *w = find_word(s, n);
    if (w) {
        l->out->typed |= w->kind == TOK_FN;
        push(l, w->kind, w->arg, s, n);
    } else if (n > 1 && after_value(l) && is_unit(s, n)) {
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

/* The end of the group that opens at @s; the end of the input if it is never closed. */
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

/* Whether the content of a \text is mathematics after all: no run of letters is a plain word, and
 * letters don't label a number, as in "(b) 0", nor are a unit without one. */
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
        letter |= n == 1 && !is_unit(run, n);
        unit |= is_unit(run, n);
        if (n > 1 && !find_word(run, n) && !is_unit(run, n))
            return false;
        s += n == 0;
    }
    return digit ? !letter : !unit;
}

/* Cuts a piece of the input on its own, so that it can't reach beyond its end. */
static void lex_piece(lexer *l, const char *s, const char *end) {
    const char *after = l->s, *whole_end = l->end;
    l->s = s;
    l->end = end;
    lex(l);
    l->s = after;
    l->end = whole_end;
}

/* A number in a \text or in bold. */
static bool has_digit(const char *s, const char *end) {
    while (s < end && !is_digit(*s))
        s++;
    return s < end;
}

/* How to read the content of a \text, which has no spaces around it: as a unit after a value, as
 * mathematics, or as words. */
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
    if (n == 0 || (n == 1 && *s == '.' && after_value(l))) /* \text{.} ends a sentence */
        return;
    if (l->quoted) {
        l->why = "a \\text within a \\text";
        return;
    }
    l->out->text = true;
    const spelling *w = find_word(s, n);
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

/* Names, units and whole numbers may be bold or in an \mbox; no grader takes an expression there. */
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
    const spelling *c = find_command(s, n);
    const char *letter = c ? NULL : find_name(names, COUNT(names), s, n);
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

/* A backslash and what follows; a doubled one in front of a command is an escaped single one. */
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

/* ^\circ and ^{\circ}: the caret belongs to the sign. */
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
    static const spelling relations[] = {
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
    for (size_t i = 0; i < COUNT(signs); i++)
        if (span_is(s, n, signs[i].utf8)) {
            if (!signs[i].latex) {
                l->why = "a sign that is no LaTeX";
                return;
            }
            lex_piece(l, signs[i].latex, signs[i].latex + strlen(signs[i].latex));
            return;
        }
    push(l, TOK_SYM, 0, s, n);
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

/* Skips what may stand between a number and a full stop: cm^2, a degree, a percent sign. */
static const math_token *skip_units(const math_token *k) {
    while (k->kind == TOK_UNIT || k->kind == TOK_DEGREE || k->kind == TOK_PERCENT)
        k += k->kind == TOK_UNIT && k[1].kind == TOK_CARET && k[2].kind == TOK_NUM ? 3 : 1;
    return k;
}

/* Behind \frac{1}{3} (but not \dfrac, nor of anything but whole numbers). */
static const math_token *skip_fraction(const math_token *k) {
    static const uint8_t kinds[] = {TOK_FRAC,   TOK_LBRACE, TOK_NUM,   TOK_RBRACE,
                                    TOK_LBRACE, TOK_NUM,    TOK_RBRACE};
    if (k->kind != TOK_FRAC || k->text.len != strlen("frac"))
        return NULL;
    for (size_t i = 0; i < COUNT(kinds); i++, k++)
        if (k->kind != kinds[i])
            return NULL;
    return k;
}

static const math_token *skip_name(const math_tokens *t) {
    const math_token *k = t->tok;
    if (math_is_short_naming(t))
        while (k++->kind != TOK_REL)
            continue;
    return k;
}

/* Full stops that some grader takes: of "x = 9.", "0.5." (but not "\$0.5."), "9 \text{ cm}.", and behind \frac{1}{3}. The
 * UTF-8 sign of a degree behind a whole number is no more than a mark either. */
static void drop_mark(math_tokens *t) {
    const math_token *number = skip_name(t);
    number += number->kind == TOK_MINUS;
    const math_token *last = skip_fraction(number);
    if (!last && number->kind != TOK_NUM)
        return;
    bool whole = !last && !memchr(number->text.s, '.', number->text.len);
    if (!last)
        last = whole ? skip_units(number + 1) : number + 1;
    bool sign = whole && number[1].kind == TOK_DEGREE && number[1].arg && number[2].kind == TOK_END;
    bool money = number->kind == TOK_NUM && !whole && (t->tok[0].spaced || number > t->tok + 1);
    if (sign || (last->kind == TOK_POINT && last[1].kind == TOK_END && !money))
        t->count--;
}

/* That sign stands behind nothing else, and no degree behind a unit. */
static const char *check_degrees(const math_tokens *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->tok[i].kind == TOK_DEGREE &&
            (t->tok[i].arg || (i > 0 && t->tok[i - 1].kind == TOK_UNIT)))
            return "a degree of what is no number";
    return NULL;
}

/* Whether a number or a plain fraction, with or without a short name, is all there is before @unit:
 * no spaces inside, and no plus sign. */
static bool is_plain_number(const math_tokens *t, const math_token *unit) {
    const math_token *k = t->tok;
    if (math_is_statement(t)) {
        if (!math_is_short_naming(t))
            return false;
        while (k->kind != TOK_REL)
            k++;
        k++;
    }
    const math_token *first = k;
    for (; k < unit; k++) {
        bool number = k->kind == TOK_MINUS || k->kind == TOK_NUM || k->kind == TOK_FRAC ||
                      k->kind == TOK_LBRACE || k->kind == TOK_RBRACE || k->kind == TOK_SLASH;
        if (!number || (k->spaced && k != first))
            return false;
    }
    return true;
}

/* A tie binds a unit to a plain number, a thin space to what has no thousands separator. */
static const char *check_units(const math_tokens *t) {
    for (const math_token *k = t->tok; k->kind != TOK_END; k++) {
        if (k->kind != TOK_UNIT)
            continue;
        if (k->arg == '(')
            return "a unit between \\( and \\)";
        if ((k->arg == '~' && !is_plain_number(t, k)) || (k->arg == ',' && t->separated))
            return "a space that binds no unit";
        break; /* others follow the first */
    }
    return NULL;
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
    drop_mark(out);
    out->tok[out->count] = (math_token){.kind = TOK_END};
    const char *why = check_degrees(out);
    return why ? why : check_units(out);
}

/* ---- comparing token by token ---- */

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

/* The letters of an answer that has nothing else, lower case, without the spaces between words;
 * 0 if it has something else. */
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
        k++; /* "= 5" */
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
