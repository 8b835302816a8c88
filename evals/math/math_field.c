#include "evals/math/math_eval.h"

enum { kMaxFactorial = 2000 };

/* A prime field. Numbers are in Montgomery form: x is stored as x * 2^64 mod p. */
typedef struct {
    uint64_t p;
    uint64_t neg_inverse; /* -1 / p mod 2^64 */
    uint64_t r2;          /* 2^128 mod p */
} field;

static const field fields[kMathFields] = {
    {0x300000003ade69e1, 0x47d0cde09ffc65df, 0x0bb9e9858c2b6c2a},
    {0x38000000075bcdbd, 0x7008a439ee602a6b, 0x3222768d0fa8c808},
};

__extension__ typedef unsigned __int128 u128;

typedef struct {
    const math_reading *r;
    const field *f;
    uint64_t seed;
} context;

static uint64_t mul(const field *f, uint64_t a, uint64_t b) {
    u128 t = (u128)a * b;
    uint64_t m = (uint64_t)t * f->neg_inverse;
    uint64_t x = (uint64_t)((t + (u128)m * f->p) >> 64); /* < 2p, and p < 2^63 */
    return x >= f->p ? x - f->p : x;
}

static uint64_t from_int(const field *f, uint64_t x) {
    return mul(f, x % f->p, f->r2);
}

static uint64_t add(const field *f, uint64_t a, uint64_t b) {
    uint64_t x = a + b;
    return x >= f->p ? x - f->p : x;
}

static uint64_t negate(const field *f, uint64_t a) {
    return a ? f->p - a : 0;
}

static uint64_t power(const field *f, uint64_t a, uint64_t e) {
    uint64_t x = from_int(f, 1);
    for (; e; e >>= 1) {
        if (e & 1)
            x = mul(f, x, a);
        a = mul(f, a, a);
    }
    return x;
}

static uint64_t inverse(const field *f, uint64_t a) {
    return power(f, a, f->p - 2); /* Fermat's little theorem */
}

