#include "base/parquet_thrift.h"

static uint8_t next_byte(thrift *t) {
    if (t->bad || t->p == t->end) {
        t->bad = true;
        return 0;
    }
    return *t->p++;
}

static uint64_t varint(thrift *t) {
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = next_byte(t);
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return t->bad ? 0 : x;
    }
    t->bad = true;
    return 0;
}

static int64_t zigzag(thrift *t) {
    uint64_t x = varint(t);
    return (int64_t)(x >> 1 ^ (~(x & 1) + 1));
}

bool thrift_field(thrift *t, int *id, int *type) {
    uint8_t head = next_byte(t);
    *type = head & 15;
    if (t->bad || !head)
        return false;
    int64_t new_id = head >> 4 ? *id + (head >> 4) : zigzag(t);
    if (new_id <= 0 || new_id > INT16_MAX || !*type || *type > T_STRUCT)
        t->bad = true;
    *id = t->bad ? 0 : (int)new_id;
    return !t->bad;
}

int64_t thrift_int(thrift *t, int type) {
    if (type == T_I16 || type == T_I32 || type == T_I64)
        return zigzag(t);
    t->bad = true;
    return 0;
}

int thrift_int32(thrift *t, int type) {
    int64_t x = thrift_int(t, type);
    if (x < INT32_MIN || x > INT32_MAX)
        t->bad = true;
    return t->bad ? 0 : (int)x;
}

bool thrift_bool(thrift *t, int type) {
    t->bad = t->bad || (type != T_TRUE && type != T_FALSE);
    return !t->bad && type == T_TRUE;
}

const uint8_t *thrift_binary(thrift *t, int type, size_t *n) {
    uint64_t size = type == T_BINARY ? varint(t) : UINT64_MAX;
    const uint8_t *p = t->p;
    *n = 0;
    if (t->bad || size > (size_t)(t->end - t->p)) {
        t->bad = true;
        return NULL;
    }
    *n = (size_t)size;
    t->p += size;
    return p;
}

/* The number of a list's elements. Each takes at least one byte, so a number larger than the rest
 * of the data is malformed. */
static size_t list(thrift *t, int type, int *element) {
    bool is_list = type == T_LIST || type == T_SET;
    uint8_t head = is_list ? next_byte(t) : 0;
    uint64_t n = head >> 4 == 15 ? varint(t) : head >> 4;
    *element = head & 15;
    if (!is_list || n > (size_t)(t->end - t->p))
        t->bad = true;
    return t->bad ? 0 : (size_t)n;
}

size_t thrift_structs(thrift *t, int type) {
    int element;
    size_t n = list(t, type, &element);
    if (n && element != T_STRUCT)
        t->bad = true;
    return t->bad ? 0 : n;
}

static void skip(thrift *t, int type, bool in_list);

static void skip_map(thrift *t) {
    uint64_t n = varint(t);
    uint8_t types = n ? next_byte(t) : 0;
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        skip(t, types >> 4, true);
        skip(t, types & 15, true);
    }
}

/* Skips a value. A truth value takes a byte only in a list, a set or a map. */
static void skip(thrift *t, int type, bool in_list) {
    size_t n;
    int id = 0, inner;
    if (++t->depth > THRIFT_DEPTH)
        t->bad = true;
    switch (t->bad ? 0 : type) {
    case T_TRUE:
    case T_FALSE:
        if (in_list)
            (void)next_byte(t);
        break;
    case T_BYTE:
        (void)next_byte(t);
        break;
    case T_I16:
    case T_I32:
    case T_I64:
        (void)varint(t);
        break;
    case T_DOUBLE:
        for (int i = 0; i < 8; i++)
            (void)next_byte(t);
        break;
    case T_BINARY:
        (void)thrift_binary(t, type, &n);
        break;
    case T_LIST:
    case T_SET:
        n = list(t, type, &inner);
        for (size_t i = 0; i < n && !t->bad; i++)
            skip(t, inner, true);
        break;
    case T_MAP:
        skip_map(t);
        break;
    case T_STRUCT:
        while (thrift_field(t, &id, &inner))
            skip(t, inner, false);
        break;
    default:
        t->bad = true;
    }
    t->depth--;
}

void thrift_skip(thrift *t, int type) {
    skip(t, type, false);
}
