#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/text.h"
#include "evals/code/compare.h"

enum { kDepth = 512, kNumber = 400 };

typedef enum { NOTHING, INTEGER, REAL, TEXT, LIST, TUPLE, DICT, OTHER } kind;

/* Items of a list, tuple or dict form a linked list; those of a dict have keys. */
typedef struct value value;
struct value {
    kind kind;
    bool negative; /* for INTEGER */
    span text;     /* INTEGER: the digits, "" for zero; TEXT: the decoded text */
    double real;
    value *first, *next;
    span key;
    size_t place; /* position of the item in its list or dict */
    size_t n;     /* number of items */
};

typedef struct {
    const char *at, *end;
    arena *mem;
    bool no_memory;
    int depth;
} reader;

static value *read_value(reader *r);

static void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static value *make(reader *r, kind k) {
    value *v = arena_alloc(r->mem, 1, sizeof *v);
    r->no_memory = r->no_memory || !v;
    if (v)
        v->kind = k;
    return v;
}

static value *make_integer(reader *r, bool negative, span digits) {
    value *v = make(r, INTEGER);
    while (digits.n && digits.s[0] == '0') {
        digits.s++;
        digits.n--;
    }
    if (v) {
        v->text = digits;
        v->negative = negative && digits.n;
    }
    return v;
}

static value *make_real(reader *r, double x) {
    value *v = make(r, REAL);
    if (v)
        v->real = x;
    return v;
}

/* ---- numbers ---- */

static size_t count_digits(const reader *r) {
    const char *p = r->at;
    while (p < r->end && *p >= '0' && *p <= '9')
        p++;
    return (size_t)(p - r->at);
}

/* Skips a fraction and an exponent, such as ".5" and "e-7", after an integer; false if malformed.
 * *any becomes true if there was one. */
static bool skip_fraction(reader *r, bool *any) {
    *any = false;
    if (take(r, ".")) {
        size_t n = count_digits(r);
        r->at += n;
        *any = true;
        if (!n)
            return false;
    }
    if (take(r, "e") || take(r, "E")) {
        (void)(take(r, "+") || take(r, "-"));
        size_t n = count_digits(r);
        r->at += n;
        *any = true;
        return n > 0;
    }
    return true;
}

static value *read_real(reader *r, const char *from) {
    char *text = arena_strndup(r->mem, from, (size_t)(r->at - from));
    r->no_memory = r->no_memory || !text;
    return text ? make_real(r, strtod(text, NULL)) : NULL;
}

static value *read_number(reader *r) {
    const char *from = r->at;
    bool negative = take(r, "-"), fraction;
    if (take(r, "Infinity"))
        return make_real(r, negative ? -INFINITY : INFINITY);
    span digits = {r->at, count_digits(r)};
    r->at += digits.n;
    if (!digits.n || (digits.n > 1 && digits.s[0] == '0') || !skip_fraction(r, &fraction))
        return NULL;
    return fraction ? read_real(r, from) : make_integer(r, negative, digits);
}

/* ---- strings ---- */

static bool read_hex(reader *r, unsigned *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = r->at < r->end ? *r->at : ' ';
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return false;
        *out = *out * 16 + (unsigned)digit;
    }
    return true;
}

/* Appends a code point as UTF-8. A surrogate without its other half becomes three bytes, because it
 * is a character of its own in Python. */
static void put_code_point(buf *out, unsigned c) {
    unsigned char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (unsigned char)(0x80 | (c & 0x3f));
    b[0] = (unsigned char)(lead[n] | c);
    (void)buf_append(out, b, n);
}

static bool read_unicode(reader *r, buf *out) {
    unsigned high, low;
    if (!read_hex(r, &high))
        return false;
    const char *after = r->at;
    if (high >= 0xd800 && high < 0xdc00 && take(r, "\\u") && read_hex(r, &low) && low >= 0xdc00 &&
        low < 0xe000) {
        put_code_point(out, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        return true;
    }
    r->at = after;
    put_code_point(out, high);
    return true;
}

static bool read_escape(reader *r, buf *out) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : '\0';
    const char *found = c ? strchr(names, c) : NULL;
    if (c == 'u')
        return read_unicode(r, out);
    return found && buf_append(out, &meanings[found - names], 1);
}

static bool read_text(reader *r, span *out) {
    buf text = {0};
    bool ok = take(r, "\"");
    while (ok && r->at < r->end && *r->at != '"') {
        const char *from = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20)
            r->at++;
        (void)buf_append(&text, from, (size_t)(r->at - from));
        if (r->at < r->end && *r->at != '"')
            ok = *r->at++ == '\\' && read_escape(r, &text);
    }
    ok = ok && take(r, "\"");
    const char *kept = ok ? arena_strndup(r->mem, buf_str(&text), text.len) : NULL;
    r->no_memory = r->no_memory || text.failed || (ok && !kept);
    *out = (span){kept, text.len};
    buf_release(&text);
    return kept != NULL;
}

/* ---- members of lists, sets and dictionaries ---- */

static bool same_text(span a, span b) {
    return a.n == b.n && (!a.n || memcmp(a.s, b.s, a.n) == 0);
}

typedef struct {
    value *v;
} entry;

