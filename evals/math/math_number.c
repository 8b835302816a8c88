/* Parses numbers: fractions, mixed numbers, numerals with a base. */
#include <string.h>

#include "evals/math/math_parser.h"
#include "evals/math/math_spelling.h"

static bool plain_part(const math_token **k) {
    const math_token *s = *k;
    if (s->kind == TOK_NUM) {
        *k = s + 1;
        return true;
    }
    *k = s + 3;
    return s->kind == TOK_LBRACE && s[1].kind == TOK_NUM && s[2].kind == TOK_RBRACE;
}

/* True if a fraction of two plain numbers follows. After a whole number it makes a mixed number. */
static bool at_plain_fraction(const math_token *k) {
    if (k->kind == TOK_NUM)
        return k->spaced && k[1].kind == TOK_SLASH && k[2].kind == TOK_NUM;
    if (k->kind != TOK_FRAC)
        return false;
    k++;
    if (k->kind == TOK_NUM && k->text.len == 2)
        return true;
    return plain_part(&k) && plain_part(&k);
}

uint16_t math_parse_fraction(parser *p) {
    uint16_t a = math_parse_argument(p, false);
    if (p->k->kind == TOK_NUM && p->k->text.len > 1)
        only_as_written(p, "more digits than a fraction takes");
    uint16_t b = a ? math_parse_argument(p, false) : 0;
    return new_quotient(p, a, b);
}

/* Checks a mixed number such as 3 1/2. It is compared only literally if its fraction is 0 or not
 * below 1, as in 3 4/4. Except under MATH_TRUTH, a typed mixed number with a sign, such as -7 1/2,
 * is also compared only literally: no public grader reads it as -(7 + 1/2). */
static void check_mixed(parser *p, uint16_t fraction, bool typed, bool negative) {
    int64_t a, b;
    if (!fraction)
        return;
    const math_node *n = math_at(p->t, math_at(p->t, fraction)->first);
    bool whole = math_integer(p->t, math_at(p->t, fraction)->first, &a) &&
                 math_integer(p->t, math_at(p->t, n->next)->first, &b);
    if ((typed && negative && !p->t->truth) || (whole && (a == 0 || a >= b)))
        only_as_written(p, "not a mixed number");
}

/* A base that is written as digits, with or without the word: 8, (8), \text{base 8}. A word without
 * a number may be followed by one: \text{ (base } 8). Empty if there is none. */
static math_span base_number(const math_token *k, const math_token *end) {
    math_span found = {0};
    for (; k < end && !found.len; k++) {
        if (k->kind == TOK_NUM)
            found = k->text;
        if (k->kind != TOK_WORD && k->kind != TOK_UNIT)
            continue;
        const char *base = memmem(k->text.s, k->text.len, "base", 4);
        uint32_t i = base ? (uint32_t)(base - k->text.s) + 4 : k->text.len, from;
        while (i < k->text.len && !is_digit(k->text.s[i]))
            i++;
        for (from = i; i < k->text.len && is_digit(k->text.s[i]);)
            i++;
        if (i > from)
            found = (math_span){k->text.s + from, i - from};
        else if (base && k[1].kind == TOK_NUM)
            found = k[1].text;
    }
    return found;
}

static uint16_t new_based(parser *p, uint16_t n, uint64_t id) {
    uint16_t based = new_unary(p, NODE_BASED, 0, n);
    if (based)
        p->t->node[based].u.id = id;
    return based;
}

/* Parses a base that is a subscript. MATH_TRUTH compares its number only. */
uint16_t math_parse_base(parser *p, uint16_t n) {
    const math_token *from = ++p->k;
    uint64_t id = kMathHashSeed;
    if (!math_parse_subscript(p, &id))
        return fail(p, "a subscript is missing");
    math_token number = {.kind = TOK_NUM, .text = base_number(from, p->k)};
    if (p->t->truth && number.text.len)
        id = math_hash_token(kMathHashSeed, &number);
    return new_based(p, n, id);
}

/* Parses \text{ base 8}, \text{ base } 8 or \text{ (base }8). */
static uint16_t parse_named_base(parser *p, uint16_t n) {
    const math_token *word = p->k++;
    math_token number = {.kind = TOK_NUM, .text = base_number(word, p->k)};
    bool apart = p->k->kind == TOK_NUM && p->k->text.s == number.text.s;
    p->k += apart;
    p->k += apart && memchr(word->text.s, '(', word->text.len) && p->k->kind == TOK_RPAREN;
    return new_based(p, n, math_hash_token(kMathHashSeed, &number));
}

uint16_t math_parse_number(parser *p) {
    const math_token *k = p->k++;
    uint16_t n = new_number(p, k->text.s, k->text.len);
    bool whole = memchr(k->text.s, '.', k->text.len) == NULL;
    if (p->k->kind == TOK_UNDERSCORE)
        return math_parse_base(p, n);
    if (p->t->truth && p->k->kind == TOK_UNIT && base_number(p->k, p->k + 1).len)
        return parse_named_base(p, n);
    if (!whole || !at_plain_fraction(p->k))
        return n;
    uint16_t fraction;
    bool typed = p->k->kind == TOK_NUM, negative = k > p->first && k[-1].kind == TOK_MINUS;
    if (accept(p, TOK_FRAC)) {
        fraction = math_parse_fraction(p);
    } else {
        uint16_t a = new_number(p, p->k[0].text.s, p->k[0].text.len);
        fraction = new_quotient(p, a, new_number(p, p->k[2].text.s, p->k[2].text.len));
        p->k += 3;
    }
    check_mixed(p, fraction, typed, negative);
    return new_binary(p, NODE_ADD, 0, n, fraction);
}
