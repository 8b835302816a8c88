#include "evals/code/pickle.h"

#include <stdint.h>

/* Operations from Python's Lib/pickletools.py. The comment at an operation gives the width of the
 * number that follows it (little endian). */
enum {
    OP_PROTO = 0x80,            /* 1 byte */
    OP_FRAME = 0x95,            /* 8 bytes */
    OP_SHORT_BINUNICODE = 0x8c, /* 1 byte: the length of the text that follows */
    OP_BINUNICODE = 'X',        /* 4 bytes: the length of the text */
    OP_BINUNICODE8 = 0x8d,      /* 8 bytes: the length of the text */
    OP_MEMOIZE = 0x94,
    OP_BINPUT = 'q',      /* 1 byte */
    OP_LONG_BINPUT = 'r', /* 4 bytes */
    OP_STOP = '.',
};
enum { kNewestProtocol = 5 };

typedef struct {
    const unsigned char *bytes;
    size_t n, at;
} tape;

static bool take_number(tape *t, size_t width, uint64_t *out) {
    *out = 0;
    if (t->n - t->at < width)
        return false;
    for (size_t i = width; i-- > 0;)
        *out = *out << 8 | t->bytes[t->at + i];
    t->at += width;
    return true;
}

static bool take_text(tape *t, size_t width, span *out) {
    uint64_t n;
    if (out->s || !take_number(t, width, &n) || n > t->n - t->at)
        return false;
    *out = (span){(const char *)t->bytes + t->at, (size_t)n};
    t->at += (size_t)n;
    return true;
}

/* Executes one operation. False if it is not supported, malformed, cut off, or in the wrong
 * place. */
static bool step(tape *t, unsigned op, span *text) {
    uint64_t number;
    switch (op) {
    case OP_PROTO:
        return t->at == 1 && take_number(t, 1, &number) && number <= kNewestProtocol;
    case OP_FRAME:
        return !text->s && take_number(t, 8, &number) && number <= t->n - t->at;
    case OP_SHORT_BINUNICODE:
        return take_text(t, 1, text);
    case OP_BINUNICODE:
        return take_text(t, 4, text);
    case OP_BINUNICODE8:
        return take_text(t, 8, text);
    case OP_MEMOIZE:
        return text->s != NULL;
    case OP_BINPUT:
        return text->s && take_number(t, 1, &number);
    case OP_LONG_BINPUT:
        return text->s && take_number(t, 4, &number);
    default:
        return op == OP_STOP && text->s && t->at == t->n;
    }
}

snap_status pickle_text(span bytes, span *out, const char *where, snap_err *err) {
    tape t = {.bytes = (const unsigned char *)bytes.s, .n = bytes.n};
    *out = (span){NULL, 0};
    while (t.at < t.n) {
        size_t at = t.at;
        unsigned op = t.bytes[t.at++];
        if (!step(&t, op, out))
            return err_set(err, SNAP_E_INPUT,
                           "%s: the pickle is not one text: operation 0x%02x at byte %zu", where,
                           op, at);
        if (op == OP_STOP)
            return SNAP_OK;
    }
    return err_set(err, SNAP_E_INPUT, "%s: the pickle has no end", where);
}
