/* Rewrites signs that were typed as characters: a root, raised digits, dashes. */
#include "evals/math/math_rewriter.h"

/* Typed signs and their LaTeX. The tokenizer reads further signs with math_find_sign(). */
static const struct {
    const char *utf8, *latex;
} signs[] = {
    {"\u2013", "-"},
    {"\u2014", "-"},
    {"\ufe63", "-"},
    {"\uff0d", "-"},
    {"\u2012", "-"},
    {"\u2010", "-"},
    {"\u2011", "-"},
    {"\u00b7", "\\cdot "},
    {"\u2022", "\\cdot "},
    {"\u221e", "\\infty "},
    {"\u27e8", "\\langle "},
    {"\u27e9", "\\rangle "},
    {"\u00b0", "^\\circ "},
    {"\u00ba", "^\\circ "},
    {"\u02da", "^\\circ "},
    {"\u2234", ""},
    {"\u2044", "/"},
    {"\u2215", "/"},
    {"\u2248", "\\approx "},
    {"\u20ac", "\\euro "},
    {"\u00a2", "\\text{ cents}"},
    {"\u00a3", "\\pounds "},
    {"\u00a5", "\\yen "},
    {"\u20b9", "\\rupee "},
    {"\u201c", ""},
    {"\u201d", ""},
    {"\u2018", ""},
    {"\u2019", "'"},
    {"\u2032", "'"},
    {"\uff0c", ","},
    {"\u3001", ","},
    {"\u3002", "."},
    {"\uff08", "("},
    {"\uff09", ")"},
    {"\uff1a", ":"},
    {"\uff1d", "="},
    {"\u00a0", "\\,"},
    {"\u2009", "\\,"},
    {"\u202f", "\\,"},
    {"\u2006", "\\,"},
    {"\u2a7d", "\\le "},
    {"\u2a7e", "\\ge "},
    {"\u2261", "\\equiv "},
    {"\u230a", "\\lfloor "},
    {"\u230b", "\\rfloor "},
    {"\u2308", "\\lceil "},
    {"\u2309", "\\rceil "},
    {"\u211d", "\\mathbb{R}"},
    {"\u2124", "\\mathbb{Z}"},
    {"\u2115", "\\mathbb{N}"},
    {"\u2216", "\\setminus "},
    {"\u00bd", "\\frac{1}{2}"},
    {"\u00bc", "\\frac{1}{4}"},
    {"\u00be", "\\frac{3}{4}"},
    {"\u2153", "\\frac{1}{3}"},
    {"\u2154", "\\frac{2}{3}"},
    {"\u215b", "\\frac{1}{8}"},
    {"\u03c0", "\\pi "},
    {"\u2026", "\\ldots "},
    {"\u2211", "\\sum "},
    {"\u03b3", "\\gamma "},
    {"\u03b4", "\\delta "},
    {"\u03bc", "\\mu "},
    {"\u03c3", "\\sigma "},
    {"\u03c9", "\\omega "},
};

/* Raised and lowered characters, and what they stand for. */
static const struct {
    const char *utf8;
    char plain, place; /* place: '^' or '_' */
} shifted[] = {
    {"\u2070", '0', '^'}, {"\u00b9", '1', '^'}, {"\u00b2", '2', '^'}, {"\u00b3", '3', '^'},
    {"\u2074", '4', '^'}, {"\u2075", '5', '^'}, {"\u2076", '6', '^'}, {"\u2077", '7', '^'},
    {"\u2078", '8', '^'}, {"\u2079", '9', '^'}, {"\u207a", '+', '^'}, {"\u207b", '-', '^'},
    {"\u207f", 'n', '^'}, {"\u02e3", 'x', '^'}, {"\u2080", '0', '_'}, {"\u2081", '1', '_'},
    {"\u2082", '2', '_'}, {"\u2083", '3', '_'}, {"\u2084", '4', '_'}, {"\u2085", '5', '_'},
    {"\u2086", '6', '_'}, {"\u2087", '7', '_'}, {"\u2088", '8', '_'}, {"\u2089", '9', '_'},
};

/* The raised or lowered character at @s, as its index in the table; -1 if there is none. */
static int find_shifted(const rewriter *r, const char *s) {
    for (size_t i = 0; i < COUNT(shifted); i++)
        if (starts(r, s, shifted[i].utf8))
            return (int)i;
    return -1;
}

static bool rewrite_shifted(rewriter *r) {
    int i = find_shifted(r, r->s);
    if (i < 0)
        return false;
    char place = shifted[i].place;
    put(r, &place, 1);
    puts_to(r, "{");
    for (; i >= 0 && shifted[i].place == place; i = find_shifted(r, r->s)) {
        put(r, &shifted[i].plain, 1);
        r->s += strlen(shifted[i].utf8);
    }
    puts_to(r, "}");
    return true;
}

/* Rewrites a typed root. It extends over the digits, the letter or the bracket after it. */
static bool rewrite_root(rewriter *r) {
    static const struct {
        const char *utf8, *latex;
    } roots[] = {{"\u221a", "\\sqrt"}, {"\u221b", "\\sqrt[3]"}, {"\u221c", "\\sqrt[4]"}};
    for (size_t i = 0; i < COUNT(roots); i++) {
        if (!starts(r, r->s, roots[i].utf8))
            continue;
        puts_to(r, roots[i].latex);
        const char *from = skip_spaces(r, r->s + strlen(roots[i].utf8)), *to = skip_digits(r, from);
        bool digits = to > from;
        puts_to(r, digits ? "{" : " ");
        put(r, from, (size_t)(to - from));
        puts_to(r, digits ? "}" : "");
        r->s = to;
        return true;
    }
    return false;
}

void math_rewrite_sign(rewriter *r) {
    if (rewrite_shifted(r) || rewrite_root(r))
        return;
    for (size_t i = 0; i < COUNT(signs); i++)
        if (starts(r, r->s, signs[i].utf8)) {
            puts_to(r, signs[i].latex);
            r->s += strlen(signs[i].utf8);
            return;
        }
    put(r, r->s++, 1);
}
