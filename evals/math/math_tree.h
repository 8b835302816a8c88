/* math_tree.h - an answer as a tree.
 *
 * Nodes live in one array and name each other by index; index 0 is no node. A node's children are
 * a chain from `first` through `next`. */
#ifndef SNAPMLA_EVALS_MATH_MATH_TREE_H
#define SNAPMLA_EVALS_MATH_MATH_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "evals/math/math_token.h"

enum {
    kMathMaxNodes = 2048,
    kMathMaxDepth = 32, /* of nesting in the source: the stack of every recursion */
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
    NODE_PM,      /* arg: +1 or -1; the child with the sign that the branch gives it */
    NODE_PERCENT, /* child / 100, or the child: the comparison decides */
    /* what follows is no expression */
    NODE_WORD,  /* text */
    NODE_BASED, /* a numeral (the child) with its base (id) */
    NODE_LIST,  /* a, b, c without brackets; arg: 1 if with semicolons */
    NODE_TUPLE, /* arg: bit 0 opens with '[', bit 1 closes with ']' */
    NODE_SET,
    NODE_UNION, /* n-ary */
    NODE_INTERSECTION,
    NODE_DIFFERENCE,
    NODE_MATRIX, /* children are NODE_LIST, a row each */
    NODE_REL,    /* arg: math_rel; children: left, right, left - right */
    NODE_AND,    /* a chain of relations */
} math_node_kind;

typedef struct {
    uint8_t kind; /* math_node_kind */
    bool pm;      /* is or contains a NODE_PM */
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
    bool rounded;    /* "\approx 1.41" followed, and was left out */
    bool separated;  /* a number has a thousands separator */
    bool juxtaposed; /* integers are multiplied by brackets alone, 4(7), somewhere */
    bool framed;     /* a number in a \text or in bold, or a line break at the end */
    bool chained;    /* a chain of equations lost its middle */
    bool leading;    /* an equation without its left side, "= 5" */
    bool plain;      /* which begins with digits, or a minus sign and digits */
    bool short_name; /* it is "x = ..." or "xy=..." */
    bool times;      /* a multiplication has its sign, somewhere */
    /* NULL, or why the graders of the field read some part of it only as it is written */
    const char *verbatim;
} math_tree;

/* Returns NULL, or a static text saying why the tokens are no answer. The tree points into what
 * the tokens point into. Arguments such as \frac12 split number tokens: @t is changed. */
const char *math_parse(math_tree *out, math_tokens *t);

/* The value of a small integer constant: false if @i is none or is larger than 2^62. */
bool math_integer(const math_tree *t, uint16_t i, int64_t *value);

/* Symbols, and i, which counts as one (math_eval.h). */
bool math_has_symbol(const math_tree *t, uint16_t i);

/* Whether two parts are written alike, percent signs aside. */
bool math_same_tree(const math_tree *t, uint16_t i, const math_tree *u, uint16_t j);

/* Whether @i is made of numbers by sums, products, quotients and powers. */
bool math_is_arithmetic(const math_tree *t, uint16_t i);

/* Whether @i is an expression: no tuple, set, matrix, relation or word. */
bool math_is_expression(const math_tree *t, uint16_t i);

/* Whether @i is an expression with one value: no symbols, no \pm. */
bool math_is_constant(const math_tree *t, uint16_t i);

static inline const math_node *math_at(const math_tree *t, uint16_t i) {
    return &t->node[i];
}

#endif
