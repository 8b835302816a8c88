/* math_token.h - splits LaTeX answers into tokens.
 *
 * The tokenizer drops layout (spaces, \left, \!, \displaystyle, dollar signs, \boxed). Different
 * spellings of one thing become the same token (\dfrac and \frac, some UTF-8 signs and their
 * commands, "infinity" and \infty). Digits with thousands separators become one number. For some
 * spellings that the public graders refuse wherever they agree (a typed root sign, an expression in
 * \mathbf), the tokenizer fails unless it reads for MATH_TRUTH; see README.md. */
#ifndef SNAPMLA_EVALS_MATH_MATH_TOKEN_H
#define SNAPMLA_EVALS_MATH_MATH_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    kMathMaxInput = 4096,                 /* bytes of one answer */
    kMathMaxTokens = 1024,                /* of one answer */
    kMathTokenRoom = kMathMaxTokens + 48, /* math_convert_unit() appends up to 48 tokens */
};

typedef struct {
    const char *s;
    uint32_t len;
} math_span;

typedef enum {
    TOK_END,
    TOK_NUM,   /* text: digits with at most one '.', separators removed */
    TOK_SYM,   /* text: one letter, another UTF-8 character, or a command such as alpha or vec */
    TOK_WORD,  /* text: content of a \text that is neither a unit nor mathematics */
    TOK_UNIT,  /* a unit of measure. After a value it is ignored unless math_check_marks() or the
                  parser refuses it; MATH_TRUTH compares it (math_unit.h). arg: '(' if between \(
                  and \); else the last spacing since the previous token, '~' or ',' for the
                  command \,; 0 if there was neither */
    TOK_FN,    /* arg: math_fn */
    TOK_CONST, /* arg: math_const */
    TOK_FRAC,
    TOK_BINOM,
    TOK_SQRT, /* arg: 1 if typed without its backslash */
    TOK_OVER, /* {a \over b}; arg: 1 for {a \choose b} */
    TOK_OVERLINE,
    TOK_PLUS,
    TOK_MINUS,
    TOK_TIMES,
    TOK_SLASH,
    TOK_PM, /* arg: +1 for \pm, -1 for \mp */
    TOK_CARET,
    TOK_UNDERSCORE,
    TOK_BANG,
    TOK_PERCENT, /* arg: 0 for the sign, 1 for the bare word, 2 for the word in a \text */
    TOK_DEGREE,  /* \circ, after an optional caret; arg: 1 if typed as the UTF-8 sign */
    TOK_PRIME,
    TOK_COMMA, /* arg: 0, ';', or 'a' for "and" and "or" */
    TOK_REL,   /* arg: math_rel */
    TOK_APPROX,
    TOK_CUP,
    TOK_CAP,
    TOK_SETMINUS,
    TOK_EMPTYSET,
    TOK_LPAREN, /* arg: '(', '[' or '<'; text: the size command before it, if any except \left; of
                   \langle and similar commands, their name */
    TOK_RPAREN, /* arg: ')', ']' or '>' */
    TOK_LSET,
    TOK_RSET,
    TOK_LBRACE,
    TOK_RBRACE,
    TOK_BAR,
    TOK_LFLOOR, /* arg: math_fn of the pair */
    TOK_RFLOOR,
    TOK_DOTS,
    TOK_POINT, /* a full stop that is not part of a number */
    TOK_COLON,
    TOK_BEGIN, /* text: name of the environment */
    TOK_END_ENV,
    TOK_AMP,
    TOK_ROW,
    TOK_MOD, /* \mod, \bmod and \pmod */
} math_token_kind;

typedef enum {
    FN_SIN,
    FN_COS,
    FN_TAN,
    FN_COT,
    FN_SEC,
    FN_CSC,
    FN_ASIN,
    FN_ACOS,
    FN_ATAN,
    FN_ACOT,
    FN_ASEC,
    FN_ACSC,
    FN_SINH,
    FN_COSH,
    FN_TANH,
    FN_EXP,
    FN_LN,
    FN_LOG, /* the base is the second argument; without one it is 10 */
    FN_ABS,
    FN_FLOOR,
    FN_CEIL,
    FN_SQRT,
    FN_ROOT, /* the second argument is the degree of the root */
    FN_FACTORIAL,
    FN_BINOMIAL,
} math_fn;

typedef enum { CONST_PI, CONST_E, CONST_I, CONST_INF, CONST_EMPTY } math_const;

typedef enum { REL_EQ, REL_NE, REL_LT, REL_LE, REL_GT, REL_GE, REL_IN } math_rel;

typedef enum {
    MATH_NO_CURRENCY,
    MATH_DOLLAR,
    MATH_EURO,
    MATH_POUND,
    MATH_YEN,
    MATH_RUPEE
} math_currency;

typedef struct {
    uint8_t kind; /* math_token_kind */
    bool spaced;  /* white space before it */
    int16_t arg;
    math_span text;
} math_token;

typedef struct {
    math_token tok[kMathTokenRoom + 1]; /* ends with TOK_END */
    size_t count;                       /* without TOK_END */
    bool text;                          /* some token came from a \text */
    bool prose;                         /* bare words that follow each other */
    bool grouped;                       /* a plain comma was read as a thousands separator */
    bool zeros;                         /* a zero follows such a comma, so the answer is no list
                                           of numbers */
    bool typed;                         /* a function name without its backslash */
    bool broken;                        /* ends with a line break */
    bool wrapped;                       /* a number in a \text or in bold */
    bool spaced_group;                  /* a space was read as a thousands separator */
    bool separated;                     /* a comma, in any spelling, was read as a thousands
                                           separator */
    bool truth;                         /* tokenized for MATH_TRUTH */
    uint8_t currency;                   /* math_currency of a sign such as \$ (MATH_TRUTH) */
    bool radians;                       /* MATH_TRUTH: the parser converts degrees to radians */
    char pool[kMathMaxInput];           /* number tokens point into it */
    size_t pool_used;
} math_tokens;

/**
 * math_tokenize - split an answer into tokens
 *
 * @group: read the comma of "58,500" as a thousands separator if no bracket is open (with @truth
 *         also within brackets if the answer has a comma with a space after it); "{,}" and
 *         ",\!" always are thousands separators
 * @truth: for MATH_TRUTH: also read spellings that MATH_FIELD refuses
 *
 * Returns NULL on success, else a static text with the reason, such as "too many tokens" or
 * "unknown command". The tokens point into @s, into @out->pool and into static texts.
 */
const char *math_tokenize(math_tokens *out, const char *s, size_t n, bool group, bool truth);

/* True if two answers have the same tokens, ignoring degree signs and units. "and", "or" and a
 * comma count as the same token. */
bool math_tokens_equal(const math_tokens *a, const math_tokens *b);

/* True if an answer is more than a value: "x = 5", "\sqrt2 \approx 1.41". "= 5" is not. */
bool math_is_statement(const math_tokens *t);

/* True if an answer only names a value, with a name of one or two letters other than e and i:
 * "x = 5", "xy=5". A space after the second letter is not accepted. */
bool math_is_short_naming(const math_tokens *t);

/* True if both answers consist of words, letters and brackets, at least one of them has a \text,
 * and both spell the same without regard to case, spaces and brackets: \text{Evelyn} and evelyn,
 * \text{(C)} and C. */
bool math_words_equal(const math_tokens *a, const math_tokens *b);

#endif
