#include "evals/similarity.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Characters of one text. */
typedef struct {
    uint32_t *at;
    size_t n;
} characters;

/* A part of both texts whose matches are still to be found. */
typedef struct {
    size_t a, a_end, b, b_end;
} part;

/* Two texts and working memory. */
typedef struct {
    characters a, b;
    size_t *sorted;  /* [b.n] places of b, ordered by character and then by place */
    size_t *lengths; /* [b.n + 1] lengths[j + 1]: length of the common run that ends at place j of b
                        and at the previous character of a */
    size_t *more;    /* [b.n + 1] the same lengths for the current character of a */
    bool *popular;   /* [b.n] whether the character of sorted[i] is too frequent */
    part *parts;     /* [a.n + b.n + 2] stack */
} matcher;

static bool decode(span text, characters *out) {
    out->at = calloc(text.n + 1, sizeof *out->at);
    for (size_t i = 0; out->at && i < text.n;) {
        unsigned char c = (unsigned char)text.s[i++];
        uint32_t value = c;
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
        if (more)
            value = c & (0x3FU >> more);
        for (; more > 0 && i < text.n && ((unsigned char)text.s[i] & 0xC0) == 0x80; more--)
            value = value << 6 | ((unsigned char)text.s[i++] & 0x3F);
        out->at[out->n++] = value;
    }
    return out->at != NULL;
}

static int by_character(const void *x, const void *y, void *ctx) {
    const uint32_t *b = ctx;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    if (b[i] != b[k])
        return b[i] < b[k] ? -1 : 1;
    return (i > k) - (i < k);
}

/* The index of the first entry of m->sorted whose character is @c or greater. */
static size_t find(const matcher *m, uint32_t c) {
    size_t low = 0, high = m->b.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->b.at[m->sorted[middle]] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A character of a long text is too frequent if it has more than 1 + n / 100 places. */
static void mark_popular(matcher *m) {
    enum { kLong = 200 };
    size_t n = m->b.n, most = n / 100 + 1;
    for (size_t i = 0, end; i < n && n >= kLong; i = end) {
        for (end = i; end < n && m->b.at[m->sorted[end]] == m->b.at[m->sorted[i]]; end++)
            continue;
        for (size_t k = i; k < end; k++)
            m->popular[k] = end - i > most;
    }
}

/* The longest run of characters that both parts have and that are not too frequent, with the equal
 * characters around it; or a run of length 0. */
static part longest(matcher *m, part p) {
    part best = {p.a, p.a, p.b, p.b};
    const uint32_t *a = m->a.at, *b = m->b.at;
    size_t length = 0;
    memset(m->lengths + p.b, 0, (p.b_end - p.b + 1) * sizeof *m->lengths);
    memset(m->more + p.b, 0, (p.b_end - p.b + 1) * sizeof *m->more);
    for (size_t i = p.a; i < p.a_end; i++) {
        for (size_t k = find(m, a[i]); k < m->b.n && b[m->sorted[k]] == a[i]; k++) {
            size_t j = m->sorted[k];
            if (m->popular[k] || j < p.b || j >= p.b_end)
                continue;
            size_t run = (j > p.b ? m->lengths[j] : 0) + 1;
            m->more[j + 1] = run;
            if (run > length) {
                length = run;
                best = (part){i - run + 1, i + 1, j - run + 1, j + 1};
            }
        }
        for (size_t k = i > p.a ? find(m, a[i - 1]) : m->b.n;
             k < m->b.n && b[m->sorted[k]] == a[i - 1]; k++)
            m->lengths[m->sorted[k] + 1] = 0; /* clears the lengths for the previous character of a,
                                                 which are no longer needed */
        size_t *swap = m->lengths;
        m->lengths = m->more;
        m->more = swap;
    }
    while (best.a > p.a && best.b > p.b && a[best.a - 1] == b[best.b - 1])
        best.a--, best.b--;
    while (best.a_end < p.a_end && best.b_end < p.b_end && a[best.a_end] == b[best.b_end])
        best.a_end++, best.b_end++;
    return best;
}

static size_t count_matches(matcher *m) {
    size_t n = 0, matches = 0;
    m->parts[n++] = (part){0, m->a.n, 0, m->b.n};
    while (n) {
        part p = m->parts[--n], run = longest(m, p);
        if (run.a == run.a_end)
            continue;
        matches += run.a_end - run.a;
        if (p.a < run.a && p.b < run.b)
            m->parts[n++] = (part){p.a, run.a, p.b, run.b};
        if (run.a_end < p.a_end && run.b_end < p.b_end)
            m->parts[n++] = (part){run.a_end, p.a_end, run.b_end, p.b_end};
    }
    return matches;
}

snap_status similarity_ratio(span a, span b, double *out, snap_err *err) {
    matcher m = {0};
    bool ok = decode(a, &m.a) && decode(b, &m.b);
    size_t n = m.b.n;
    m.sorted = calloc(n + 1, sizeof *m.sorted);
    m.lengths = calloc(n + 2, sizeof *m.lengths);
    m.more = calloc(n + 2, sizeof *m.more);
    m.popular = calloc(n + 1, sizeof *m.popular);
    m.parts = calloc(m.a.n + n + 2, sizeof *m.parts);
    ok = ok && m.sorted && m.lengths && m.more && m.popular && m.parts;
    for (size_t i = 0; i < n && ok; i++)
        m.sorted[i] = i;
    if (ok) {
        qsort_r(m.sorted, n, sizeof *m.sorted, by_character, m.b.at);
        mark_popular(&m);
        *out = m.a.n + n ? 2.0 * (double)count_matches(&m) / (double)(m.a.n + n) : 1;
    }
    free(m.a.at);
    free(m.b.at);
    free(m.sorted);
    free(m.lengths);
    free(m.more);
    free(m.popular);
    free(m.parts);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a comparison of texts");
}