/* SplitMix64: gives each symbol its random value. */
static uint64_t scramble(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static math_eval_status eval(const context *c, uint16_t i, uint64_t *out);

static uint64_t eval_digits(const field *f, math_span s) {
    uint64_t x = 0, ten = from_int(f, 10);
    uint32_t decimals = 0;
    bool point = false;
    for (uint32_t i = 0; i < s.len; i++) {
        if (s.s[i] == '.') {
            point = true;
            continue;
        }
        x = add(f, mul(f, x, ten), from_int(f, (uint64_t)(s.s[i] - '0')));
        decimals += point;
    }
    return decimals ? mul(f, x, inverse(f, power(f, ten, decimals))) : x;
}

/* A square root of -1. Both primes are 1 mod 4, so g^((p-1)/4) is one unless g is a square. */
static uint64_t imaginary_unit(const field *f) {
    for (uint64_t g = 2;; g++) {
        uint64_t root = power(f, from_int(f, g), (f->p - 1) / 4);
        if (mul(f, root, root) == negate(f, from_int(f, 1)))
            return root;
    }
}

static math_eval_status eval_constant(const context *c, int which, uint64_t *out) {
    switch (which) {
    case CONST_I:
        if (c->r->t->truth) {
            *out = imaginary_unit(c->f);
            return EVAL_OK;
        }
        /* fall through */
    case CONST_PI:
    case CONST_E:
        *out = scramble(c->seed + (uint64_t)which) % c->f->p;
        return EVAL_OK;
    default:
        return EVAL_OTHER;
    }
}

static math_eval_status eval_chain(const context *c, const math_node *n, uint64_t *out) {
    bool product = n->kind == NODE_MUL;
    *out = product ? from_int(c->f, 1) : 0;
    for (uint16_t k = n->first; k; k = math_at(c->r->t, k)->next) {
        uint64_t x;
        math_eval_status st = eval(c, k, &x);
        if (st != EVAL_OK)
            return st;
        *out = product ? mul(c->f, *out, x) : add(c->f, *out, x);
    }
    return EVAL_OK;
}

static math_eval_status eval_inverse(const context *c, const math_node *n, uint64_t *out) {
    math_eval_status st = eval(c, n->first, out);
    if (st != EVAL_OK)
        return st;
    if (*out == 0)
        return EVAL_UNDEFINED;
    *out = inverse(c->f, *out);
    return EVAL_OK;
}

static math_eval_status eval_power(const context *c, const math_node *n, uint64_t *out) {
    int64_t e;
    math_eval_status st = eval(c, n->first, out);
    if (st != EVAL_OK)
        return st;
    if (!math_integer(c->r->t, math_at(c->r->t, n->first)->next, &e))
        return EVAL_OTHER;
    if (e <= 0 && *out == 0)
        return EVAL_UNDEFINED;
    *out = power(c->f, e < 0 ? inverse(c->f, *out) : *out, (uint64_t)(e < 0 ? -e : e));
    return EVAL_OK;
}

/* The falling factorial n! / (n-k)!. */
static uint64_t falling(const field *f, int64_t n, int64_t k) {
    uint64_t x = from_int(f, 1);
    for (int64_t i = 0; i < k; i++)
        x = mul(f, x, from_int(f, (uint64_t)(n - i)));
    return x;
}

static math_eval_status eval_function(const context *c, const math_node *n, uint64_t *out) {
    int64_t a, k;
    if ((n->arg != FN_FACTORIAL && n->arg != FN_BINOMIAL) || !math_integer(c->r->t, n->first, &a))
        return EVAL_OTHER;
    bool binomial = n->arg == FN_BINOMIAL;
    if (!binomial)
        k = a;
    else if (!math_integer(c->r->t, math_at(c->r->t, n->first)->next, &k))
        return EVAL_OTHER;
    if (a < 0 || k < 0 || k > a || k > kMaxFactorial)
        return EVAL_OTHER;
    *c->r->work -= (int)k / 16;
    *out = falling(c->f, a, k);
    if (binomial)
        *out = mul(c->f, *out, inverse(c->f, falling(c->f, k, k)));
    return EVAL_OK;
}

static math_eval_status eval_signed(const context *c, const math_node *n, bool negative,
                                    uint64_t *out) {
    math_eval_status st = eval(c, n->first, out);
    if (st == EVAL_OK && negative)
        *out = negate(c->f, *out);
    return st;
}

static math_eval_status eval_percent(const context *c, const math_node *n, uint64_t *out) {
    math_eval_status st = eval(c, n->first, out);
    if (st == EVAL_OK && c->r->percent)
        *out = mul(c->f, *out, inverse(c->f, from_int(c->f, 100)));
    return st;
}

static math_eval_status eval(const context *c, uint16_t i, uint64_t *out) {
    const math_node *n = math_at(c->r->t, i);
    if (--*c->r->work < 0)
        return EVAL_COSTLY;
    switch (n->kind) {
    case NODE_NUM:
        *c->r->work -= (int)(n->u.text.len / 16);
        *out = eval_digits(c->f, n->u.text);
        return EVAL_OK;
    case NODE_SYM:
        *out = scramble(n->u.id ^ c->seed) % c->f->p;
        return EVAL_OK;
    case NODE_CONST:
        return eval_constant(c, n->arg, out);
    case NODE_ADD:
    case NODE_MUL:
        return eval_chain(c, n, out);
    case NODE_NEG:
        return eval_signed(c, n, true, out);
    case NODE_PM:
        return eval_signed(c, n, n->arg * c->r->pm < 0, out);
    case NODE_INV:
        return eval_inverse(c, n, out);
    case NODE_POW:
        return eval_power(c, n, out);
    case NODE_FN:
        return eval_function(c, n, out);
    case NODE_PERCENT:
        return eval_percent(c, n, out);
    default:
        return EVAL_OTHER;
    }
}

math_eval_status math_eval_field(const math_reading *r, uint16_t i, int which, uint64_t *out) {
    context c = {.r = r, .f = &fields[which], .seed = scramble((uint64_t)which)};
    return eval(&c, i, out);
}
