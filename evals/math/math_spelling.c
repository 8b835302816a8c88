#include "evals/math/math_spelling.h"

/* Commands, without the backslash. */
static const math_spelling commands[] = {
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

/* Commands that only MATH_TRUTH reads, or that it reads in another way. A decoration such as
 * \overline begins a name, like \vec. */
static const math_spelling rare[] = {
    {"overline", TOK_SYM, 0},
    {"overrightarrow", TOK_SYM, 0},
    {"top", TOK_SYM, 0},
    {"measuredangle", TOK_SYM, 0},
    {"widehat", TOK_SYM, 0},
    {"tilde", TOK_SYM, 0},
    {"colon", TOK_COLON, 0},
    {"cr", TOK_ROW, 0},
    {"tabularnewline", TOK_ROW, 0},
    {"choose", TOK_OVER, 1},
    {"euro", kLayout, MATH_EURO},
    {"pounds", kLayout, MATH_POUND},
    {"yen", kLayout, MATH_YEN},
    {"rupee", kLayout, MATH_RUPEE},
    {"enspace", kLayout, 0},
    {"hfill", kLayout, 0},
    {"hline", kLayout, 0},
    {"therefore", kLayout, 0},
    {"implies", kLayout, 0},
    {"Rightarrow", kLayout, 0},
    {"em", kLayout, 0},
    {"it", kLayout, 0},
    {"framebox", kLayout, 0},
    {"underline", kLayout, 0},
    {"small", kLayout, 0},
    {"large", kLayout, 0},
    {"Large", kLayout, 0},
    {"LARGE", kLayout, 0},
    {"huge", kLayout, 0},
    {"Huge", kLayout, 0},
    {"checkmark", kLayout, 0},
    {"blacksquare", kLayout, 0},
    {"square", kLayout, 0},
    {"Box", kLayout, 0},
    {"color", kSkip, 0},
    {"textcolor", kSkip, 0},
    {"hspace", kSkip, 0},
    {"vspace", kSkip, 0},
    {"phantom", kSkip, 0},
    {"label", kSkip, 0},
    {"tag", kSkip, 0},
    {"bold", kBold, 0},
    {"bm", kBold, 0},
    {"textsf", kText, 0},
    {"texttt", kText, 0},
    {"mathtt", kText, 0},
    {"mod", TOK_MOD, 0},
    {"bmod", TOK_MOD, 0},
    {"pmod", TOK_MOD, 0},
    {"land", TOK_COMMA, 'a'},
    {"lor", TOK_COMMA, 'a'},
    {"lg", TOK_FN, FN_LOG},
    {"bigcup", TOK_CUP, 0},
    {"sqcup", TOK_CUP, 0},
    {"smallsetminus", TOK_SETMINUS, 0},
    {"lparen", TOK_LPAREN, '('},
    {"rparen", TOK_RPAREN, ')'},
};

/* Functions, as commands and as bare words. */
static const math_spelling functions[] = {
    {"log", TOK_FN, FN_LOG},     {"ln", TOK_FN, FN_LN},       {"exp", TOK_FN, FN_EXP},
    {"sin", TOK_FN, FN_SIN},     {"cos", TOK_FN, FN_COS},     {"tan", TOK_FN, FN_TAN},
    {"cot", TOK_FN, FN_COT},     {"sec", TOK_FN, FN_SEC},     {"csc", TOK_FN, FN_CSC},
    {"arcsin", TOK_FN, FN_ASIN}, {"arccos", TOK_FN, FN_ACOS}, {"arctan", TOK_FN, FN_ATAN},
    {"arccot", TOK_FN, FN_ACOT}, {"sinh", TOK_FN, FN_SINH},   {"cosh", TOK_FN, FN_COSH},
    {"tanh", TOK_FN, FN_TANH},
};

/* Words with a meaning of their own, inside and outside of \text. */
static const math_spelling words[] = {
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

/* Functions whose names only MATH_TRUTH reads. */
static const math_spelling rare_words[] = {
    {"tg", TOK_FN, FN_TAN},      {"ctg", TOK_FN, FN_COT},     {"cotg", TOK_FN, FN_COT},
    {"cosec", TOK_FN, FN_CSC},   {"arctg", TOK_FN, FN_ATAN},  {"arcctg", TOK_FN, FN_ACOT},
    {"arcsec", TOK_FN, FN_ASEC}, {"arccsc", TOK_FN, FN_ACSC}, {"asin", TOK_FN, FN_ASIN},
    {"acos", TOK_FN, FN_ACOS},   {"atan", TOK_FN, FN_ATAN},   {"abs", TOK_FN, FN_ABS},
};

/* Units that may follow a value without a \text, also with a plural s. */
static const char *const units[] = {
    "degree",     "deg",    "cm",       "mm",     "dm",     "km",         "kg",         "mg",
    "lb",         "oz",     "ft",       "inch",   "inches", "foot",       "feet",       "yard",
    "mile",       "mph",    "kmh",      "meter",  "metre",  "centimeter", "centimetre", "kilometer",
    "millimeter", "gram",   "kilogram", "liter",  "litre",  "gallon",     "pound",      "second",
    "sec",        "minute", "min",      "hour",   "hr",     "day",        "week",       "month",
    "year",       "cent",   "unit",     "square", "sq",     "cubic",      "point",
};

/* Commands that are a name or begin one: \vec{v} is different from v. */
static const char *const names[] = {
    "alpha",    "beta",     "gamma", "delta",  "epsilon", "varepsilon", "zeta",    "eta",   "theta",
    "vartheta", "iota",     "kappa", "lambda", "mu",      "nu",         "xi",      "rho",   "sigma",
    "tau",      "upsilon",  "phi",   "varphi", "chi",     "psi",        "omega",   "Gamma", "Delta",
    "Theta",    "Lambda",   "Xi",    "Pi",     "Sigma",   "Phi",        "Psi",     "Omega", "ell",
    "angle",    "triangle", "vec",   "hat",    "bar",     "mathbb",     "mathcal",
};

/* UTF-8 signs and their LaTeX; NULL if the tokenizer refuses the sign. */
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

static const math_spelling *find_spelling(const math_spelling *table, size_t count, const char *s,
                                          size_t n) {
    for (size_t i = 0; i < count; i++)
        if (table[i].name[0] == s[0] && span_is(s, n, table[i].name))
            return &table[i];
    return NULL;
}

const math_spelling *math_find_command(const char *s, size_t n) {
    const math_spelling *c = find_spelling(commands, COUNT(commands), s, n);
    return c ? c : find_spelling(functions, COUNT(functions), s, n);
}

const math_spelling *math_find_rare_command(const char *s, size_t n) {
    const math_spelling *c = find_spelling(rare, COUNT(rare), s, n);
    return c ? c : math_find_rare_word(s, n);
}

const math_spelling *math_find_word(const char *s, size_t n) {
    const math_spelling *w = find_spelling(words, COUNT(words), s, n);
    return w ? w : find_spelling(functions, COUNT(functions), s, n);
}

const math_spelling *math_find_rare_word(const char *s, size_t n) {
    return find_spelling(rare_words, COUNT(rare_words), s, n);
}

static const char *find_name(const char *const *table, size_t count, const char *s, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (table[i][0] == s[0] && span_is(s, n, table[i]))
            return table[i];
    return NULL;
}

bool math_is_unit(const char *s, size_t n) {
    return find_name(units, COUNT(units), s, n) ||
           (n > 1 && s[n - 1] == 's' && find_name(units, COUNT(units), s, n - 1));
}

const char *math_find_name(const char *s, size_t n) {
    return find_name(names, COUNT(names), s, n);
}

bool math_find_sign(const char *s, size_t n, const char **latex) {
    for (size_t i = 0; i < COUNT(signs); i++)
        if (span_is(s, n, signs[i].utf8)) {
            *latex = signs[i].latex;
            return true;
        }
    return false;
}
