/* fuzz_tree.h - a mutator for fuzz targets whose input is JSON text or JSON lines, also with other
 * bytes around it. A change of single bytes mostly makes a text that the JSON parser refuses. This
 * mutator mostly changes whole values, so that the code behind the parser is reached.
 *
 * A target that includes this header has the mutator. */
#ifndef SNAPMLA_BASE_TEST_FUZZ_TREE_H
#define SNAPMLA_BASE_TEST_FUZZ_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { TREE_VALUES = 4096, TREE_PIECE = 4096 };

typedef struct {
    size_t at, n;
} tree_value;

static inline bool tree_is(uint8_t c, const char *set) {
    return c && strchr(set, c);
}

static inline size_t tree_string_end(const uint8_t *s, size_t n, size_t i) {
    for (i++; i < n && s[i] && s[i] != '"'; i++)
        i += s[i] == '\\';
    return i < n ? i + (s[i] == '"') : n;
}

/* The end of the key, string, array, object or other word that begins at @i. */
static inline size_t tree_end(const uint8_t *s, size_t n, size_t i) {
    bool word = !tree_is(s[i], "\"{[");
    int depth = 0;
    do {
        depth += tree_is(s[i], "{[");
        depth -= tree_is(s[i], "}]");
        i = s[i] == '"' ? tree_string_end(s, n, i) : i + 1;
    } while (i < n && s[i] && (depth > 0 || (word && !tree_is(s[i], ",:]} \t\r\n"))));
    return i;
}

/* Stores the places of keys and values in @out and returns how many it stored. */
static inline size_t tree_values(const uint8_t *s, size_t n, tree_value *out) {
    size_t found = 0;
    for (size_t i = 0; i < n && found < TREE_VALUES;) {
        if (!s[i] || tree_is(s[i], ",:]} \t\r\n")) {
            i++;
            continue;
        }
        size_t end = tree_end(s, n, i);
        out[found++] = (tree_value){i, end - i};
        i = tree_is(s[i], "{[") ? i + 1 : end;
    }
    return found;
}

/* Writes to @out what replaces a value: a copy of another value of the text, chosen at random, the
 * value itself twice, or a word of the list `tokens`. Returns the number of bytes; 0 means that the
 * value is removed. */
static inline size_t tree_piece(const uint8_t *s, const tree_value *v, size_t n, size_t chosen,
                                unsigned random, uint8_t out[2 * TREE_PIECE]) {
    static const char tokens[] =
        "null true [] {} 0 -1 1 2 0.5 1e-300 1e300 1e18 [0] 9223372036854775807 4294967296 "
        "-9223372036854775808 \"\" \"\\u0000\" \"\\u001b[31m\\n::error::x\" \"../../x\" "
        "\"<script>&|`$%_{}\\\\\" \"measured\" ";
    const tree_value *other = &v[random / 8 % n], *self = &v[chosen];
    switch (random % 8) {
    case 0:
    case 1:
    case 2: {
        const char *space = strchr(tokens + random / 8 % (sizeof tokens - 1), ' ');
        const char *token = space[1] ? space + 1 : tokens;
        size_t length = strcspn(token, " ");
        memcpy(out, token, length);
        return length;
    }
    case 3: /* the value twice, with a comma between: inside an array, that is one element more */
        if (self->n >= TREE_PIECE)
            return 0;
        memcpy(out, s + self->at, self->n);
        out[self->n] = ',';
        memcpy(out + self->n + 1, s + self->at, self->n);
        return 2 * self->n + 1;
    case 4:
        return 0;
    default:
        if (other->n > TREE_PIECE)
            return 0;
        memcpy(out, s + other->at, other->n);
        return other->n;
    }
}

/* Changes the bytes of a value, for example a digit of a number. Returns the new size. */
static inline size_t tree_change_bytes(uint8_t *data, size_t size, size_t max_size, tree_value v,
                                       uint8_t piece[2 * TREE_PIECE]) {
    bool quoted = data[v.at] == '"' && v.n >= 2;
    size_t at = v.at + quoted, n = v.n - 2 * quoted, room = max_size - size + n;
    if (n > TREE_PIECE || !room)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(piece, data + at, n);
    size_t now = LLVMFuzzerMutate(piece, n, room < TREE_PIECE ? room : TREE_PIECE);
    memmove(data + at + now, data + at + n, size - at - n);
    memcpy(data + at, piece, now);
    return size - n + now;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    static tree_value values[TREE_VALUES];
    static uint8_t piece[2 * TREE_PIECE];
    unsigned random = seed * 2654435761u >> 4;
    size_t n = tree_values(data, size, values);
    if (!n || random % 16 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t chosen = random / 16 % n;
    unsigned other = (seed ^ 0x9e3779b9u) * 2246822519u >> 3;
    tree_value v = values[chosen];
    if (random % 16 < 5)
        return tree_change_bytes(data, size, max_size, v, piece);
    size_t from = v.at, to = v.at + v.n, k = tree_piece(data, values, n, chosen, other, piece);
    if (!k && to < size && data[to] == ',') /* the comma of a removed value is removed, too */
        to++;
    else if (!k && from && data[from - 1] == ',')
        from--;
    if (size - (to - from) + k > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memmove(data + from + k, data + to, size - to);
    memcpy(data + from, piece, k);
    return size - (to - from) + k;
}

/* ---- inputs of several parts ---- */

/* Returns the part before the next NUL byte and moves *rest past that byte. */
static inline tree_value tree_part(const uint8_t *data, size_t size, size_t *rest) {
    size_t at = *rest < size ? *rest : size;
    const uint8_t *end = memchr(data + at, '\0', size - at);
    size_t n = end ? (size_t)(end - data) - at : size - at;
    *rest = at + n + 1;
    return (tree_value){at, n};
}

#endif
