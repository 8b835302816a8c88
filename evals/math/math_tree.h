/* math_tree.h - an answer as a tree.
 *
 * Nodes live in one array and refer to each other by index; index 0 means no node. A node's
 * children are a linked list: `first`, then each child's `next`. */
#ifndef SNAPMLA_EVALS_MATH_MATH_TREE_H
#define SNAPMLA_EVALS_MATH_MATH_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "evals/math/math_token.h"

enum {
    kMathMaxNodes = 2048,
    kMathMaxDepth = 32, /* nesting depth of the source; bounds the stack of every recursion */
};

typedef enum {
    NODE_NUM,   /* text: digits with at most one '.' */
    NODE_SYM,   /* id */
    NODE_CONST, /* arg: math_const */
    NODE_ADD,
    NODE_MUL,
    NODE_NEG,
    NODE_INV, /* 1 / child */
    NODE_POW,
    NODE_FN,      /* arg: math_fn */
    NODE_PM,      /* arg: +1 or -1; the child times that sign times the sign that \pm stands for */
    NODE_PERCENT, /* child / 100 or child; the comparison decides */
    /* the following kinds are not expressions */
    NODE_WORD,  /* text */
    NODE_BASED, /* a numeral (the child) with a base (id) */
    NODE_MOD,   /* children: value, modulus */
    NODE_LIST,  /* a, b, c without brackets; arg: 1 if separated by semicolons (MATH_TRUTH: 0) */
    NODE_TUPLE, /* arg: bit 0 = opens with '[', bit 1 = closes with ']', bit 2 = \langle */
    NODE_SET,
    NODE_UNION, /* n-ary */
    NODE_INTERSECTION,
    NODE_DIFFERENCE,
    NODE_MATRIX, /* each child is a row, a NODE_LIST */
    NODE_REL,    /* arg: math_rel; children: left, right and left - right. With MATH_TRUTH, |x| < a
                    has a fourth child, -a */
    NODE_AND,    /* a chain of relations */
} math_node_kind;

typedef struct {
    uint8_t kind; /* math_node_kind */
    bool pm;      /* is a NODE_PM or contains one */
    int16_t arg;
    uint16_t first, next; /* first child, next sibling */
    union {
        math_span text;
        uint64_t id; /* equal names have equal ids */
    } u;
} math_node;

typedef struct {
    math_node node[kMathMaxNodes];
    uint16_t used; /* node[0] is the absent node */
    uint16_t root;
    bool has_pm, has_percent;
    bool rounded;    /* "\approx 1.41" followed and was dropped */
    bool separated;  /* a comma, in any spelling, was read as a thousands separator */
    bool juxtaposed; /* somewhere, brackets alone multiply an integer by an integer or a fraction:
                        4(7) */
    bool framed;     /* a number in a \text or in bold, or a line break at the end */
    bool chained;    /* a chain of equations whose middle was dropped */
    bool leading;    /* an equation without a left side: "= 5" (never set for MATH_TRUTH) */
    bool plain;      /* set only with `leading`: a number, or a minus sign and a number, follows the
                        "=" */
    bool short_name; /* the form "x = ..." or "xy=..." */
    bool truth;      /* parsed for MATH_TRUTH: i is the imaginary unit */
    bool times;      /* somewhere, a multiplication has an explicit sign */
    /* NULL, or the reason why the expression is compared only literally */
    const char *verbatim;
} math_tree;

/* Returns NULL on success, else a static text with the reason. The tree points into the same memory
 * as the tokens. Changes @t, because arguments as in \frac12 split number tokens. */
const char *math_parse(math_tree *out, math_tokens *t);

/* True if a word such as "million" follows a value in the answer. */
bool math_has_large_number(const math_tokens *t);

/* The value of an integer constant of literals with up to 18 digits, minus signs, sums and
 * products. False for other expressions and if an int64_t overflows. */
bool math_integer(const math_tree *t, uint16_t i, int64_t *value);

/* True if @i has symbols; i counts as one except for MATH_TRUTH (math_eval.h). */
bool math_has_symbol(const math_tree *t, uint16_t i);

/* True if two parts are written the same way, ignoring percent signs. */
bool math_same_tree(const math_tree *t, uint16_t i, const math_tree *u, uint16_t j);

/* True if @i consists of numbers, signs, sums, products, quotients and powers. */
bool math_is_arithmetic(const math_tree *t, uint16_t i);

/* True if @i is an expression: its kind is one of those before NODE_WORD. */
bool math_is_expression(const math_tree *t, uint16_t i);

/* True if @i is an expression with one value: no symbols, no \pm. */
bool math_is_constant(const math_tree *t, uint16_t i);

static inline const math_node *math_at(const math_tree *t, uint16_t i) {
    return &t->node[i];
}

#endif