static int by_key(const void *a, const void *b) {
    const value *x = ((const entry *)a)->v, *y = ((const entry *)b)->v;
    size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
    int order = memcmp(x->key.s, y->key.s, n);
    if (order)
        return order;
    if (x->key.n != y->key.n)
        return x->key.n < y->key.n ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Sorts the items by key; of equal keys, keeps the last. */
static bool sort_items(reader *r, value *dict) {
    entry *items = fault_malloc((dict->n + 1) * sizeof *items);
    size_t n = 0;
    r->no_memory = r->no_memory || !items;
    if (!items)
        return false;
    for (value *v = dict->first; v; v = v->next)
        items[n++].v = v;
    qsort(items, n, sizeof *items, by_key);
    dict->first = NULL;
    dict->n = 0;
    for (size_t i = n; i-- > 0;) {
        value *v = items[i].v;
        if (dict->first && same_text(v->key, dict->first->key))
            continue;
        v->next = dict->first;
        dict->first = v;
        dict->n++;
    }
    free(items);
    return true;
}

/* Reads the next item of @list; in a dict, with its key. */
static value *read_item(reader *r, const value *list) {
    span key = {NULL, 0};
    if (list->kind == DICT) {
        skip_space(r);
        if (!read_text(r, &key))
            return NULL;
        skip_space(r);
        if (!take(r, ":"))
            return NULL;
    }
    value *item = read_value(r);
    if (item) {
        item->key = key;
        item->place = list->n;
    }
    return item;
}

static value *read_items(reader *r, kind k, const char *closing) {
    value *list = make(r, k), **tail = list ? &list->first : NULL;
    skip_space(r);
    if (!list || take(r, closing))
        return list;
    do {
        value *item = read_item(r, list);
        if (!item)
            return NULL;
        *tail = item;
        tail = &item->next;
        list->n++;
        skip_space(r);
    } while (take(r, ","));
    if (!take(r, closing) || (k == DICT && !sort_items(r, list)))
        return NULL;
    return list;
}

static value *read_plain(reader *r) {
    if (take(r, "null"))
        return make(r, NOTHING);
    if (take(r, "true"))
        return make_integer(r, false, (span){"1", 1});
    if (take(r, "false"))
        return make_integer(r, false, (span){"0", 1});
    if (take(r, "NaN"))
        return make_real(r, NAN);
    if (take(r, "!"))
        return make(r, OTHER);
    return read_number(r);
}

static value *read_value(reader *r) {
    value *v = NULL;
    skip_space(r);
    if (r->depth == kDepth)
        return NULL;
    r->depth++;
    if (r->at < r->end && *r->at == '"') {
        v = make(r, TEXT);
        if (v && !read_text(r, &v->text))
            v = NULL;
    } else if (take(r, "[")) {
        v = read_items(r, LIST, "]");
    } else if (take(r, "(")) {
        v = read_items(r, TUPLE, ")");
    } else if (take(r, "{")) {
        v = read_items(r, DICT, "}");
    } else {
        v = read_plain(r);
    }
    r->depth--;
    return v;
}

static const value *parse(span text, arena *mem, value_verdict *why) {
    reader r = {.at = text.s, .end = text.s + text.n, .mem = mem};
    const value *v = read_value(&r);
    skip_space(&r);
    if (v && r.at != r.end)
        v = NULL;
    if (!v)
        *why = r.no_memory ? VALUE_NO_MEMORY : VALUE_MALFORMED;
    return v;
}

/* ---- equality ---- */

/* Compares an integer with a real number exactly, as Python does: by the digits of the real number,
 * which must be whole. */
static bool same_mixed(const value *integer, double x) {
    char digits[kNumber];
    if (!isfinite(x) || floor(x) != x)
        return false;
    (void)snprintf(digits, sizeof digits, "%.0f", fabs(x));
    span whole = {x != 0 ? digits : "", x != 0 ? strlen(digits) : 0};
    return integer->negative == (x < 0) && same_text(integer->text, whole);
}

static bool same_value(const value *a, const value *b);

static bool same_items(const value *a, const value *b) {
    if (a->n != b->n)
        return false;
    const value *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next)
        if (!same_text(x->key, y->key) || !same_value(x, y))
            return false;
    return true;
}

static bool same_value(const value *a, const value *b) {
    if (a->kind == INTEGER && b->kind == REAL)
        return same_mixed(a, b->real);
    if (a->kind == REAL && b->kind == INTEGER)
        return same_mixed(b, a->real);
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case NOTHING:
        return true;
    case INTEGER:
        return a->negative == b->negative && same_text(a->text, b->text);
    case REAL:
        return a->real == b->real;
    case TEXT:
        return same_text(a->text, b->text);
    case LIST:
    case TUPLE:
    case DICT:
        return same_items(a, b);
    default:
        return false;
    }
}

value_verdict compare_value(span got, span expected) {
    arena mem = {0};
    value_verdict verdict = VALUE_SAME;
    const value *a = parse(got, &mem, &verdict);
    const value *b = a ? parse(expected, &mem, &verdict) : NULL;
    if (a && b && !same_value(a, b))
        verdict = VALUE_DIFFERS;
    arena_release(&mem);
    return verdict;
}

bool compare_is_value(span text) {
    arena mem = {0};
    value_verdict why;
    bool is = parse(text, &mem, &why) != NULL;
    arena_release(&mem);
    return is;
}
