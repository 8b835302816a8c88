/* math_parser.h - declarations that the files of the parser share: its state, the functions
 * that create nodes, and the rules that call each other. */
#ifndef SNAPMLA_EVALS_MATH_MATH_PARSER_H
#define SNAPMLA_EVALS_MATH_MATH_PARSER_H

#include <stdbool.h>
#include <stdint.h>

#include "evals/math/math_tree.h"

typedef struct {
    math_tree *t;
    math_token *k; /* next token */
    math_token *first;
    int depth;
    int bars;      /* number of open |...|: the next bar closes one */
    int relations; /* relations and chains of relations parsed so far */
    bool unit;     /* the last factor had a unit */
    bool angle;    /* inside the argument of a trigonometric function, or everywhere if the answer's
                      degrees are converted (math_tokens) */
    const char *why;
} parser;

/* Functions for rules of the grammar. The first comment of math_parse.c shows the rules except
 * those for atoms and exponents. Each function returns its node, or 0 after setting `why`. */
uint16_t math_parse_list(parser *p);
uint16_t math_parse_sum(parser *p);
uint16_t math_parse_factor(parser *p);
uint16_t math_parse_atom(parser *p);
uint16_t math_parse_exponent(parser *p);

/* Each rule parses one kind of atom, and the next token is the first one of the atom. Only
 * math_parse_fraction() begins after the \frac, and math_parse_base() at the underscore. */
uint16_t math_parse_number(parser *p);
uint16_t math_parse_fraction(parser *p);
uint16_t math_parse_base(parser *p, uint16_t n); /* n: the numeral */
uint16_t math_parse_function(parser *p);
uint16_t math_parse_root(parser *p);
uint16_t math_parse_binomial(parser *p);
uint16_t math_parse_bracketed(parser *p);
uint16_t math_parse_group(parser *p);
uint16_t math_parse_braced_set(parser *p);
uint16_t math_parse_absolute(parser *p);
uint16_t math_parse_rounding(parser *p);
uint16_t math_parse_matrix(parser *p);

/* For MATH_TRUTH: multiplies each entry of the matrix or tuple in a product by the other factors,
 * which are constants or, for a matrix, expressions. Returns @product itself if it has no such
 * form, and 0 after an error. */
uint16_t math_scale(parser *p, uint16_t product);

/* -M for a matrix M; 0 after an error. */
uint16_t math_negate_matrix(parser *p, uint16_t matrix);

/* For MATH_TRUTH: the transpose of a matrix if the next tokens are an exponent T. A tuple is
 * returned itself, as a column. 0 if there is no such exponent, or after an error, which sets
 * `why`. */
uint16_t math_parse_transpose(parser *p, uint16_t matrix);

/* Parses the argument of \frac, \binom, \sqrt, ^ or \log_: a group or the next atom. If that is a
 * number, the argument is its first digit, as in LaTeX, or with @whole the whole number. */
uint16_t math_parse_argument(parser *p, bool whole);

/* Parses a subscript. It is part of the name, so its tokens except braces go into the hash @id.
 * False if the subscript is missing or not closed. */
bool math_parse_subscript(parser *p, uint64_t *id);

/* Adds a token to an FNV-1a hash, which starts with kMathHashSeed. Equal names get equal hashes. */
uint64_t math_hash_token(uint64_t h, const math_token *k);

static const uint64_t kMathHashSeed = 14695981039346656037u;

/* True if the next token can begin a factor. */
bool math_starts_factor(const parser *p);

static inline uint16_t fail(parser *p, const char *why) {
    if (!p->why)
        p->why = why;
    return 0;
}

static inline uint16_t new_node(parser *p, math_node_kind kind, int arg) {
    math_tree *t = p->t;
    if (p->why)
        return 0;
    if (t->used == kMathMaxNodes)
        return fail(p, "too many parts");
    t->node[t->used] = (math_node){.kind = (uint8_t)kind, .arg = (int16_t)arg};
    return t->used++;
}

/* A node is 0 if one of its children is 0, so callers need not check for errors at each level. */
static inline uint16_t new_unary(parser *p, math_node_kind kind, int arg, uint16_t a) {
    uint16_t n = a ? new_node(p, kind, arg) : 0;
    if (n)
        p->t->node[n].first = a;
    return n;
}

static inline uint16_t new_binary(parser *p, math_node_kind kind, int arg, uint16_t a, uint16_t b) {
    uint16_t n = b ? new_unary(p, kind, arg, a) : 0;
    if (n)
        p->t->node[a].next = b;
    return n;
}

static inline uint16_t new_quotient(parser *p, uint16_t a, uint16_t b) {
    return new_binary(p, NODE_MUL, 0, a, new_unary(p, NODE_INV, 0, b));
}

/* A copy of a node without its siblings. It shares the children. */
static inline uint16_t new_copy(parser *p, uint16_t i) {
    uint16_t n = i ? new_node(p, NODE_NUM, 0) : 0;
    if (n) {
        p->t->node[n] = p->t->node[i];
        p->t->node[n].next = 0;
    }
    return n;
}

static inline uint16_t new_number(parser *p, const char *digits, size_t n) {
    uint16_t i = new_node(p, NODE_NUM, 0);
    if (i)
        p->t->node[i].u.text = (math_span){digits, (uint32_t)n};
    return i;
}

/* Builds an n-ary node child by child. A single child is returned without a parent. */
typedef struct {
    math_node_kind kind;
    uint16_t node, last;
} chain;

static inline bool chain_add(parser *p, chain *c, uint16_t child) {
    if (!child)
        return false;
    if (!c->last) {
        c->node = c->last = child;
        return true;
    }
    if (c->node == c->last)
        c->node = new_unary(p, c->kind, 0, c->last);
    if (!c->node)
        return false;
    p->t->node[c->last].next = child;
    c->last = child;
    return true;
}

static inline bool accept(parser *p, math_token_kind kind) {
    if (p->k->kind != kind)
        return false;
    p->k++;
    return true;
}

static inline uint16_t expect(parser *p, math_token_kind kind, uint16_t node) {
    return accept(p, kind) ? node : fail(p, "unbalanced brackets");
}

static inline void only_as_written(parser *p, const char *why) {
    if (!p->t->verbatim)
        p->t->verbatim = why;
}

/* For a spelling that a reader understands, but which the public graders refuse wherever they
 * agree: MATH_TRUTH compares it by value, the other policies only literally. */
static inline void only_as_written_in_public(parser *p, const char *why) {
    if (!p->t->truth)
        only_as_written(p, why);
}

/* For a spelling that only MATH_TRUTH reads: returns @node, or fails under the other policies. */
static inline uint16_t fail_in_public(parser *p, uint16_t node, const char *why) {
    return p->t->truth ? node : fail(p, why);
}

static inline bool enter(parser *p) {
    if (++p->depth <= kMathMaxDepth)
        return true;
    fail(p, "nested too deeply");
    return false;
}

#endif
